//! What fits into so many tokens.

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
fn the_richest_form_that_fits_is_taken() {
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
fn the_longest_body_goes_first() {
    let text = fitted(25, &[]).text;
    assert!(
        text.contains("int Total(Cart cart){… 4 lines}") && text.contains("Notify"),
        "{text}"
    );
}

#[test]
fn a_relevant_body_stays_longest() {
    let text = fitted(25, &["total"]).text;
    assert!(
        text.contains("void Ship(Cart cart){… 3 lines}") && text.contains("sum += item.Price"),
        "{text}"
    );
}

#[test]
fn a_beginning_says_how_much_is_missing() {
    let fitted = fitted(8, &[]);
    assert_eq!(fitted.text, "class Shop{\n… 37 tokens omitted");
    assert!(fitted.fits && fitted.tokens <= 8);
}

#[test]
fn what_cannot_fit_says_so_and_is_not_empty() {
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
