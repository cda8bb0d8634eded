//! Properties of the public functions that hold for every text.

use std::iter;

use overlock_code::{
    CompactOptions, Docs, FitOptions, Form, Language, Level, Reading, classify, compact, fit,
    nodes, with_line_feeds,
};
use proptest::prelude::*;

/// Code in each language, to be cut and mixed.
const SAMPLES: [&str; 5] = [
    "using System;\n\nnamespace Shop\n{\n    /// <summary>A cart.</summary>\n    [Serializable]\n    public sealed class Cart<T> : IEnumerable<List<T>> where T : class\n    {\n        private readonly string _path = @\"c:\\temp\"\"x\";\n#if DEBUG\n        public int Count { get; private set; } // how many\n#else\n        public int Count => 0;\n#endif\n        public string Show(int a, string b = \"//\")\n        {\n            /* all of it */\n            return $\"{a:0.00} {(b == \"x\" ? \"{{\" : b)} {Count}\" + \"\"\"\n                raw \"quoted\" text\n                \"\"\";\n        }\n    }\n}\n",
    "-- Orders\nCREATE PROCEDURE dbo.GetOrders\n    @id int, -- the customer\n    @note nvarchar(50) = N'it''s -- here'\nAS\nBEGIN\n    SET NOCOUNT ON;\n    /* outer /* inner */ */\n    SELECT [o].[Id], COUNT(*) FROM dbo.Orders AS [o] WITH (NOLOCK)\n    WHERE o.CustomerId = @id AND o.Total < @id;\n    UPDATE dbo.Stats SET Seen = Seen + 1 WHERE Id = @id;\nEND\nGO\n",
    "CREATE OR REPLACE FUNCTION add(a int, b int) RETURNS int AS $body$\nBEGIN\n    -- sums\n    RETURN a + b;\nEND;\n$body$ LANGUAGE plpgsql;\nCOPY t FROM stdin;\n1\tit's\n\\.\nSELECT E'it\\'s', ARRAY['a', 'b'];\n",
    "Imports System\n\n''' <summary>A form.</summary>\nPublic Class Form1\n    ' nothing\n    Private Sub Click(ByVal sender As Object) Handles Button1.Click\n        Dim text As String = \"it's \"\"quoted\"\"\" ' and more\n    End Sub\nEnd Class\n",
    "DELIMITER $$\nCREATE PROCEDURE p()\nBEGIN\n  # count\n  SELECT `a b`, 'it\\'s' FROM `t`; /*!40101 SET NAMES utf8 */\nEND$$\nDELIMITER ;\n",
];

const LANGUAGES: [Language; 4] = [
    Language::Sql,
    Language::Dotnet,
    Language::DotnetWithSql,
    Language::Unknown,
];

/// A sample cut at both ends, two such samples joined, or noise.
fn text() -> impl Strategy<Value = String> {
    let cut = (
        prop::sample::select(&SAMPLES[..]),
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
    );
    let cut = cut.prop_map(|(sample, one, other)| {
        let (one, other) = (one.index(sample.len() + 1), other.index(sample.len() + 1));
        sample[one.min(other)..one.max(other)].to_owned()
    });
    let piece = prop_oneof![4 => cut, 1 => any::<String>(), 1 => "[-'\"/*{}()#$@`\\\\\n ]{0,30}"];
    prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

const READINGS: [Reading; 6] = [
    Reading::CSharp,
    Reading::VisualBasic,
    Reading::Sql,
    Reading::Markdown,
    Reading::Dotnet,
    Reading::Plain,
];

fn options() -> impl Strategy<Value = CompactOptions> {
    let level = prop_oneof![Just(Level::Lossless), Just(Level::Outline)];
    let docs = prop_oneof![Just(Docs::Keep), Just(Docs::Drop)];
    (level, docs).prop_map(|(level, docs)| CompactOptions { level, docs })
}

fn words(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_result_is_never_longer_and_never_empty(text in text(), options in options()) {
        for language in LANGUAGES {
            let compacted = compact(&text, language, &options);
            prop_assert_eq!(compacted.text.is_empty(), text.is_empty());
            prop_assert_eq!(compacted.compacted, compacted.text.len() < text.len());
            if !compacted.compacted {
                prop_assert_eq!(&compacted.text, &text);
            }
            prop_assert_eq!(&compacted, &compact(&text, language, &options), "twice the same");
        }
    }

    #[test]
    fn a_result_that_fits_is_within_the_limit(text in text(), tokens in 0_u64..80) {
        for language in LANGUAGES {
            let options = FitOptions { tokens, relevant: &["show"], ..FitOptions::default() };
            let fitted = fit(&text, language, &options, &words);
            prop_assert_eq!(fitted.tokens, words(&fitted.text));
            prop_assert_eq!(fitted.fits, fitted.tokens <= tokens);
            prop_assert!(fitted.text.len() <= text.len());
            prop_assert_eq!(fitted.text.is_empty(), text.is_empty());
            prop_assert_eq!(fitted.form == Form::Full, words(&text) <= tokens);
        }
    }

    #[test]
    fn the_most_important_pieces_stay_longest(
        types in prop::collection::vec(1_usize..5, 1..5),
        asked in any::<prop::sample::Index>(),
        tokens in 0_u64..60,
    ) {
        let mut members = Vec::new();
        let mut pieces =
            vec!["using System;\nusing System.Linq;\nnamespace Shop\n{\n".to_owned()];
        for (number, count) in types.iter().enumerate() {
            pieces.push(format!("class Type{number}\n{{\n"));
            for _ in 0..*count {
                let name = format!("Member{}x", members.len());
                pieces.push(format!("int {name}(int a)\n{{\nreturn a + a + a + a;\n}}\n"));
                members.push(name);
            }
            pieces.push("}\n".to_owned());
        }
        let text = pieces.concat() + "}";
        let asked = members[asked.index(members.len())].to_ascii_lowercase();
        let options = FitOptions { tokens, relevant: &[&asked], ..FitOptions::default() };
        let fitted = fit(&text, Language::Dotnet, &options, &words);
        prop_assert_eq!(&fitted, &fit(&text, Language::Dotnet, &options, &words));
        if fitted.form == Form::Beginning {
            let lower = fitted.text.to_ascii_lowercase();
            let has_asked = lower.contains(&asked);
            let has_types = (0..types.len()).all(|number| lower.contains(&format!("type{number}")));
            let shown = members.iter().filter(|name| fitted.text.contains(name.as_str())).count();
            prop_assert!(fitted.text.ends_with(" tokens omitted"));
            prop_assert!(has_asked || !fitted.text.contains('{'), "{}", fitted.text);
            prop_assert!(has_types || shown <= usize::from(has_asked), "{}", fitted.text);
            prop_assert!(shown == members.len() || !fitted.text.contains("using"));
        }
    }

    #[test]
    fn nodes_lie_in_their_parents_and_lose_nothing(text in text(), times in 1_usize..4) {
        // Long texts have sections, too.
        let text = text.repeat(times * times * times);
        let lines = with_line_feeds(&text);
        for reading in READINGS {
            let parts = nodes(&text, reading);
            let all = &parts.nodes;
            prop_assert_eq!((all[0].span.clone(), all[0].parent), (0..text.len(), None));
            // The end of the last child of each node.
            let mut reached: Vec<usize> = all.iter().map(|node| node.span.start).collect();
            for (index, node) in all.iter().enumerate().skip(1) {
                let parent = node.parent.expect("only the file has no parent");
                prop_assert!(parent < index && text.get(node.span.clone()).is_some_and(|of| !of.is_empty()));
                prop_assert!(reached[parent] <= node.span.start && node.span.end <= all[parent].span.end);
                reached[parent] = node.span.end;
                let before = lines[..node.span.start].matches('\n').count() + 1;
                let own = &lines[node.span.clone()];
                let within = own.strip_suffix('\n').unwrap_or(own).matches('\n').count();
                prop_assert_eq!((node.first_line, node.last_line), (before, before + within));
                let mut at = node.span.start;
                for inside in &node.inside {
                    prop_assert!(at <= inside.start && inside.end <= node.span.end);
                    prop_assert!(text.get(inside.clone()).is_some());
                    at = inside.end;
                }
            }
            // Text that a node leaves out is in a node inside of it.
            let mut shown = String::new();
            for index in 0..all.len() {
                shown.push_str(&parts.text_of(&text, index));
                shown.push('\n');
            }
            // Adjacent words may be in two nodes: `#e` and `private`.
            let ends = all.iter().flat_map(|node| iter::once(&node.span).chain(&node.inside));
            let mut ends: Vec<usize> = ends.flat_map(|span| [span.start, span.end]).collect();
            ends.sort_unstable();
            ends.dedup();
            for piece in ends.windows(2) {
                for word in text[piece[0]..piece[1]].split(|c: char| !c.is_ascii_alphabetic()) {
                    prop_assert!(shown.contains(word), "{:?} lost {word:?} of {text:?}", reading);
                }
            }
        }
    }

    #[test]
    fn every_text_is_classified_with_a_confidence(text in text()) {
        let classification = classify(&text);
        prop_assert!((0.0..=1.0).contains(&classification.confidence));
        let is_dotnet = classification.language.rule_name() == "dotnet";
        prop_assert_eq!(classification.syntax.is_some(), is_dotnet);
    }
}

/// Texts that are slow for quadratic algorithms.
#[test]
fn hostile_texts_take_linear_time() {
    let pieces = [
        "\"",
        "'",
        "`",
        "@\"",
        "$\"{",
        "$\"{\"",
        "$\"\"\"{",
        "/*",
        "*/",
        "/*/",
        "[",
        "]",
        "(",
        "{",
        "}",
        "$$",
        "$a$",
        "q'[",
        "E'\\",
        "'\\'",
        "\"\"\"",
        "class A{",
        "a<",
        "a?",
        "(a,",
        "#if A\n",
        "#region\n",
        "\nGO\n",
        "--\n",
        "\\\n",
        "COPY t FROM stdin;\n",
        "if(a)",
        "SELECT (",
        "CREATE PROCEDURE p AS ",
        "x=>",
        "[a(",
        "<a>",
        "@{",
        "\u{2028}",
        "WITH a AS (",
        "MERGE INTO a USING ",
        "UPDATE a SET b FROM c a,",
        "N'SELECT a FROM b ''",
        "CREATE PACKAGE BODY a AS\nPROCEDURE b IS\n",
        "Class A\n",
        "End Class\n",
        "# a\n",
        "###### a\n# a\n",
        "int a;",
        "/**/",
        "a.b().",
        "\"SELECT\"+",
    ];
    for piece in pieces {
        let text = piece.repeat(20_000 / piece.len());
        for language in [Language::Sql, Language::Dotnet] {
            for level in [Level::Lossless, Level::Outline] {
                let compacted = compact(
                    &text,
                    language,
                    &CompactOptions {
                        level,
                        ..CompactOptions::default()
                    },
                );
                assert!(!compacted.text.is_empty());
            }
            let options = FitOptions {
                tokens: 9,
                relevant: &["a"],
                ..FitOptions::default()
            };
            assert!(!fit(&text, language, &options, &words).text.is_empty());
        }
        assert!(classify(&text).confidence <= 1.0);
        for reading in READINGS {
            assert!(!nodes(&text, reading).nodes.is_empty());
        }
    }
}
