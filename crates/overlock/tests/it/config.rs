use std::panic::Location;

use serde_json::json;

use crate::program::{Run, TemporaryFile, TemporaryFolder, command, overlock, run};

/// An invalid configuration gives all of `expected`, in this order, and exit code 2.
#[track_caller]
fn check_wrong(content: impl AsRef<[u8]>, expected: &[&str]) {
    let file = TemporaryFile::new(
        &format!("wrong-{}.toml", Location::caller().line()),
        content,
    );
    let run = overlock(&["models", "gpt-4", "--config", file.path()], "");
    assert_eq!((run.code, &*run.stdout), (2, ""), "{}", run.stderr);
    let mut rest = run.stderr.as_str();
    for part in expected {
        let Some((_, after)) = rest.split_once(part) else {
            panic!("{part:?} is not in\n{}", run.stderr);
        };
        rest = after;
    }
}

#[test]
fn reports_an_unknown_key_with_its_position_and_a_suggestion() {
    check_wrong(
        "# mine\n[budget]\nmodel = \"gpt-4\"\nmax-tokens = 5\n",
        &[
            "error: unknown key `budget.max-tokens`",
            ".toml:4:1\n",
            "4 │ max-tokens = 5\n",
            "  │ ^^^^^^^^^^\n",
            "hint: did you mean `max_tokens`?",
        ],
    );
    check_wrong(
        "[bugdet]\n",
        &["`bugdet`", ":1:2", "did you mean `budget`?"],
    );
    check_wrong(
        "[model.x]\nwindow = 5\n",
        &["`model`", "did you mean `budget.model`?"],
    );
    check_wrong(
        "margin = 5\n",
        &["`margin`", "did you mean `budget.margin`?"],
    );
    check_wrong(
        "[models.x]\nwindow = 5\ntool = true\n",
        &["`tool`", ":3:1", "`tools`"],
    );
    check_wrong("colour = true\n", &["`colour`", "overlock.example.toml"]);
}

#[test]
fn prices_are_exact_or_refused() {
    let right = TemporaryFile::new(
        "prices.toml",
        "[models.gpt-4]\ninput_price = 30\noutput_price = \"60.000000001\"\ncached_input_price = 0.1\n",
    );
    let shown = overlock(&["models", "openai/gpt-4", "--config", right.path()], "");
    let line = "price of a million tokens: 30 input, 60.000000001 output, 0.1 cached input\n";
    assert!(shown.stdout.contains(line), "{shown:?}");
    let shown = overlock(&["models", "gpt-4", "--json", "--config", right.path()], "");
    let prices = json!({ "input": "30", "output": "60.000000001", "cached_input": "0.1" });
    assert_eq!(shown.json()["prices"], prices);
    // Another model has no price.
    let other = overlock(&["models", "gpt-4-mine", "--config", right.path()], "");
    assert!(!other.stdout.contains("price"), "{other:?}");
    for wrong in ["-1", "0.1234567891", "\"free\"", "true", "1e3"] {
        check_wrong(
            format!("[models.gpt-4]\ninput_price = {wrong}\noutput_price = 1\n"),
            &["`input_price` is", "the price of a million tokens", ":2:"],
        );
    }
    check_wrong(
        "[models.gpt-4]\ninput_price = 1\n",
        &["a price for only some of its tokens", "`output_price`"],
    );
}

#[test]
fn reports_an_invalid_value_with_the_valid_ones() {
    check_wrong(
        "[budget]\nmax_tokens = \"many\"\n",
        &[
            "`budget.max_tokens` is `many`, but must be a non-negative integer",
            ":2:14",
            "              ^^^^^^\n",
            "hint: the default is 3000",
        ],
    );
    check_wrong(
        "budget.margin = -1\n",
        &["is `-1`, but must be a non-negative integer"],
    );
    check_wrong(
        "budget.margin = 1.5\n",
        &["is `1.5`, but must be a non-negative integer"],
    );
    check_wrong(
        "budget.margin = 99999999999999999999\n",
        &["must be a non-negative integer"],
    );
    check_wrong(
        "budget.trim = \"newest\"\n",
        &["`off` or `oldest` or `summary`"],
    );
    check_wrong(
        "budget.grow = 1\n",
        &["is `1`, but must be `true` or `false`"],
    );
    check_wrong(
        "budget.model = []\n",
        &["is an array, but must be a non-empty string"],
    );
    check_wrong(
        "budget = 5\n",
        &["`budget` is an integer, but must be a table", "`[budget]`"],
    );
    check_wrong(
        "models = true\n",
        &["`models` is a boolean, but must be a table"],
    );
    check_wrong("models.x = 5\n", &["must be a table"]);
    check_wrong(
        "tokenizers.llama3 = 5\n",
        &["`tokenizers.llama3` is `5`", "the path of a file"],
    );
}

#[test]
fn refuses_an_impossible_model() {
    check_wrong(
        "[models.x]\ntools = true\n",
        &["the model `x` needs a `window`", ":1:9"],
    );
    check_wrong("[models.x]\nwindow = 0\n", &["a `window` of 0"]);
    check_wrong(
        "[models.x]\nwindow = 9\nanswer_cap = 0\n",
        &["an `answer_cap` of 0"],
    );
    check_wrong(
        "[models.x]\nwindow = 9\nshared = false\n",
        &["no `answer_cap`"],
    );
}

#[test]
fn reports_invalid_toml_with_its_position() {
    check_wrong("[budget\n", &["this is not TOML", ":1:8", "1 │ [budget"]);
    check_wrong("[budget]\nmodel = gpt-4\n", &["this is not TOML", ":2:9"]);
    check_wrong("a = 1\na = 2\n", &["this is not TOML", "duplicate"]);
    check_wrong(b"a = \"\xff\"\n", &["is not UTF-8 text"]);
    check_wrong("a = \u{1b}\"\n", &["this is not TOML"]);
    check_wrong("[".repeat(100_000), &["this is not TOML"]);
    check_wrong(
        format!("a = {}", "[".repeat(100_000)),
        &["this is not TOML"],
    );
    check_wrong(format!("a{} = 1", ".a".repeat(100_000)), &["error: "]);
}

#[test]
fn a_configuration_cannot_control_the_terminal() {
    let file = TemporaryFile::new("steer.toml", "\"\\u001b[31m\" = 5 # \u{1}\n");
    let run = overlock(&["models", "--config", file.path()], "");
    assert_eq!(run.code, 2);
    assert!(!run.stderr.contains('\x1b'), "{:?}", run.stderr);
}

#[test]
fn a_given_file_must_exist() {
    for path in ["/no/such/overlock.toml", "/tmp"] {
        let run = overlock(&["models", "--config", path], "");
        assert_eq!(run.code, 2);
        assert!(
            run.stderr.contains(path) && run.stderr.contains("hint: "),
            "{}",
            run.stderr
        );
        let run = crate::program::run(command(&["models"]).env("OVERLOCK_CONFIG", path), "");
        assert_eq!(run.code, 2);
    }
}

#[test]
fn the_nearest_file_is_used() {
    let folder = TemporaryFolder::new("nearest");
    for (name, window) in [
        ("user/overlock/overlock.toml", 1),
        ("here/overlock.toml", 2),
        ("variable.toml", 3),
        ("flag.toml", 4),
    ] {
        folder.write(name, format!("[models.m]\nwindow = {window}\n"));
    }
    folder.write("elsewhere/nothing", "");
    let window = |here: &str, variable: Option<&str>, flag: Option<&str>| {
        let mut arguments = vec!["models", "m", "--json"];
        arguments.extend(flag.iter().flat_map(|flag| ["--config", flag]));
        let mut command = command(&arguments);
        command
            .current_dir(folder.path().join(here))
            .env("XDG_CONFIG_HOME", folder.path().join("user"));
        if let Some(variable) = variable {
            command.env("OVERLOCK_CONFIG", variable);
        }
        run(&mut command, "").json()["context_window"].as_u64()
    };
    assert_eq!(window("elsewhere", None, None), Some(1));
    assert_eq!(window("here", None, None), Some(2));
    assert_eq!(window("here", Some(""), None), Some(2));
    assert_eq!(window("here", Some("../variable.toml"), None), Some(3));
    assert_eq!(
        window("here", Some("../variable.toml"), Some("../flag.toml")),
        Some(4)
    );
}

#[test]
fn flags_override_the_environment_and_that_overrides_the_file() {
    let file = TemporaryFile::new(
        "order.toml",
        "[budget]\nmodel = \"gpt-4\"\nmax_tokens = 1000\nmargin = 10\n",
    );
    let fit = |arguments: &[&str], variables: &[(&str, &str)]| -> Run {
        let base = ["fit", "--messages", "1", "--json", "--config", file.path()];
        let mut command = command(&[&base[..], arguments].concat());
        command.envs(variables.iter().copied());
        run(&mut command, "")
    };
    let answer = fit(&[], &[]).json();
    assert_eq!(
        (&answer["model"], &answer["requested"]),
        (&json!("gpt-4"), &json!(1000))
    );
    assert_eq!(answer["margin"], json!(10));
    let variables = [
        ("OVERLOCK_BUDGET_MODEL", "gpt-4o"),
        ("OVERLOCK_BUDGET_MAX_TOKENS", "2000"),
    ];
    let answer = fit(&[], &variables).json();
    assert_eq!(
        (&answer["model"], &answer["requested"]),
        (&json!("gpt-4o"), &json!(2000))
    );
    let answer = fit(&["--model", "gpt-4-turbo", "--max-tokens", "3"], &variables).json();
    assert_eq!(
        (&answer["model"], &answer["requested"]),
        (&json!("gpt-4-turbo"), &json!(3))
    );
    assert_eq!(answer["margin"], json!(10));
}

#[test]
fn a_bad_variable_is_an_error_and_a_near_miss_a_note() {
    let ask = |name: &str, value: &str| run(command(&["models", "gpt-4"]).env(name, value), "");
    let bad = ask("OVERLOCK_BUDGET_GROW", "maybe");
    assert_eq!((bad.code, &*bad.stdout), (2, ""));
    assert!(
        bad.stderr
            .contains("`OVERLOCK_BUDGET_GROW` is `maybe`, but must be `true` or `false`"),
        "{}",
        bad.stderr
    );
    let missed = ask("OVERLOCK_BUDGET_MARGN", "5");
    assert_eq!(missed.code, 0);
    assert!(
        missed
            .stderr
            .contains("did you mean `OVERLOCK_BUDGET_MARGIN`?"),
        "{}",
        missed.stderr
    );
    let foreign = ask("OVERLOCK_JSON_TEST_SUITE", "/suite");
    assert_eq!((foreign.code, &*foreign.stderr), (0, ""));
}

#[test]
fn help_lists_the_default_files() {
    for name in ["models", "fit"] {
        let help = overlock(&[name, "--help"], "").stdout;
        for word in ["--config", "OVERLOCK_CONFIG", "./overlock.toml"] {
            assert!(help.contains(word), "{word} in {help}");
        }
    }
}
