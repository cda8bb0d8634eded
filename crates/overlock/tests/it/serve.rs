use std::io::{BufRead, BufReader, Read, Write};
use std::iter;
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use overlock_llm::testing::{Behaviour, Fault, PATIENCE, Script, ScriptedServer};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::fit::{LETTERS, TEMPLATE};
use crate::program::{TemporaryFile, TemporaryFolder, command, interrupt, joined, overlock, run};
use crate::serving::Serving;

fn chat(model: &str) -> String {
    json!({
        "model": model,
        "response_format": { "type": "json_object" },
        "messages": [{ "role": "user", "content": "Write a long report" }],
    })
    .to_string()
}

#[test]
fn the_built_in_model_shows_a_completed_answer() {
    let mut serving = Serving::start("demo-answer", &["--upstream", "http://127.0.0.1:1/v1"], &[]);
    assert!(
        serving.stderr.contains("upstream: http://127.0.0.1:1/v1"),
        "{}",
        serving.stderr
    );
    assert!(
        serving
            .stderr
            .contains("\n  not reached (could not reach 127.0.0.1:1"),
        "{}",
        serving.stderr
    );
    assert!(
        serving.stderr.contains("curl http://127.0.0.1:"),
        "{}",
        serving.stderr
    );
    let (status, body) = serving.ask("POST /v1/chat/completions", &chat("overlock-demo"));
    assert_eq!(status, 200, "{body}");
    let answer: Value = serde_json::from_str(&body).expect("JSON");
    let content = answer["choices"][0]["message"]["content"].as_str();
    let document: Value = serde_json::from_str(content.expect("a text")).expect("whole");
    assert!(
        document["elements"]
            .as_array()
            .is_some_and(|elements| elements.len() > 30)
    );
    let line = serving.line();
    assert!(
        line.contains(r#"method="POST" route="/v1/chat/completions" status=200"#),
        "{line}"
    );
    assert!(line.contains(r#"outcome="complete""#), "{line}");
    let ended = serving.stop();
    assert_eq!(ended.code(), Some(0), "{}", serving.stderr);
}

#[test]
fn retries_a_temporarily_refused_first_call() {
    let script = Script {
        document: r#"{"rivers": ["Rhine", "Elbe"]}"#.to_owned(),
        breath: (1000, 1000),
        behaviours: Behaviour::AS_ASKED.to_vec(),
        seed: 1,
    };
    let unwell = Some(Fault::Status(503, Some(1)));
    let runtime = Runtime::new().expect("a runtime");
    let faults = [unwell, None, unwell, None];
    let upstream = ScriptedServer::start(script.clone(), &faults);
    let upstream = runtime.block_on(upstream).expect("a server");
    let arguments = ["--upstream", &upstream.base()];
    let full = [("OVERLOCK_SERVE_RECORD", "full")];
    let serving = Serving::start("first-retry", &arguments, &full);
    for stream in [false, true] {
        let mut request: Value = serde_json::from_str(&chat("gpt-4o")).expect("JSON");
        request["stream"] = json!(stream);
        let asked = Instant::now();
        let (status, body) = serving.ask("POST /v1/chat/completions", &request.to_string());
        assert_eq!(status, 200, "{body}");
        assert!(asked.elapsed() >= Duration::from_secs(1));
        let whole = stream || body.contains(&json!(script.document).to_string());
        assert!(whole && body.contains("Elbe"), "{body}");
        let (_, runs) = serving.ask("GET /api/runs", "");
        let runs: Value = serde_json::from_str(&runs).expect("JSON");
        let id = runs[0]["id"].as_str().expect("a run");
        let (_, run) = serving.ask(&format!("GET /api/runs/{id}"), "");
        let run: Value = serde_json::from_str(&run).expect("JSON");
        let retried = &run["steps"][0]["retried"];
        assert_eq!(retried["times"], 1, "{run}");
        assert!(retried["waited_ms"].as_u64() >= Some(1000), "{run}");
    }
    assert_eq!(upstream.calls(), 4);
}

#[test]
fn inspects_a_run_recorded_without_text() {
    let folder = TemporaryFolder::new("inspect-metadata");
    let store = format!("sqlite://{}", folder.path().join("runs.db").display());
    let arguments = ["--upstream", "http://127.0.0.1:1/v1", "--store", &store];
    let mut serving = Serving::start("metadata-gateway", &arguments, &[]);
    let (status, body) = serving.ask("POST /v1/chat/completions", &chat("overlock-demo"));
    assert_eq!(status, 200, "{body}");
    assert_eq!(serving.stop().code(), Some(0), "{}", serving.stderr);
    let runs = overlock(&["inspect", "--store", &store, "--json"], "").json();
    let id = runs[0]["id"]
        .as_str()
        .expect("a stopped gateway has recorded it");
    let shown = overlock(&["inspect", id, "--store", &store], "");
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let answer: Value = serde_json::from_str(&body).expect("JSON");
    let document = answer["choices"][0]["message"]["content"].as_str();
    let bytes = document.expect("a document").len().to_string();
    let grouped = format!(
        "{},{}",
        &bytes[..bytes.len() - 3],
        &bytes[bytes.len() - 3..]
    );
    let document = format!("document: {grouped} bytes");
    assert!(
        shown.stdout.contains("outcome: complete"),
        "{}",
        shown.stdout
    );
    assert!(shown.stdout.contains(&document), "{}", shown.stdout);
}

#[test]
fn without_an_upstream_other_models_get_a_hint() {
    let serving = Serving::start("unreachable", &["--upstream", "http://127.0.0.1:1/v1"], &[]);
    let (status, body) = serving.ask("POST /v1/chat/completions", &chat("gpt-4o"));
    assert_eq!(status, 502, "{body}");
}

#[test]
fn an_open_model_is_counted_with_its_own_tokenizer_and_template() {
    let folder = TemporaryFolder::new("serve-tokenizer");
    folder.write("tokenizer.json", LETTERS);
    let template = |text: String| json!({ "chat_template": text }).to_string();
    folder.write("tokenizer_config.json", template(TEMPLATE.to_owned()));
    folder.write("other.json", template(format!("<s><s>{TEMPLATE}")));
    folder.write(
        "overlock.toml",
        "[tokenizers]\nllama3 = \"tokenizer.json\"\n\
         [models.mine]\nwindow = 4000\ntokenizer = \"tokenizer.json\"\n\
         [models.other]\nwindow = 4000\ntokenizer = \"tokenizer.json\"\n\
         tokenizer_config = \"other.json\"\n",
    );
    let config = folder.path().join("overlock.toml").display().to_string();
    let arguments = ["--upstream", "http://127.0.0.1:1/v1", "--config", &config];
    let serving = Serving::start("own-tokenizer", &arguments, &[]);
    // Three times `<s>`, `ab`, `b`, `a`, and a `<s>` that is only text.
    for (model, tokens) in [("mine", 9), ("other", 11), ("llama3.2:3b", 9)] {
        let request = json!({ "model": model, "messages": [
            { "role": "system", "content": "ab" }, { "role": "user", "content": "ba<s>" },
        ] });
        let (status, body) = serving.ask("POST /api/fit", &request.to_string());
        assert_eq!(status, 200, "{body}");
        let answer: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(answer["input_token_count"], tokens, "{model}: {body}");
    }
}

#[test]
fn refuses_limits_of_zero() {
    for key in [
        "max_total_tokens",
        "max_body_bytes",
        "max_concurrent_requests",
        "max_connections",
        "max_answer_bytes",
    ] {
        let folder = TemporaryFolder::new(&format!("serve-no-{key}"));
        folder.write("overlock.toml", format!("[serve]\n{key} = 0\n"));
        let config = folder.path().join("overlock.toml").display().to_string();
        check_refused(&["--config", &config], "a positive integer");
    }
}

#[test]
fn refuses_an_unreadable_tokenizer_at_the_start() {
    let folder = TemporaryFolder::new("serve-no-tokenizer");
    folder.write(
        "overlock.toml",
        "[tokenizers]\nllama3 = \"no-such-file.json\"\n",
    );
    let config = folder.path().join("overlock.toml").display().to_string();
    check_refused(
        &["--upstream", "http://127.0.0.1:1/v1", "--config", &config],
        "no-such-file.json",
    );
}

#[test]
fn refuses_a_store_whose_lock_folder_cannot_be_created() {
    let folder = TemporaryFolder::new("serve-no-marks");
    folder.write("runs.db-live", "a file where a folder should be");
    let store = format!("sqlite://{}", folder.path().join("runs.db").display());
    check_refused(
        &["--upstream", "http://127.0.0.1:1/v1", "--store", &store],
        "runs.db-live",
    );
}

#[test]
fn the_request_log_can_be_json() {
    let arguments = ["--upstream", "http://127.0.0.1:1/v1", "--log", "json"];
    let mut serving = Serving::start("log", &arguments, &[]);
    serving.ask("GET /health?secret=1", "");
    let entry: Value = serde_json::from_str(&serving.line()).expect("JSON");
    assert_eq!(entry["route"], "/health");
    assert_eq!(entry["status"], 200);
    assert!(!serving.stderr.contains("secret"), "{}", serving.stderr);
}

#[test]
fn reads_keys_from_a_variable_or_a_file_and_never_shows_them() {
    let file = TemporaryFile::new("gateway-keys", "# ours\nfile-key\n");
    for (arguments, key) in [
        (["--keys-variable", "GATEWAY_KEYS"], "variable-key"),
        (["--keys-file", file.path()], "file-key"),
    ] {
        let upstream = ["--upstream", "http://127.0.0.1:1/v1"];
        let variables = [("GATEWAY_KEYS", "variable-key")];
        let mut serving = Serving::start(key, &[arguments, upstream].concat(), &variables);
        assert_eq!(serving.ask("GET /openapi.json", "").0, 401);
        let (status, _) = serving.ask(
            &format!("GET /openapi.json HTTP/1.1\r\nauthorization: Bearer {key}\r\nx-rest:"),
            "",
        );
        assert_eq!(status, 200);
        serving.stop();
        assert!(
            serving.stderr.contains("authorization: Bearer "),
            "{}",
            serving.stderr
        );
        assert!(!serving.stderr.contains(key), "{}", serving.stderr);
    }
}

#[test]
fn sends_the_openai_key_only_to_openai() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let upstream = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let (sender, heard) = mpsc::channel();
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut bytes = [0; 4096];
            let length = stream.read(&mut bytes).expect("a request");
            let heard = String::from_utf8_lossy(&bytes[..length]).into_owned();
            let _ = sender.send(heard);
            let answer = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let variables = [("OPENAI_API_KEY", "sk-for-openai")];
    let serving = Serving::start("openai-key", &["--upstream", &upstream], &variables);
    assert_eq!(serving.ask("GET /v1/files", "").0, 200);
    // The discovery request is the first one.
    for path in ["/v1/models", "/v1/files"] {
        let request = heard.recv_timeout(PATIENCE).expect("it was asked");
        assert!(request.starts_with(&format!("GET {path} ")), "{request}");
        assert!(!request.contains("sk-for-openai"), "{request}");
    }
    assert!(
        !serving.stderr.contains("sk-for-openai"),
        "{}",
        serving.stderr
    );
}

#[test]
fn uses_openai_if_there_is_a_key() {
    let serving = Serving::start("openai", &[], &[("OPENAI_API_KEY", "sk-for-openai")]);
    assert!(
        serving.stderr.contains("https://api.openai.com/v1"),
        "{}",
        serving.stderr
    );
    assert!(
        !serving.stderr.contains("sk-for-openai"),
        "{}",
        serving.stderr
    );
    let (_, health) = serving.ask("GET /health", "");
    assert!(health.contains("api.openai.com"), "{health}");
}

#[test]
fn uses_anthropic_if_there_is_only_its_key() {
    let variables = [("ANTHROPIC_API_KEY", "sk-for-anthropic")];
    let serving = Serving::start("anthropic", &[], &variables);
    let stderr = &serving.stderr;
    assert!(stderr.contains("https://api.anthropic.com/v1"), "{stderr}");
    assert!(!stderr.contains("sk-for-anthropic"), "{stderr}");
}

/// Accepts the first POST request, and returns it.
pub(crate) fn collected(listener: &TcpListener) -> String {
    let (mut stream, _) = listener.accept().expect("a client");
    let mut heard = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&heard);
        let length = text
            .lines()
            .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body.len());
        if body.is_some() && body == length {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
            return text.into_owned();
        }
        let read = stream.read(&mut piece).expect("more");
        assert!(read > 0, "it broke off: {text}");
        heard.extend_from_slice(&piece[..read]);
    }
}

#[test]
fn sends_traces_as_the_standard_variables_say() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let host = listener.local_addr().expect("an address").to_string();
    let collecting = thread::spawn(move || collected(&listener));
    let endpoint = format!("http://{host}");
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=collector%20secret"),
        ("OTEL_SERVICE_NAME", "the-gateway"),
    ];
    let upstream = ["--upstream", "http://127.0.0.1:1/v1"];
    let mut serving = Serving::start("traces", &upstream, &variables);
    let (status, _) = serving.ask("POST /v1/chat/completions", &chat("overlock-demo"));
    assert_eq!(status, 200);
    assert_eq!(serving.stop().code(), Some(0), "{}", serving.stderr);
    let heard = joined(collecting);
    assert!(heard.starts_with("POST /v1/traces "), "{heard}");
    for expected in [
        "x-key: collector secret",
        "the-gateway",
        "chat overlock-demo",
    ] {
        assert!(heard.contains(expected), "{expected} in {heard}");
    }
    assert!(!heard.contains("long report"), "{heard}");
    let greeting = format!("traces: sent to {host}");
    assert!(serving.stderr.contains(&greeting), "{}", serving.stderr);
    assert!(!serving.stderr.contains("secret"), "{}", serving.stderr);
}

#[test]
fn sends_no_traces_if_they_are_disabled() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.set_nonblocking(true).expect("a listener");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint),
        ("OTEL_SDK_DISABLED", "True"),
    ];
    let upstream = ["--upstream", "http://127.0.0.1:1/v1"];
    let mut serving = Serving::start("no-traces", &upstream, &variables);
    let (status, _) = serving.ask("POST /v1/chat/completions", &chat("overlock-demo"));
    assert_eq!(status, 200);
    assert_eq!(serving.stop().code(), Some(0), "{}", serving.stderr);
    assert!(listener.accept().is_err(), "no request was sent");
    assert!(
        serving.stderr.contains("OTEL_SDK_DISABLED"),
        "{}",
        serving.stderr
    );
    assert!(
        !serving.stderr.contains("traces: sent to"),
        "{}",
        serving.stderr
    );
}

#[test]
fn notes_an_unsupported_protocol_for_traces() {
    let upstream = ["--upstream", "http://127.0.0.1:1/v1"];
    for (protocol, is_noted) in [
        ("grpc", true),
        ("http/protobuf", true),
        ("http/json", false),
    ] {
        let variables = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
        ];
        let mut serving = Serving::start("protocol", &upstream, &variables);
        assert_eq!(serving.ask("GET /health", "").0, 200);
        assert_eq!(serving.stop().code(), Some(0), "{}", serving.stderr);
        let expected = format!("OTEL_EXPORTER_OTLP_PROTOCOL` is `{protocol}`");
        assert_eq!(
            serving.stderr.contains(&expected),
            is_noted,
            "{}",
            serving.stderr
        );
        assert_eq!(
            serving.stderr.contains("traces are sent as `http/json`"),
            is_noted
        );
    }
}

#[test]
fn a_running_request_may_finish_until_a_second_signal() {
    // The upstream accepts the connection and sends nothing.
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let upstream = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let mut serving = Serving::start("second-signal", &["--upstream", &upstream], &[]);
    let mut client = TcpStream::connect(&serving.address).expect("it listens");
    client
        .write_all(b"GET /v1/files HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .expect("sent");
    // Connections of the discovery may come before that of the request.
    let _asked =
        iter::repeat_with(|| listener.accept().expect("the request continues").0).find(|stream| {
            let mut line = String::new();
            let read = BufReader::new(stream).read_line(&mut line);
            read.is_ok() && line.starts_with("GET /v1/files ")
        });
    interrupt(&serving.child);
    let line = serving.line();
    assert!(line.contains("stopping"), "{line}");
    assert!(serving.child.try_wait().expect("it can be asked").is_none());
    assert_eq!(serving.stop().code(), Some(0), "{}", serving.stderr);
}

#[test]
fn limits_connections_by_open_files() {
    // The upstream answers one request after the other.
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let upstream = format!("http://{}/v1", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}");
        }
    });
    let config = TemporaryFile::new("crowd.toml", "[serve]\nhead_timeout = \"1s\"\n");
    let limited = "ulimit -n 100 && exec \"$0\" \"$@\"";
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", limited])
        .arg(env!("CARGO_BIN_EXE_overlock"));
    let arguments = ["--upstream", &upstream, "--config", config.path()];
    let mut serving = Serving::start_as(shell, "crowd", &arguments, &[]);
    assert!(
        serving
            .stderr
            .contains("connections: at most 12, because only 100 files"),
        "{}",
        serving.stderr
    );
    // More silent clients than open files.
    let silent: Vec<_> = (0..110)
        .map(|_| TcpStream::connect(&serving.address).expect("it listens"))
        .collect();
    for _ in 0..3 {
        let (status, body) = serving.ask("GET /v1/files", "");
        assert_eq!((status, &*body), (200, "{}"));
    }
    drop(silent);
    assert_eq!(serving.ask("GET /v1/files", "").0, 200);
    assert_eq!(serving.stop().code(), Some(0), "{}", serving.stderr);
}

#[track_caller]
pub(crate) fn check_refused(arguments: &[&str], expected: &str) -> String {
    let folder = TemporaryFolder::new("refused");
    let mut command = command(&["serve"]);
    command
        .args(arguments)
        .env_remove("OPENAI_API_KEY")
        .env_remove("ANTHROPIC_API_KEY")
        .env("XDG_DATA_HOME", folder.path());
    let run = run(&mut command, "");
    assert_eq!(
        (run.code, &*run.stdout),
        (2, ""),
        "{arguments:?}: {}",
        run.stderr
    );
    assert!(run.stderr.contains(expected), "{}", run.stderr);
    assert!(run.stderr.contains("hint: "), "{}", run.stderr);
    run.stderr
}

#[test]
fn refuses_to_start_with_a_hint() {
    let upstream = ["--upstream", "http://127.0.0.1:1/v1"];
    let with = |arguments: &[&'static str]| [arguments, &upstream].concat();
    check_refused(
        &with(&["--listen", "0.0.0.0:0"]),
        "no API keys are configured",
    );
    check_refused(&with(&["--listen", "[::]:0"]), "no API keys are configured");
    check_refused(
        &with(&["--listen", "nonsense"]),
        "is not a valid listen address",
    );
    check_refused(
        &with(&["--keys-variable", "NO_SUCH_KEYS"]),
        "contains no key",
    );
    check_refused(&with(&["--keys-file", "/no/such/file"]), "could not read");
    let secret = "[serve]\ntraces_url = \"nowhere?key=secret\"\n";
    let config = TemporaryFile::new("serve-traces.toml", secret);
    let arguments = ["--config", config.path(), "--listen", "127.0.0.1:0"];
    let said = check_refused(
        &[&arguments[..], &upstream].concat(),
        "trace collector address",
    );
    assert!(!said.contains("secret"), "{said}");
    check_refused(
        &with(&["--key-variable", "NO_SUCH_KEY"]),
        "is empty or not set",
    );
    check_refused(
        &["--upstream", "ftp://x", "--listen", "127.0.0.1:0"],
        "ftp://x",
    );
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let taken = listener.local_addr().expect("an address").to_string();
    let arguments = ["--listen", &taken, "--upstream", "http://127.0.0.1:1/v1"];
    check_refused(&arguments, "could not listen on");
    check_refused(&arguments, "another program uses this port");
}
