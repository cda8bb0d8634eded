use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::program::{TemporaryFile, TemporaryFolder, Watchdog, command, overlock, run};

const READERS: [&str; 4] = ["cut", "close", "repair", "render"];

#[test]
fn unreadable_input_has_a_hint() {
    for name in READERS {
        for (path, expected) in [
            ("/no/such/file", "no such file: `/no/such/file`"),
            ("/tmp", "is a directory"),
        ] {
            for form in [&[][..], &["--json"], &["--jsonl"]] {
                let arguments = [&[name, path], form].concat();
                let run = overlock(&arguments, "");
                assert_eq!((run.code, &*run.stdout), (2, ""), "{arguments:?}");
                assert!(run.stderr.contains(expected), "{}", run.stderr);
                assert!(run.stderr.contains("hint: "), "{}", run.stderr);
            }
        }
    }
}

#[test]
fn an_empty_file_and_a_file_without_json_end_with_1() {
    let empty = TemporaryFile::new("empty", "");
    let prose = TemporaryFile::new("prose", "Nothing to see here, move along.");
    for name in READERS {
        for file in [&empty, &prose] {
            let run = overlock(&[name, file.path()], "");
            assert_eq!((run.code, &*run.stdout), (1, ""), "{name}");
            assert!(run.stderr.contains(file.path()), "{}", run.stderr);
        }
    }
}

#[test]
fn drops_and_counts_invalid_bytes() {
    for name in READERS {
        let run = overlock(&[name], b"{\"a\": \"x\xff\xfey\", \"b\": [1, 2");
        assert!(run.code <= 1, "{name}: {}", run.stderr);
        assert!(
            run.stderr.contains("dropped 2 bytes"),
            "{name}: {}",
            run.stderr
        );
        assert!(!run.stdout.contains('\u{fffd}'), "{name}: {}", run.stdout);
    }
    let run = overlock(&["close"], b"{\"a\": \"x\xff\xfey\", \"b\": [1, 2");
    assert_eq!(run.stdout, "{\"a\": \"xy\", \"b\": [1]}");
}

#[test]
fn an_incomplete_character_at_the_end_is_no_error() {
    let run = overlock(&["close"], b"[\"\xe2\x82");
    assert_eq!((run.code, &*run.stdout), (0, "[\"\"]"), "{}", run.stderr);
    assert!(!run.stderr.contains("dropped 2 bytes"), "{}", run.stderr);
}

#[test]
fn a_file_and_standard_input_give_the_same_result() {
    let file = TemporaryFile::new("same", "{\"a\": [1, \"tw");
    for name in READERS {
        let from_file = overlock(&[name, file.path()], "");
        for arguments in [&[name][..], &[name, "-"]] {
            let run = overlock(arguments, "{\"a\": [1, \"tw");
            assert_eq!(
                (run.code, &run.stdout),
                (from_file.code, &from_file.stdout),
                "{name}"
            );
        }
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let text = format!("[{}", "\"a line of text\",\n".repeat(200_000));
    let file = TemporaryFile::new("pipe", &text);
    let lines = TemporaryFile::new("pipe-lines", "{\"text\":\"[1, 2\"}\n".repeat(50_000));
    for arguments in [
        &["close", file.path()][..],
        &["repair", file.path()],
        &["close", "--json", file.path()],
        &["close", "--jsonl", lines.path()],
        &[
            "tokens",
            "--encoding",
            "o200k_base",
            "--jsonl",
            lines.path(),
        ],
        &[
            "tokens",
            "--encoding",
            "o200k_base",
            "--truncate",
            "500000",
            file.path(),
        ],
        &["models"],
        &["models", "--json"],
        &["fit", "--model", "gpt-4", "--messages", "5"],
        &["demo"],
        &["completions", "bash"],
        &["--help"],
    ] {
        let mut child = command(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built with the tests");
        let _watchdog = Watchdog::over(&child);
        // The reader takes one byte and closes the pipe.
        let mut stdout = child.stdout.take().expect("it is piped");
        stdout.read_exact(&mut [0]).expect("there is a first byte");
        drop(stdout);
        let output = child.wait_with_output().expect("the program ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
        assert!(
            !stderr.contains("error") && !stderr.contains("panicked"),
            "{stderr}"
        );
    }
}

#[test]
fn every_help_text_has_an_example() {
    for name in [
        "cut",
        "close",
        "repair",
        "render",
        "stitch",
        "tokens",
        "models",
        "fit",
        "classify",
        "compact",
        "index",
        "search",
        "inspect",
        "serve",
        "demo",
        "completions",
    ] {
        for flag in ["--help", "-h"] {
            let run = overlock(&[name, flag], "");
            assert_eq!(run.code, 0);
            assert!(
                run.stdout.contains("Example:\n  $ "),
                "{name}: {}",
                run.stdout
            );
        }
    }
}

#[test]
fn examples_print_what_they_show() {
    let folder = TemporaryFolder::new("examples");
    let binaries = Path::new(env!("CARGO_BIN_EXE_overlock")).parent();
    let binaries = binaries.expect("it is in a folder").display();
    for name in [
        "cut", "close", "repair", "stitch", "tokens", "models", "classify", "compact",
    ] {
        let help = overlock(&[name, "--help"], "").stdout;
        let example = help.split_once("Example:\n").expect("it has an example").1;
        let example = example.split("\n\n").next().unwrap_or_default();
        for example in example.split("  $ ").skip(1) {
            let (line, shown) = example.split_once('\n').unwrap_or((example, ""));
            let mut shell = Command::new("sh");
            shell
                .args(["-c", line])
                .current_dir(folder.path())
                .env("PATH", format!("{binaries}:/usr/bin:/bin"))
                .env("XDG_CONFIG_HOME", "/no/such/folder");
            let printed = run(&mut shell, "").stdout;
            let mut printed = printed.lines();
            for shown in shown.lines().map(str::trim_start) {
                if shown == "…" {
                    printed.by_ref().for_each(drop);
                } else {
                    assert_eq!(printed.next(), Some(shown), "{line}");
                }
            }
            assert_eq!(printed.next(), None, "{line}");
        }
    }
}

#[test]
fn bad_usage_ends_with_two() {
    for arguments in [
        &[][..],
        &["mend"],
        &["cut", "--sideways"],
        &["cut", "--json", "--jsonl"],
    ] {
        assert_eq!(overlock(arguments, "[1]").code, 2, "{arguments:?}");
    }
}

#[test]
fn completions_know_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let run = overlock(&["completions", shell], "");
        assert_eq!(run.code, 0);
        for word in [
            "cut",
            "close",
            "repair",
            "render",
            "stitch",
            "tokens",
            "models",
            "fit",
            "classify",
            "compact",
            "expected-overlap",
            "o200k_base",
            "max-messages",
        ] {
            assert!(run.stdout.contains(word), "{word} for {shell}");
        }
    }
    assert_eq!(overlock(&["completions", "abacus"], "").code, 2);
}

#[test]
fn output_to_a_pipe_has_no_colour() {
    for arguments in [
        &["cut"][..],
        &["models", "gpt-4"],
        &["models", "zzqq"],
        &["models"],
        &["fit", "--model", "gpt-4", "--messages", "5"],
        &["demo"],
        &["--help"],
    ] {
        let run = overlock(arguments, "[1, \"tw");
        assert!(
            !run.stdout.contains('\x1b') && !run.stderr.contains('\x1b'),
            "{arguments:?}"
        );
    }
}
