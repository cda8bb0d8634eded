//! Fitting a text into a limit.

use overlock_code::{Docs, FitOptions, Fitted, Form, Language, fit};

const SHOP: &str = "class Shop\n{\n    // Adds them up.\n    int Total(Cart cart)\n    {\n        var sum = 0;\n        foreach (var item in cart.Items)\n            sum += item.Price;\n        return sum;\n    }\n\n    void Ship(Cart cart)\n    {\n        var box = Pack(cart);\n        Post(box, cart.Address);\n        Notify(cart.Owner);\n    }\n}\n";

fn words(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

fn fitted(tokens: u64, relevant: &[&str]) -> Fitted {
    let options = FitOptions {
        tokens,
        docs: Docs::Drop,
        relevant,
    };
    fit(SHOP, Language::Dotnet, &options, &words)
}

#[test]
fn chooses_the_richest_form_that_fits() {
    let forms: Vec<Form> = [60, 32, 25, 14, 8]
        .map(|tokens| fitted(tokens, &[]).form)
        .to_vec();
    assert_eq!(
        forms,
        [
            Form::Full,
            Form::Lossless,
            Form::Partial,
            Form::Outline,
            Form::Beginning
        ]
    );
}

#[test]
fn removes_the_longest_body_first() {
    let text = fitted(25, &[]).text;
    assert!(
        text.contains("int Total(Cart cart){… 4 lines}") && text.contains("Notify"),
        "{text}"
    );
}

#[test]
fn keeps_a_relevant_body_longest() {
    let text = fitted(25, &["total"]).text;
    assert!(
        text.contains("void Ship(Cart cart){… 3 lines}") && text.contains("sum += item.Price"),
        "{text}"
    );
}

#[test]
fn a_beginning_notes_how_much_is_missing() {
    let fitted = fitted(8, &[]);
    assert_eq!(fitted.text, "class Shop{\n…}\n… 36 tokens omitted");
    assert!(fitted.fits && fitted.tokens <= 8);
}

const CARTS: &str = "using System;\nusing System.Linq;\nusing System.Text;\n\nnamespace Shop\n{\n    /// <summary>What is bought.</summary>\n    public class Cart : ICart\n    {\n        private int _count;\n        public void Add(Item item)\n        {\n            _count += item.Count;\n            Save();\n        }\n#if DEBUG\n        public void Dump() { Console.WriteLine(_count); }\n#endif\n        public void Remove(\n            Item item)\n        {\n            _count -= item.Count;\n            Save();\n        }\n    }\n\n    public class Box\n    {\n        public int Weight { get; set; }\n        public int Height { get; set; }\n        public int Width { get; set; }\n    }\n}\n";

#[track_caller]
fn check_beginning(tokens: u64, relevant: &[&str], expected: &str) {
    let options = FitOptions {
        tokens,
        docs: Docs::Drop,
        relevant,
    };
    let fitted = fit(CARTS, Language::Dotnet, &options, &words);
    assert_eq!(
        (fitted.form, fitted.text.as_str()),
        (Form::Beginning, expected)
    );
}

#[test]
fn types_outlive_members_and_members_outlive_imports() {
    check_beginning(
        22,
        &[],
        "…\nnamespace Shop{\npublic class Cart : ICart{\nprivate int _count;\n…}\npublic class Box{\n…}}\n… 64 tokens omitted",
    );
}

#[test]
fn a_relevant_member_outlives_other_types() {
    check_beginning(
        22,
        &["remove"],
        "…\nnamespace Shop{\npublic class Cart : ICart{\n…\npublic void Remove(\nItem item){… 2 lines}}\n…}\n… 63 tokens omitted",
    );
}

#[test]
fn a_branch_stays_only_around_relevant_members() {
    check_beginning(
        23,
        &["Dump"],
        "…\nnamespace Shop{\npublic class Cart : ICart{\n…\n#if DEBUG\npublic void Dump(){… 1 line}\n#endif\n…}\n…}\n… 61 tokens omitted",
    );
}

#[test]
fn cuts_the_most_important_line_if_no_declaration_fits() {
    check_beginning(5, &[], "public\n… 79 tokens omitted");
    check_beginning(
        8,
        &["height"],
        "public int Height{get;set;}\n… 77 tokens omitted",
    );
}

#[test]
fn relevant_lines_of_sql_come_first() {
    let table = |name: &str| format!("CREATE TABLE {name} (\n    Id int,\n    Name text\n);\n");
    let text: String = ["Carts", "Items", "Owners"].map(table).concat();
    let options = FitOptions {
        tokens: 12,
        relevant: &["owners"],
        ..FitOptions::default()
    };
    let fitted = fit(&text, Language::Sql, &options, &words);
    assert_eq!(
        fitted.text,
        "…\nCREATE TABLE Owners (Id int,Name text);\n… 20 tokens omitted"
    );
}

#[test]
fn reports_a_text_that_cannot_fit() {
    let fitted = fitted(0, &[]);
    assert!(!fitted.fits && !fitted.text.is_empty() && fitted.text.len() < SHOP.len());
}

#[test]
fn sql_is_outlined_before_it_is_cut() {
    let text = "SELECT a, b, c, d, e, f\nFROM dbo.t\nWHERE a = 1;\n";
    let options = FitOptions {
        tokens: 35,
        ..FitOptions::default()
    };
    let fitted = fit(text, Language::Sql, &options, &|text| text.len() as u64);
    assert_eq!(
        (fitted.form, fitted.text.as_str()),
        (Form::Outline, "SELECT …\nFROM dbo.t\nWHERE a=1;")
    );
}

#[test]
fn a_text_of_an_unknown_language_is_cut_at_a_line() {
    let text = "one two three\nfour five six\nseven eight nine ten eleven twelve thirteen\n";
    let options = FitOptions {
        tokens: 7,
        ..FitOptions::default()
    };
    let fitted = fit(text, Language::Unknown, &options, &words);
    assert_eq!(fitted.text, "one two three\n… 10 tokens omitted");
}
