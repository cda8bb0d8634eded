//! The page, in a real browser.
//!
//! `cargo xtask test page` installs the browser, sets its folder in an environment variable, and runs
//! the browser test, which `cargo test` ignores.

use std::convert::Infallible;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use overlock_budget::{Model, Models, Prices, Trim};
use overlock_gateway::{Keys, Settings};
use overlock_llm::ContinuationOptions;
use overlock_llm::testing::{Behaviour, Fault, Script, ScriptedServer};
use overlock_runs::Record;
use overlock_store::{EndedRun, NewRun, RunId, Store};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::spawn_blocking;

use crate::door::{Door, report, script, serve, serve_with};
use crate::fake::{Fake, FakeReply};
use crate::pipelines::{ANSWER, LOOP};
use crate::stage::{Play, Playing, Reply, Stage};

/// Files of the page, with their content types.
const FILES: &[(&str, &str)] = &[
    ("/", "text/html; charset=utf-8"),
    ("/page/style.css", "text/css; charset=utf-8"),
    ("/page/icon.svg", "image/svg+xml"),
    ("/page/main.js", "text/javascript; charset=utf-8"),
];

async fn door(set: impl FnOnce(&mut Settings)) -> Door<()> {
    Door {
        address: serve("http://127.0.0.1:1/v1", set).await,
        upstream: (),
    }
}

#[tokio::test]
async fn serves_the_page_without_a_key_and_with_a_strict_policy() {
    let door = door(|settings| settings.keys = Keys::new(["a-key".to_owned()])).await;
    for (path, kind) in FILES {
        let got = door.get(path).await;
        assert_eq!(got.status, StatusCode::OK, "{path}");
        assert_eq!(got.header("content-type"), *kind, "{path}");
        assert_eq!(got.header("x-content-type-options"), "nosniff", "{path}");
        let policy = got.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
    }
    assert_eq!(door.get("/api/runs").await.status, StatusCode::UNAUTHORIZED);
    let nothing = door.get("/page/nothing.js").await;
    assert_eq!(nothing.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn does_not_send_unchanged_files_again() {
    let door = door(|_| {}).await;
    for (path, _) in FILES {
        let got = door.get(path).await;
        let known = [("if-none-match", got.header("etag"))];
        let again = door.send(Method::GET, path, &known, "").await;
        assert_eq!(again.status, StatusCode::NOT_MODIFIED, "{path}");
        assert_eq!(again.body, "");
        let other = [("if-none-match", "\"another\"")];
        let again = door.send(Method::GET, path, &other, "").await;
        assert_eq!(again.body, got.body);
    }
}

#[tokio::test]
async fn the_page_refers_to_all_its_files_and_no_others() {
    let door = door(|_| {}).await;
    let mut seen = Vec::new();
    let mut waiting = vec!["/".to_owned()];
    while let Some(path) = waiting.pop() {
        if seen.contains(&path) {
            continue;
        }
        let got = door.get(&path).await;
        assert_eq!(got.status, StatusCode::OK, "{path}");
        let named = got.body.split(['"', '\'']).filter_map(|name| {
            let file = name
                .strip_prefix("/page/")
                .or_else(|| name.strip_prefix("./"))?;
            Some(format!("/page/{file}"))
        });
        waiting.extend(named);
        seen.push(path);
    }
    seen.sort_unstable();
    let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("page"));
    let mut paths: Vec<String> = files
        .expect("the folder of the page")
        .map(|file| file.expect("a file").file_name().into_string())
        .map(|name| name.expect("a plain name"))
        .map(|name| match &*name {
            "index.html" => "/".to_owned(),
            name => format!("/page/{name}"),
        })
        .collect();
    paths.sort_unstable();
    assert_eq!(seen, paths, "all files of the page are named");
}

/// The gateways for the browser, and their upstreams.
struct Gateways {
    addresses: Value,
    documents: Value,
    /// The ids of pipeline runs.
    pipelines: Value,
    scripted: Vec<ScriptedServer>,
    fakes: Vec<Fake>,
}

const KEY: &str = "the-key-of-the-test";

/// Behaviours whose answers cannot simply be concatenated.
const RESTARTS: &[Behaviour] = &[
    Behaviour::RestartsItem,
    Behaviour::OtherSpaces,
    Behaviour::RestartsDocument,
    Behaviour::RepeatsMore,
];

/// Everything is recorded, and some models have prices.
fn full(settings: &mut Settings) {
    settings.record = Record::Full;
    settings.models = Models::with_own(["gpt-4", "gpt-4o-mini"].map(priced));
    settings.max_total_tokens = 10_000_000;
    settings.continuation.max_iterations = 1000;
}

/// A separate store, so that its runs are in no other list.
fn new_store() -> Arc<dyn Store> {
    overlock_store::in_memory().expect("a store")
}

impl Gateways {
    async fn open() -> Self {
        let (whole, hostile) = (levels(), hostile());
        let (stage, pipelines) = pipeline_runs();
        let mut gateways = Self {
            addresses: json!({}),
            documents: json!({
                "whole": whole,
                "hostile_end": &hostile[hostile.len() - 20..],
            }),
            pipelines,
            scripted: Vec::new(),
            fakes: Vec::new(),
        };
        gateways.with_one_list(&whole, &hostile).await;
        gateways.with_lists_of_their_own(&whole, &hostile).await;
        gateways.with_what_goes_wrong(&whole).await;
        gateways.with_other_settings(&stage).await;
        gateways.addresses["prompter"] = json!(Prompter::start(stage).await);
        gateways
    }

    /// Gateways with one common store.
    async fn with_one_list(&mut self, whole: &str, hostile: &str) {
        let store = new_store();
        let as_asked: &[Behaviour] = &Behaviour::AS_ASKED;
        let documents = [
            ("whole", whole.to_owned(), 700, as_asked),
            ("hostile", hostile.to_owned(), 60_000, as_asked),
            ("many", report(100_000), 400, as_asked),
            ("long", report(5 << 20), 600_000, as_asked),
            ("restarts", report(9000), 1100, RESTARTS),
        ];
        for (name, document, breath, behaviours) in documents {
            let script = script(&document, breath, behaviours);
            self.before_script(name, store.clone(), (script, &[]), full)
                .await;
        }
        let refusal = json!({ "error": { "message": "You exceeded your current quota." } });
        let aside = FakeReply::content("Shall I go on?", "stop");
        let answers = [
            ("partial", vec![beginning(whole), aside]),
            ("failed", vec![FakeReply::json(429, &refusal)]),
        ];
        for (name, answers) in answers {
            self.before_answers(name, store.clone(), answers, full)
                .await;
        }
    }

    /// Gateways with separate stores, whose runs would disturb other lists.
    async fn with_lists_of_their_own(&mut self, whole: &str, hostile: &str) {
        let metadata = |settings: &mut Settings| settings.record = Record::Metadata;
        let rest = FakeReply::content(whole, "stop");
        let held = vec![beginning(whole), FakeReply::never()];
        self.before_answers("held", new_store(), held, full).await;
        // Its second call is never answered; a retry gets the rest.
        let left = vec![beginning(whole), FakeReply::never(), rest];
        self.before_answers("left", new_store(), left, full).await;
        self.before_answers("ends", new_store(), ends(), full).await;
        self.before_answers("brief", new_store(), ends(), metadata)
            .await;
        // Its second call fails at first, and its third always.
        let unwell = Some(Fault::Status(503, None));
        let faults = [None, unwell, unwell, None, unwell, unwell, unwell];
        let waiting = |settings: &mut Settings| {
            full(settings);
            settings.upstream.retries.retries = 2;
            settings.upstream.retries.first_wait = Duration::from_millis(800);
        };
        let unsteady = script(whole, 700, &Behaviour::AS_ASKED);
        self.before_script("unsteady", new_store(), (unsteady, &faults), waiting)
            .await;
        let short = vec![FakeReply::content("{\"rows\": []}", "stop")];
        let trimming = |settings: &mut Settings| settings.plan.trim = Trim::Oldest;
        self.before_answers("trimming", new_store(), short, trimming)
            .await;
        let turned = script(&turned(), 120, &Behaviour::AS_ASKED);
        self.before_script("turned", new_store(), (turned, &[]), full)
            .await;
        // Slow answers, to watch their progress.
        let slowly = hostile.replace("item", "<b>item</b>");
        for (name, record) in [("slow", Record::Full), ("unknown", Record::Metadata)] {
            let script = script(&slowly, slowly.len(), &Behaviour::AS_ASKED);
            let set = |settings: &mut Settings| {
                full(settings);
                settings.record = record;
            };
            let drips = [Some(Fault::Drip(30))];
            self.before_script(name, new_store(), (script, &drips), set)
                .await;
        }
    }

    /// Gateways with upstreams that fail.
    async fn with_what_goes_wrong(&mut self, whole: &str) {
        let aside = FakeReply::content("Shall I go on?", "stop");
        let rest = FakeReply::content(whole, "stop");
        let rejected = FakeReply::json(400, &json!({ "error": { "message": "no such role" } }));
        let answers = [
            ("choices", vec![two_choices(), aside.clone()]),
            ("calls", vec![two_calls(), aside.clone()]),
            (
                "between",
                vec![beginning(whole), aside.clone(), aside, rest],
            ),
            ("rejecting", vec![beginning(whole), rejected]),
            ("breaking", vec![FakeReply::broken(whole)]),
            ("late", vec![FakeReply::never()]),
        ];
        for (name, answers) in answers {
            let set = |settings: &mut Settings| {
                full(settings);
                settings.upstream.timeouts.first_byte = Duration::from_millis(500);
            };
            self.before_answers(name, new_store(), answers, set).await;
        }
        // Each answer takes a while, to watch its progress.
        let watched = script(whole, 700, &Behaviour::AS_ASKED);
        let drips = [Some(Fault::Drip(250)); 9];
        self.before_script("watched", new_store(), (watched, &drips), full)
            .await;
    }

    /// Gateways with other settings and stores.
    async fn with_other_settings(&mut self, stage: &Stage) {
        let base = self.scripted[0].base();
        let keyed = |settings: &mut Settings| {
            full(settings);
            settings.keys = Keys::new([KEY.to_owned()]);
        };
        let off = |settings: &mut Settings| settings.record = Record::Off;
        let reported = Some(stage.store());
        let addresses = &mut self.addresses;
        addresses["crowd"] = json!(serve_with(&base, Some(crowd()), |_| {}).await);
        addresses["empty"] = json!(serve_with(&base, Some(new_store()), full).await);
        addresses["storeless"] = json!(serve(&base, |_| {}).await);
        addresses["unrecorded"] = json!(serve_with(&base, Some(new_store()), off).await);
        addresses["metadata"] = json!(serve_with(&base, Some(new_store()), |_| {}).await);
        addresses["keyed"] = json!(serve_with(&base, Some(new_store()), keyed).await);
        let named = |settings: &mut Settings| {
            full(settings);
            settings.store_shown = Some("sqlite:///var/lib/shop/runs.db".to_owned());
        };
        addresses["pipelines"] = json!(serve_with(&base, reported.clone(), named).await);
        addresses["pipelines_untold"] = json!(serve_with(&base, reported, |_| {}).await);
    }

    /// A gateway in front of a scripted model.
    async fn before_script(
        &mut self,
        name: &str,
        store: Arc<dyn Store>,
        (script, faults): (Script, &[Option<Fault>]),
        set: impl FnOnce(&mut Settings),
    ) {
        let upstream = ScriptedServer::start(script, faults).await;
        let upstream = upstream.expect("a server");
        self.addresses[name] = json!(serve_with(&upstream.base(), Some(store), set).await);
        self.scripted.push(upstream);
    }

    /// A gateway in front of a model with these answers.
    async fn before_answers(
        &mut self,
        name: &str,
        store: Arc<dyn Store>,
        answers: Vec<FakeReply>,
        set: impl FnOnce(&mut Settings),
    ) {
        let upstream = Fake::start(answers).await;
        self.addresses[name] = json!(serve_with(&upstream.base, Some(store), set).await);
        self.fakes.push(upstream);
    }
}

/// An answer that was cut.
fn beginning(document: &str) -> FakeReply {
    FakeReply::content(&document[..1987], "length")
}

/// Two choices, the second of them cut.
fn two_choices() -> FakeReply {
    let choice = |index: usize, content: &str, finish: &str| {
        let message = json!({ "role": "assistant", "content": content });
        json!({ "index": index, "message": message, "finish_reason": finish })
    };
    FakeReply::choices(&json!([
        choice(0, "{\"first\": {\"rows\": [{\"t\": \"a\"}]}}", "stop"),
        choice(
            1,
            "{\"second\": {\"rows\": [{\"t\": \"b\"}, {\"t\": \"ccc",
            "length"
        ),
    ]))
}

/// Two tool calls, the second of them cut.
fn two_calls() -> FakeReply {
    let call = |index: usize, arguments: &str| {
        let function = json!({ "name": "note", "arguments": arguments });
        json!({ "index": index, "id": format!("call_{index}"), "type": "function", "function": function })
    };
    let calls = [call(0, "{\"port\": \"Oslo\"}"), call(1, "{\"port\": \"Ber")];
    let message = json!({ "role": "assistant", "content": null, "tool_calls": calls });
    FakeReply::choices(&json!([{ "index": 0, "message": message, "finish_reason": "length" }]))
}

/// Many steps with loops, branches and every kind of event.
const ROUNDS: Play<'_> = Play {
    example: "../crates/overlock-gateway/tests/it/page/rounds.yaml",
    question: "Who closes an order, and what is left in the table after that?",
    max_context_tokens: None,
    first_model: None,
    history: &[],
    replies: &[
        Reply::Says(r#"{"area": "code", "query": "close order"}"#),
        Reply::Says(r#"{"action": "search", "query": "orders closed log note"}"#),
        Reply::Says("Orders.Close notes the id in the log and sets Closed by an UPDATE."),
        Reply::Says(r#"{"action": "next", "query": "orders table"}"#),
        Reply::Says("CloseOrder sets Closed of dbo.Orders; the row stays."),
        Reply::Says(r#"{"action": "search", "query": "procedure close order"}"#),
        Reply::Says("The table has Id and Closed, and nothing is ever deleted."),
        Reply::Says(r#"{"action": "next", "query": "log not✂"#),
        Reply::Says(r#""query": "log note"}"#),
        Reply::Says("The log has the ids of all orders that were closed."),
        Reply::SaysUncounted(r#"{"action": "answer", "query": "<img src=x onerror=alert(1)>"}"#),
        Reply::Says("Two things close an order: `Orders.Close`, which notes it in the log and✂"),
        Reply::Says(
            "which notes it in the log and <b>updates</b> the table, and `dbo.CloseOrder`. \
             The row of the order stays, with Closed = 1.",
        ),
    ],
};

/// Answers that end in every way there is, in the order in which the browser asks for them.
fn ends() -> Vec<FakeReply> {
    let refusal = json!({
        "role": "assistant", "content": null,
        "refusal": "I am sorry, <b>I cannot</b> help with that.",
    });
    let declined = json!([{ "index": 0, "message": refusal, "finish_reason": "stop" }]);
    let night = "It was a dark and stormy night; the rain fell in torrents, except at occasional";
    vec![
        FakeReply::content(
            "{\"title\": \"Tides\", \"rows\": [1, 2, \"thr",
            "content_filter",
        ),
        FakeReply::content(night, "length"),
        FakeReply::streamed_content(
            "in torrents, except at occasional intervals, when it was checked by a violent gust",
            "length",
        ),
        FakeReply::streamed_content(" of wind\nwhich swept up the streets.", "stop"),
        FakeReply::content(night, "length"),
        FakeReply::choices(&declined),
        FakeReply::content("I am sorry, but <i>that</i> is no document.", "stop"),
        FakeReply::content(
            "```json\n{'a': 1, 'b': None, // c\n 'c': [1,2,]}\n```",
            "stop",
        ),
        FakeReply::content("Hello! Ports are nice.", "stop"),
        FakeReply::content("Once upon a time", "abort"),
        FakeReply::hanging("Once upon a time there was"),
    ]
}

/// A store with more runs than one page of the list.
fn crowd() -> Arc<dyn Store> {
    let store = overlock_store::in_memory().expect("a store");
    let written = store.transact(&mut |writes| {
        for number in 0..1204_u64 {
            let id = RunId::new(1_700_000_000_000 + number, number);
            let (model, ending) = match number {
                0 => ("the-very-first", COMPLETE),
                1..=4 => ("a-model", FAILED),
                1104.. => ("one-of-a-hundred", COMPLETE),
                _ => ("a-model", COMPLETE),
            };
            let begun = NewRun {
                id: &id,
                at: 1_700_000_000_000 + number,
                model,
                request: r#"{"messages": []}"#,
                options: &serde_json::to_string(&ContinuationOptions::default()).expect("JSON"),
                conditions: "{}",
            };
            let reported = writes.add_ended(&EndedRun {
                begun,
                steps: &[],
                at: 1_700_000_000_900 + number,
                outcome: ending,
            });
            reported.expect("it is written");
        }
    });
    written.expect("they are written");
    store
}

const COMPLETE: &str = r#"{"outcome": "complete", "input_tokens": 10, "output_tokens": 5, "window": 8192, "peak_tokens": 15}"#;
const FAILED: &str = r#"{"outcome": "failed", "reason": "model-error", "input_tokens": 100, "output_tokens": 25, "window": 8192, "peak_tokens": 125}"#;

/// Runs of pipelines that are over: one that found its answer, one that had to make room for more,
/// one of many steps, one whose context has texts twice, one whose texts were made smaller on demand,
/// one that asked two models, one with a long question and a long answer, and some that failed.
fn pipeline_runs() -> (Stage, Value) {
    let stage = Stage::new();
    let refused = Play {
        replies: &[Reply::Refuses("the key `sk-…7Q` was revoked")],
        ..ANSWER
    };
    let unreachable = Play {
        replies: &[Reply::Unreachable],
        ..ANSWER
    };
    let misfit = Play {
        max_context_tokens: Some(20),
        ..ANSWER
    };
    let twice = Play {
        max_context_tokens: Some(2000),
        replies: &[LOOP.replies[0], LOOP.replies[3]],
        ..LOOP
    };
    let demand = Play {
        example: "compact_on_demand.yaml",
        replies: &[
            Reply::Says(r#"{"outline_is_enough": true, "query": "orders closed"}"#),
            Reply::Says("Orders have an Id, and are closed or not."),
        ],
        ..ANSWER
    };
    let models = Play {
        first_model: Some("unpriced-model"),
        ..LOOP
    };
    // Both would bury what stands below them.
    let question = "What closes an order, and what does not? ".repeat(1000);
    let answer: &str = "CloseOrder does.\n".repeat(20_000).leak();
    let long = Play {
        question: &question,
        replies: &[Reply::Says(answer)],
        ..ANSWER
    };
    let plays = [
        ("finished", ANSWER),
        ("models", models),
        ("long", long),
        ("over", LOOP),
        ("failed", refused),
        ("unreachable", unreachable),
        ("misfit", misfit),
        ("twice", twice),
        ("demand", demand),
        ("rounds", ROUNDS),
    ];
    let mut names = json!({});
    for (name, play) in plays {
        let playing = stage.play(&play);
        names[name] = json!(playing.id);
        playing.end();
    }
    (stage, names)
}

/// Controls a pipeline run for the browser: each path of its address is an action. The reply is the
/// id of the run.
struct Prompter {
    stage: Stage,
    playing: Mutex<Option<Playing>>,
}

impl Prompter {
    async fn start(stage: Stage) -> String {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let prompter = Arc::new(Self {
            stage,
            playing: Mutex::default(),
        });
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let prompter = Arc::clone(&prompter);
                let service = service_fn(move |request: Request<Incoming>| {
                    let (prompter, path) = (Arc::clone(&prompter), request.uri().path().to_owned());
                    async move {
                        let done = spawn_blocking(move || prompter.act(&path));
                        let id = done.await.expect("no panic");
                        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(id))))
                    }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        address
    }

    /// Performs the action of a path, and returns the id of the run.
    fn act(&self, path: &str) -> String {
        let mut held = self.playing.lock().expect("no panic");
        let mut words = path.trim_start_matches('/').split('/');
        let (word, rest) = (words.next().unwrap_or_default(), words.next());
        let playing = match (word, held.take()) {
            ("play", None) => self.stage.play(&LOOP),
            ("resume", None) => {
                let (id, answered) = rest.and_then(|it| it.rsplit_once('-')).expect("a run");
                let answered: usize = answered.parse().expect("how many answers it had");
                let id = id.parse().expect("the name of a run");
                self.stage.resume(&id, &LOOP.replies[answered..])
            }
            ("release", Some(playing)) => {
                playing.release(1);
                playing
            }
            (word, Some(playing)) => {
                let id = playing.id.to_string();
                match word {
                    "end" => drop(playing.end()),
                    "kill" => playing.kill(),
                    "cancel" => playing.cancel(),
                    word => panic!("unknown action {word}"),
                }
                return id;
            }
            (word, None) => panic!("no run to {word}"),
        };
        let id = playing.id.to_string();
        *held = Some(playing);
        id
    }
}

/// A model of the registry with prices.
fn priced(name: &str) -> (String, Model) {
    let price = |text: &str| text.parse().expect("a price");
    let prices = Prices {
        input: price("0.15"),
        output: price("0.6"),
        cached_input: None,
    };
    let model = Model {
        prices: Some(prices),
        ..Models::default().find(name).model
    };
    (name.to_owned(), model)
}

/// A readable sample document.
fn levels() -> String {
    const STATIONS: &str = "North Quay,South Quay,Lock,Lighthouse,Ferry,Old Mole,Yard,Bridge";
    const DAYS: &str = "Mon Tue Wed Thu Fri Sat Sun";
    let mut height = 400;
    let mut stations = Vec::new();
    for station in STATIONS.split(',') {
        let mut rows = Vec::new();
        for (day, hour) in DAYS.split(' ').flat_map(|day| [(day, 6), (day, 18)]) {
            height = 350 + (height * 37 + 11) % 120;
            rows.push(format!("      [\"{day} {hour:02}:00\", {height}]"));
        }
        let rows = rows.join(",\n");
        stations.push(format!(
            "    {{\"name\": \"{station}\", \"levels\": [\n{rows}\n    ]}}"
        ));
    }
    let stations = stations.join(",\n");
    format!(
        "{{\n  \"title\": \"Water levels of the week\",\n  \"stations\": [\n{stations}\n  ]\n}}"
    )
}

/// A long document with HTML and scripts.
fn hostile() -> String {
    let items: Vec<Value> = (0..10_000)
        .map(|number| json!({ "number": number, "name": format!("<b>item {}</b>", number * 7919) }))
        .collect();
    json!({
        "a": "</script><script>document.title = 'hit'; alert(1)</script>",
        "b": "javascript:alert(1)",
        "c": "<img src=x onerror=alert(1)><iframe srcdoc='<script>alert(1)</script>'></iframe>",
        "\u{202e}<style>*{display:none}</style>": "\u{0}\u{7}\u{1b}[31m",
        "items": items,
    })
    .to_string()
}

/// A document with right-to-left text and direction controls.
fn turned() -> String {
    let rows: Vec<Value> = (0..9)
        .map(|number| json!({ "שם": format!("נמל {number} (צפון)"), "rule": "\u{202e}\u{2066}// for all\u{2069} \u{2066}" }))
        .collect();
    json!({
        "title": "דוח מפלס המים, שבוע 46",
        "ar": "مرحبا بالعالم",
        "zero\u{200b}width\u{feff}": "tag \u{e0041}\u{e0042}, end \u{202c}\u{200f}",
        "emoji": "👩‍👩‍👧‍👦 🏳️‍🌈 ❤️",
        "cjk": "日本語の文章がここにあります。港の水位を報告する。".repeat(3),
        "rows": rows,
    })
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a browser from npm: run cargo xtask test page"]
async fn every_view_works_in_a_browser() {
    let gateways = Gateways::open().await;
    let asked = json!({
        "gateways": gateways.addresses,
        "documents": gateways.documents,
        "key": KEY,
        "pipelines": gateways.pipelines,
        "chromium": std::env::var("OVERLOCK_CHROMIUM").ok(),
        "long": std::env::var_os("OVERLOCK_LONG").is_some(),
        "screenshots": std::env::var_os("OVERLOCK_SCREENSHOTS").map(|folder| root().join(folder)),
    });
    let reported = spawn_blocking(move || browse(&asked)).await;
    let looked = reported.expect("no panic")["looked"].clone();
    let looked = looked.as_array().expect("a list");
    println!("\nlooked at {} views\n", looked.len());
    assert!(looked.len() > 40, "{looked:?}");
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn browse(asked: &Value) -> Value {
    let folder: PathBuf = std::env::var_os("OVERLOCK_PAGE")
        .expect("`cargo xtask test page` installs a browser and runs this test")
        .into();
    // A script without a file finds packages relative to the working directory.
    let mut node = Command::new("node")
        .current_dir(&folder)
        .args(["--input-type=module", "--eval"])
        .arg(include_str!("page/browser.mjs"))
        // Without the proxies of the user.
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", &folder)
        .env("TMPDIR", folder.join("unpacked"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the script starts");
    let mut input = node.stdin.take().expect("it listens");
    input
        .write_all(asked.to_string().as_bytes())
        .expect("it reads");
    drop(input);
    let output = node.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{complaints}");
    let reported = said.lines().last().unwrap_or_default();
    serde_json::from_str(reported).unwrap_or_else(|error| panic!("{error}: {said}\n{complaints}"))
}
