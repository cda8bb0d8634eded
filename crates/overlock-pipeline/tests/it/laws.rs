//! Properties of any text.

use proptest::prelude::*;

use crate::given::{WHOLE, reading};
use overlock_pipeline::{drawing, graph};

/// Reads a text and checks the results.
fn check_laws(text: &str) -> Result<(), TestCaseError> {
    let checked = reading(text);
    let lines: Vec<&str> = text.split('\n').collect();
    for problem in &checked.problems {
        prop_assert!(
            problem.line >= 1 && problem.line <= lines.len(),
            "{problem:?}"
        );
        let line = lines[problem.line - 1];
        let columns = line.chars().count() + 1;
        prop_assert!(
            problem.column >= 1 && problem.column <= columns,
            "{problem:?}"
        );
        prop_assert!(problem.span.end <= text.len() && problem.span.start <= problem.span.end);
        let rendered = problem.render("a file.yaml", text);
        let is_plain = |character: char| character == '\n' || !character.is_control();
        prop_assert!(rendered.chars().all(is_plain), "{rendered:?}");
        prop_assert!(rendered.lines().all(|line| line.chars().count() < 1200));
    }
    let has_errors = checked
        .problems
        .iter()
        .any(|problem| problem.severity == overlock_pipeline::Severity::Error);
    prop_assert_eq!(checked.pipeline.is_none(), has_errors);
    if let Some(pipeline) = checked.pipeline {
        for step in &pipeline.steps {
            prop_assert!(!step.id.is_empty());
        }
        prop_assert!(graph(&pipeline).starts_with("flowchart TD\n"));
        prop_assert!(drawing(&pipeline).lines().count() >= pipeline.steps.len());
    }
    Ok(())
}

/// Pieces with a meaning in YAML or pipelines.
const PIECES: [&str; 40] = [
    "\n",
    "  ",
    "\t",
    ":",
    ": ",
    "- ",
    "? ",
    "&a ",
    "*a",
    "!!int ",
    "<<: ",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "'",
    "|\n",
    ">\n",
    "#",
    "---\n",
    "...\n",
    "%YAML 1.2\n",
    "pipeline:",
    "steps:",
    "id: x",
    "action: route",
    "next: x",
    "null",
    "~",
    "1e9",
    "-1",
    ".5",
    "no",
    "\u{feff}",
    "\u{1b}[31m",
    "é",
    "🦀",
    "\r\n",
    "\u{0}",
];

fn mutated() -> impl Strategy<Value = String> {
    let change = (
        any::<prop::sample::Index>(),
        0..12_usize,
        prop::sample::select(&PIECES[..]),
    );
    prop::collection::vec(change, 1..4).prop_map(|changes| {
        let mut text = WHOLE.to_owned();
        for (place, cut, piece) in changes {
            let boundaries: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let place = place.index(boundaries.len());
            let start = boundaries[place];
            let end = boundaries.get(place + cut).copied().unwrap_or(text.len());
            text.replace_range(start..end, piece);
        }
        text
    })
}

fn moved() -> impl Strategy<Value = String> {
    let lines = WHOLE.lines().count();
    (0..lines, 0..lines, any::<bool>()).prop_map(|(from, to, keeps)| {
        let mut lines: Vec<&str> = WHOLE.lines().collect();
        let line = if keeps {
            lines[from]
        } else {
            lines.remove(from)
        };
        lines.insert(to.min(lines.len()), line);
        lines.join("\n")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn reads_any_text(text in any::<String>()) {
        check_laws(&text)?;
    }

    #[test]
    fn reads_any_pieces_of_yaml(
        pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..60)
    ) {
        check_laws(&pieces.concat())?;
    }

    #[test]
    fn reads_a_file_with_anything_inserted(text in mutated()) {
        check_laws(&text)?;
    }

    #[test]
    fn reads_a_file_with_lines_moved(text in moved()) {
        check_laws(&text)?;
    }

    #[test]
    fn reads_a_cut_file(end in 0..WHOLE.len()) {
        check_laws(&WHOLE[..end])?;
    }
}

#[test]
fn reads_hostile_files() {
    let bomb = {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let before = format!("*a{}", level - 1);
            let items = [before.as_str(); 10].join(", ");
            text.push_str(&format!("a{level}: &a{level} [{items}]\n"));
        }
        text
    };
    let long = |piece: &str| piece.repeat((1 << 20) / piece.len());
    let texts = [
        bomb,
        format!(
            "a: &a \"{}\"\nb: [{}]",
            "x".repeat(500_000),
            "*a, ".repeat(1000)
        ),
        long("["),
        long("{a: "),
        long("- "),
        long("a: b: "),
        long("k"),
        long("\"\\u0041"),
        long("x: 1\n"),
        (0..60_000).map(|n| format!("k{n}: 1\n")).collect(),
        format!(
            "pipeline: {{{}}}",
            (0..40_000)
                .map(|n| format!("k{n}: 1, "))
                .collect::<String>()
        ),
        format!(
            "pipeline:\n  settings: {{entry_step_id: s0}}\n  steps:\n{}",
            (0..1000)
                .map(|n| format!(
                    "    - {{id: s{n}, action: finalize, next: s{}}}\n",
                    (n * 7 + 1) % 1000
                ))
                .collect::<String>()
        ),
        format!(
            "pipeline:\n  settings: {{entry_step_id: s0}}\n  steps:\n{}",
            (0..1000)
                .map(|n| format!("    - {{id: s{n}, action: finalize, next: t{n}}}\n"))
                .collect::<String>()
        ),
        format!("{}: 1\n{}: 2", "x".repeat(400_000), "y".repeat(400_000)),
        format!(
            "pipeline:\n  settings: {{entry_step_id: s0}}\n  steps:\n{}",
            (0..900)
                .map(|step| {
                    let routes: String = (0..40).map(|n| format!("r{n}: t{step}x{n}, ")).collect();
                    format!("    - {{id: s{step}, action: route, on: x, routes: {{{routes}}}}}\n")
                })
                .collect::<String>()
        ),
        format!(
            "pipeline:\n  settings: {{entry_step_id: s0}}\n  steps:\n{}",
            (0..500)
                .map(|pair| {
                    let (one, other, next) = (2 * pair, 2 * pair + 1, (2 * pair + 2) % 1000);
                    format!(
                        "    - {{id: s{one}, action: finalize, next: s{other}}}\n    - {{id: s{other}, action: repeat_query_guard, on_ok: s{one}, on_repeat: s{}}}\n",
                        next.max(one)
                    )
                })
                .collect::<String>()
        ),
        format!(
            "pipeline:\n  settings: {{entry_step_id: s0, {}}}\n  steps:\n{}",
            (0..20_000).map(|n| format!("set{n}: 1, ")).collect::<String>(),
            (0..1000)
                .map(|n| format!("    - {{id: s{n}, action: loop_guard, max_turn_loops_from_settings: sat{n}, on_allow: s{n}, on_deny: s0}}\n"))
                .collect::<String>()
        ),
    ];
    for text in texts {
        check_laws(&text).expect("the laws hold");
    }
}
