use serde::de::IgnoredAny;

use crate::program::{Run, TemporaryFile, overlock};

const LEVELS: usize = 1_000_000;

/// A document that opens a million containers, with the expected output of the commands.
struct DeepDocument {
    text: String,
    place: &'static str,
    closed: String,
    /// The closing brackets.
    rest: String,
}

fn documents() -> [DeepDocument; 2] {
    let (arrays, objects) = ("[".repeat(LEVELS), "{\"a\":".repeat(LEVELS));
    let (square, curly) = ("]".repeat(LEVELS), "}".repeat(LEVELS));
    [
        DeepDocument {
            place: "container-start",
            closed: format!("{arrays}{square}"),
            rest: square,
            text: arrays,
        },
        DeepDocument {
            place: "after-colon",
            closed: format!("{}{{{curly}", &objects[..objects.len() - "{\"a\":".len()]),
            rest: format!("1{curly}"),
            text: objects,
        },
    ]
}

#[track_caller]
fn run(arguments: &[&str], text: &str) -> Run {
    let run = overlock(arguments, text);
    assert!(run.code <= 1, "{arguments:?}: {}", run.stderr);
    run
}

#[test]
fn cut_shortens_the_path() {
    for document in documents() {
        let cut = run(&["cut"], &document.text);
        assert!(
            cut.stdout.contains(&format!("place: {}\n", document.place)),
            "{}",
            cut.stdout
        );
        assert!(cut.stdout.contains(" levels …/"), "{}", cut.stdout);
        assert!(cut.stdout.len() < 20_000, "{}", cut.stdout.len());
    }
}

#[test]
fn cut_prints_all_contexts_as_json() {
    for document in documents() {
        let answer = run(&["cut", "--json"], &document.text).json();
        assert_eq!(answer["cut"]["place"], document.place);
        assert!(answer["hierarchy_context"] == *document.text);
        assert!(answer["hierarchy_context_for_prompt"] == *document.text);
        assert!(answer["complete_part"] == *document.closed);
        let path = answer["cut"]["path"].as_str().unwrap_or_default();
        assert!(path.len() < 5_000, "{}", path.len());
    }
}

#[test]
fn close_and_repair_close_every_level() {
    for document in documents() {
        for name in ["close", "repair"] {
            let closed = run(&[name], &document.text);
            assert!(
                (closed.code, &closed.stdout) == (0, &document.closed),
                "{name}"
            );
        }
    }
}

#[test]
fn render_writes_every_level_or_as_many_as_the_limit_allows() {
    for document in documents() {
        assert!(run(&["render"], &document.text).stdout == document.text);
        let rendered = run(&["render", "--limit", "1000"], &document.text).stdout;
        let (elision, inner) = rendered
            .split_once(" levels …")
            .expect("not all levels fit");
        assert!(elision.starts_with("… 99"), "{rendered}");
        assert!(document.text.ends_with(inner), "{rendered}");
        let length = rendered.chars().count();
        assert!((980..=1000).contains(&length), "{length}");
    }
}

#[test]
fn stitch_joins_at_the_innermost_level() {
    for document in documents() {
        let base = TemporaryFile::new(document.place, &document.text);
        let arguments = ["stitch", "--protocol", "prefill", base.path(), "-"];
        let joined = run(&arguments, &document.rest);
        assert_eq!(joined.code, 0, "{}", joined.stderr);
        assert!(joined.stdout == document.text.clone() + &document.rest);
    }
}

#[test]
fn repairs_deep_malformed_documents() {
    const COMMANDS: [&[&str]; 6] = [
        &["cut"],
        &["cut", "--json"],
        &["close"],
        &["repair"],
        &["render"],
        &["render", "--limit", "1000"],
    ];
    // Round brackets are JSON only for `repair`, and not between words.
    let (square, round) = ([1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 1, 1]);
    for (opener, end, codes) in [
        ("[", "x", square),
        ("[1,", "?", square),
        ("{'a':", "", square),
        ("(", "", round),
        ("{", "", square),
        ("[{\"a\":", "}", square),
        ("f(", ")", round),
    ] {
        let text = opener.repeat(LEVELS / 4) + end;
        let found = COMMANDS.map(|arguments| run(arguments, &text).code);
        assert_eq!(found, codes, "{opener:?}");
        let prose = format!("Here it is: {text}");
        let among_words = i32::from(codes == round);
        for (text, code) in [(&text, 0), (&prose, among_words)] {
            let repaired = run(&["repair"], text);
            assert_eq!(repaired.code, code, "{opener:?}: {}", repaired.stderr);
            let parsed = serde_json::from_str::<IgnoredAny>(&repaired.stdout);
            assert_eq!(parsed.is_ok(), code == 0, "{opener:?}: {parsed:?}");
        }
    }
}

/// Runs a command in a shell with a memory limit in kilobytes.
#[cfg(target_os = "linux")]
fn run_within(kilobytes: u32, command: &str) -> std::process::Output {
    use std::process::{Command, Stdio};

    let program = env!("CARGO_BIN_EXE_overlock");
    Command::new("sh")
        .arg("-c")
        .arg(format!("ulimit -v {kilobytes} && '{program}' {command}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map(crate::program::output_of)
        .expect("there is a shell")
}

/// Three million levels take the memory of a short text, plus the text and at most 16 bytes per
/// level.
#[cfg(target_os = "linux")]
#[test]
fn a_level_takes_a_few_bytes_of_memory() {
    const MOST_KILOBYTES: u32 = (3_000_000 + 3_000_000 * 16) / 1024;
    let succeeds = |output: &std::process::Output| matches!(output.status.code(), Some(0 | 1));
    let short = TemporaryFile::new("short", "[1,");
    let of_program = (40_000..400_000)
        .step_by(1_000)
        .find(|least| succeeds(&run_within(*least, &format!("cut --json {}", short.path()))));
    let most = of_program.expect("it runs in 400 MB") + MOST_KILOBYTES;
    let brackets = TemporaryFile::new("brackets", "[".repeat(3_000_000));
    let siblings = TemporaryFile::new("siblings", "[1,".repeat(1_500_000));
    let malformed = TemporaryFile::new("malformed", "[".repeat(3_000_000) + "x");
    let fragment = TemporaryFile::new("fragment", "[[1, 2], 3]]");
    for file in [&brackets, &siblings, &malformed] {
        for command in [
            "cut FILE",
            "cut --json FILE",
            "close FILE",
            "repair FILE",
            "render FILE",
            "render --limit 1000 FILE",
            "stitch FILE FRAGMENT",
        ] {
            let command = command
                .replace("FILE", file.path())
                .replace("FRAGMENT", fragment.path());
            let output = run_within(most, &command);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(succeeds(&output), "{command}: {stderr}");
        }
    }
}
