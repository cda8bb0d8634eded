use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Response, StatusCode};
use overlock_gateway::{Gateway, Keys, Settings, Upstream};
use overlock_llm::ContinuationOptions;
use overlock_llm::testing::{Behaviour, Fault, ScriptedServer, eventually, within_patience};
use overlock_runs::Record;
use overlock_store::{Access, NewRun, RunId, Store, StoreAddress};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};

use crate::door::{
    Door, TestResponse, ask, open, open_with, report, script, serve, serve_with, until_called,
};
use crate::fake::{Fake, FakeReply};

const ALL: &str = "/api/runs/events";

/// A received event.
#[derive(Clone, Debug)]
pub(crate) struct SseEvent {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) data: Value,
}

/// An event stream that is read event by event.
pub(crate) struct EventStream {
    response: Response<Incoming>,
    read: Vec<u8>,
}

impl EventStream {
    async fn to(address: &str, path: &str) -> Self {
        Self::after(address, path, None).await
    }

    pub(crate) async fn after(address: &str, path: &str, last: Option<&str>) -> Self {
        let headers: Vec<_> = last
            .map(|last| ("last-event-id", last))
            .into_iter()
            .collect();
        let response = open_with(address, path, &headers).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-cache");
        Self {
            response,
            read: Vec::new(),
        }
    }

    /// The next event other than progress, which may arrive at any time; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<SseEvent> {
        loop {
            let received = self.any().await?;
            if received.name != "growing" {
                return Some(received);
            }
        }
    }

    /// The first progress event that satisfies a condition.
    async fn growing(&mut self, is_so_far: impl Fn(&Value) -> bool) -> Value {
        loop {
            let received = self.any().await.expect("an event");
            if received.name == "growing" && is_so_far(&received.data) {
                return received.data;
            }
        }
    }

    async fn any(&mut self) -> Option<SseEvent> {
        loop {
            let mut pairs = self.read.windows(2);
            if let Some(end) = pairs.position(|pair| pair == b"\n\n") {
                let event: Vec<u8> = self.read.drain(..end + 2).collect();
                match parsed(&String::from_utf8(event).expect("text")) {
                    Some(received) => return Some(received),
                    None => continue,
                }
            }
            let frame = within_patience("an event", self.response.frame()).await;
            let data = frame?.expect("no error").into_data();
            // A character may come in two pieces.
            self.read.extend_from_slice(&data.expect("data"));
        }
    }

    /// All events up to the first of this name.
    pub(crate) async fn until(&mut self, name: &str) -> Vec<SseEvent> {
        let mut received = Vec::new();
        loop {
            let next = self.next().await;
            let Some(next) = next else {
                panic!("no `{name}` came, but {:?}", names(&received));
            };
            received.push(next);
            if received
                .last()
                .is_some_and(|received| received.name == name)
            {
                return received;
            }
        }
    }
}

fn parsed(event: &str) -> Option<SseEvent> {
    let field = |name: &str| {
        let mut lines = event.lines();
        lines.find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(": ")?.to_owned()))
    };
    Some(SseEvent {
        name: field("event")?,
        id: field("id"),
        data: serde_json::from_str(&field("data")?).expect("data is JSON"),
    })
}

pub(crate) fn names(received: &[SseEvent]) -> Vec<&str> {
    received.iter().map(|received| &*received.name).collect()
}

/// A model that cuts its answers, and a gateway that records its runs.
async fn door(record: Record, faults: &[Option<Fault>]) -> Door {
    door_with(record, faults, |_| {}).await
}

async fn door_with(
    record: Record,
    faults: &[Option<Fault>],
    set: impl FnOnce(&mut Settings),
) -> Door {
    let script = script(&report(12_000), 1500, &Behaviour::AS_ASKED);
    let upstream = ScriptedServer::start(script, faults)
        .await
        .expect("a server");
    let store = overlock_store::in_memory().expect("a store");
    let set = |settings: &mut Settings| {
        settings.record = record;
        set(settings);
    };
    let address = serve_with(&upstream.base(), Some(store), set).await;
    Door { address, upstream }
}

/// The document that steps make together.
fn document_of(steps: &[&SseEvent]) -> String {
    let mut document = String::new();
    for step in steps {
        let result = &step.data["result"];
        if let (Some(offset), Some(added)) = (result["offset"].as_u64(), result["added"].as_str()) {
            document.truncate(usize::try_from(offset).expect("small"));
            document.push_str(added);
        }
    }
    document
}

#[tokio::test]
async fn sends_all_events_of_a_run_in_order() {
    for (stream, record) in [
        (false, Record::Full),
        (true, Record::Full),
        (false, Record::Metadata),
        (true, Record::Metadata),
    ] {
        let door = door(record, &[]).await;
        let mut listening = EventStream::to(&door.address, ALL).await;
        let running = listening.next().await.expect("an event");
        assert_eq!(
            (&*running.name, &running.data),
            ("running", &json!({ "runs": [] }))
        );
        let got = door.chat(&ask(stream), &[]).await;
        let received = listening.until("ended").await;
        let calls = door.upstream.asked().len();
        assert_eq!(calls, 7);
        let mut expected = vec!["began"];
        expected.extend(["asking", "step"].repeat(calls));
        expected.push("ended");
        assert_eq!(names(&received), expected);

        let run = got.header("x-overlock-run");
        let shown = door.get(&format!("/api/runs/{run}")).await.json();
        let (began, ended) = (&received[0].data, &received[received.len() - 1].data);
        assert_eq!((&began["id"], &ended["id"]), (&json!(run), &json!(run)));
        assert_eq!(
            (&began["outcome"], &began["iterations"]),
            (&Value::Null, &json!(0))
        );
        // The last event has the same data as the recorded run.
        for name in ["began_at", "model", "outcome", "iterations"] {
            assert_eq!(ended[name], shown[name], "{name}");
        }
        let steps: Vec<&SseEvent> = received
            .iter()
            .filter(|received| received.name == "step")
            .collect();
        for (number, step) in (1..).zip(&steps) {
            assert_eq!(step.data["number"], number);
            assert_eq!(step.data["run"], run);
            let mut data = step.data.clone();
            let data = data.as_object_mut().expect("an object");
            data.retain(|name, _| name != "run" && name != "number");
            let result = data.get_mut("result").and_then(Value::as_object_mut);
            let added = result.and_then(|result| result.remove("added"));
            assert_eq!(added.is_some(), record == Record::Full, "{data:?}");
            assert_eq!(json!(data), shown["steps"][number - 1]);
        }
        let document = if record == Record::Full {
            report(12_000)
        } else {
            String::new()
        };
        assert_eq!(document_of(&steps), document);
        let text = format!("{received:?}");
        assert_eq!(text.contains("section-0\\"), record == Record::Full);
    }
}

#[tokio::test]
async fn reports_the_progress_of_an_answer() {
    for record in [Record::Full, Record::Metadata] {
        // The second answer never ends.
        let door = door_with(record, &[None, Some(Fault::Silence(2000))], |settings| {
            let price = |text: &str| text.parse().expect("a price");
            let prices = overlock_budget::Prices {
                input: price("1000000"),
                output: price("1000000"),
                cached_input: None,
            };
            let models = overlock_budget::Models::default();
            let model = overlock_budget::Model {
                prices: Some(prices),
                ..models.find("gpt-4o").model
            };
            settings.models = overlock_budget::Models::with_own([("gpt-4o".to_owned(), model)]);
        })
        .await;
        let mut all = EventStream::to(&door.address, ALL).await;
        let request = ask(true);
        let mut chat = Box::pin(door.chat(&request, &[]));
        let listen = async {
            let received = all.until("step").await;
            let step = received.last().expect("a step").data.clone();
            let has_come = |received: &Value| received["number"] == 2 && received["bytes"] != 0;
            let growing = all.growing(has_come).await;
            // A later subscriber gets it too.
            let run = growing["run"].as_str().expect("a name").to_owned();
            let path = format!("/api/runs/{run}/events");
            let mut one = EventStream::to(&door.address, &path).await;
            let late = one.growing(has_come).await;
            (step, growing, late)
        };
        let (step, growing, late) = tokio::select! {
            _ = &mut chat => panic!("it is never answered"),
            listened = listen => listened,
        };
        for received in [&growing, &late] {
            let number = |name: &str| {
                received[name]
                    .as_u64()
                    .unwrap_or_else(|| panic!("{received}"))
            };
            assert!(number("tokens") > 0 && number("tokens") < number("bytes"));
            let before = step["tokens"].as_u64().expect("a number");
            assert_eq!(
                number("output_tokens"),
                before + number("tokens"),
                "{received}"
            );
            assert!(number("input_tokens") > step["reported"]["input"].as_u64().expect("a number"));
            // A token costs one, so the cost is the number of tokens.
            let cost = number("input_tokens") + number("output_tokens");
            assert_eq!(received["cost"]["amount"], cost.to_string());
            let text = received["text"].as_str();
            assert_eq!(text.is_some(), record == Record::Full, "{received}");
            if let Some(text) = text {
                let line = text.lines().nth(2).expect("a whole line");
                assert!(report(12_000).contains(line), "{text}");
            }
        }
    }
}

#[tokio::test]
async fn replays_a_run_from_its_beginning_to_late_subscribers() {
    for stream in [false, true] {
        // The third call is not answered before the client disconnects.
        let door = door(Record::Full, &[None, None, Some(Fault::NoAnswer)]).await;
        let mut all = EventStream::to(&door.address, ALL).await;
        let request = ask(stream);
        let (run, received) = {
            let mut chat = Box::pin(door.chat(&request, &[]));
            let listen = async {
                let began = all.until("began").await;
                let run = began[1].data["id"].as_str().expect("a name").to_owned();
                until_called(&door.upstream, 3).await;
                let path = format!("/api/runs/{run}/events");
                let mut one = EventStream::to(&door.address, &path).await;
                let mut received = Vec::new();
                while received.len() < 4 {
                    received.push(one.next().await.expect("an event"));
                }
                let late = EventStream::to(&door.address, ALL).await.next().await;
                assert_eq!(late.expect("an event").data, json!({ "runs": [run] }));
                (run, received, one)
            };
            let (run, mut received, mut one) = tokio::select! {
                _ = &mut chat => panic!("it is never answered"),
                listened = listen => listened,
            };
            assert_eq!(names(&received), ["began", "step", "step", "asking"]);
            drop(chat);
            received.extend(one.until("ended").await);
            assert!(one.next().await.is_none(), "nothing comes after the end");
            (run, received)
        };
        let ended = received.last().expect("an event");
        assert_eq!(ended.data["outcome"], "partial");
        assert_eq!(ended.data["reason"], "cancelled");

        // The same after the end, and only the remaining events after a reconnect.
        let path = format!("/api/runs/{run}/events");
        let mut again = EventStream::to(&door.address, &path).await;
        let again = again.until("ended").await;
        assert_eq!(names(&again), ["began", "step", "step", "ended"]);
        let without_asking = received.iter().filter(|received| received.name != "asking");
        for (one, other) in without_asking.zip(&again) {
            assert_eq!((&one.id, &one.data), (&other.id, &other.data));
        }
        let mut rest = EventStream::after(&door.address, &path, again[1].id.as_deref()).await;
        assert_eq!(names(&rest.until("ended").await), ["step", "ended"]);
        let last = ended.id.as_deref().expect("an id");
        let nothing = open_with(&door.address, &path, &[("last-event-id", last)]).await;
        assert_eq!(nothing.status(), StatusCode::NO_CONTENT);
    }
}

#[tokio::test]
async fn with_metadata_only_a_late_subscriber_gets_a_lagged_event() {
    let door = door(Record::Metadata, &[None, None, Some(Fault::NoAnswer)]).await;
    let request = ask(false);
    let mut chat = Box::pin(door.chat(&request, &[]));
    let listen = async {
        until_called(&door.upstream, 3).await;
        let mut all = EventStream::to(&door.address, ALL).await;
        let running = all.next().await.expect("an event");
        let run = running.data["runs"][0].as_str().expect("a run").to_owned();
        EventStream::to(&door.address, &format!("/api/runs/{run}/events")).await
    };
    let mut one = tokio::select! {
        _ = &mut chat => panic!("it is never answered"),
        one = listen => one,
    };
    drop(chat);
    // Steps from before the subscription are not in the log.
    let received = one.until("ended").await;
    assert_eq!(names(&received), ["lagged", "ended"]);
    assert_eq!(received[1].data["iterations"], 2);
}

#[tokio::test]
async fn a_run_with_a_key_is_interrupted_and_resumed() {
    let door = door(Record::Full, &[None, None, Some(Fault::NoAnswer)]).await;
    let mut all = EventStream::to(&door.address, ALL).await;
    let (request, key) = (ask(false), [("idempotency-key", "one")]);
    tokio::select! {
        _ = door.chat(&request, &key) => panic!("it is never answered"),
        () = until_called(&door.upstream, 3) => {}
    }
    let first = all.until("interrupted").await;
    let run = first.last().expect("an event").data["id"].clone();
    let path = format!("/api/runs/{}/events", run.as_str().expect("a name"));
    let mut one = EventStream::to(&door.address, &path).await;
    let received = one.until("interrupted").await;
    assert_eq!(names(&received), ["began", "step", "step", "interrupted"]);
    assert!(one.next().await.is_none());

    door.chat(&request, &key).await;
    let rest = all.until("ended").await;
    assert_eq!((&rest[0].name[..], &rest[0].data["id"]), ("began", &run));
    assert_eq!(rest[0].data["iterations"], 2);
    assert_eq!(rest[2].data["number"], 3);
    // A replay has no run.
    door.chat(&request, &key).await;
    door.chat(&request, &[]).await;
    let other = all.until("ended").await;
    assert_eq!(other[0].name, "began");
    assert_ne!(other[0].data["id"], run);
}

/// A gateway that retries once.
async fn retrying_gateway(faults: &[Option<Fault>]) -> Door {
    let set = |settings: &mut Settings| {
        settings.upstream.retries.retries = 1;
        settings.upstream.retries.first_wait = Duration::from_millis(1);
    };
    door_with(Record::Metadata, faults, set).await
}

#[tokio::test]
async fn a_retried_call_is_reported_and_recorded() {
    let unwell = Some(Fault::Status(503, None));
    let door = retrying_gateway(&[None, unwell]).await;
    let mut all = EventStream::to(&door.address, ALL).await;
    let got = door.chat(&ask(false), &[]).await;
    let received = all.until("ended").await;
    let asked = ["asking", "retrying", "step"];
    let begin = ["running", "began", "asking", "step"];
    assert_eq!(names(&received)[..7], [&begin[..], &asked[..]].concat());
    let retrying = &received[5].data;
    assert_eq!(retrying["number"], 2);
    assert!(retrying["wait_ms"].is_u64(), "{retrying}");
    let why = retrying["error"].as_str().expect("a reason");
    assert!(why.contains("503"), "{why}");
    let run = got.header("x-overlock-run");
    let run = door.get(&format!("/api/runs/{run}")).await.json();
    let retried = &run["steps"][1]["retried"];
    assert_eq!(
        (&retried["times"], &retried["error"]),
        (&json!(1), &json!(why))
    );
    assert_eq!(run["steps"][0]["retried"], Value::Null);
}

#[tokio::test]
async fn reports_retries_that_failed() {
    let unwell = Some(Fault::Status(503, None));
    let door = retrying_gateway(&[None, unwell, unwell]).await;
    door.chat(&ask(false), &[]).await;
    let fault = &door.get("/api/runs").await.json()[0]["upstream_fault"];
    assert_eq!(
        (&fault["status"], &fault["retried"]["times"]),
        (&json!(503), &json!(1))
    );
}

#[tokio::test]
async fn a_reconnected_subscriber_continues_after_its_last_event() {
    let door = door(Record::Full, &[]).await;
    let mut all = EventStream::to(&door.address, ALL).await;
    door.chat(&ask(false), &[]).await;
    let received = all.until("ended").await;
    drop(all);
    for (index, had) in received.iter().enumerate() {
        let mut rest = EventStream::after(&door.address, ALL, had.id.as_deref()).await;
        if index + 1 == received.len() {
            door.chat(&ask(false), &[]).await;
            assert_eq!(rest.next().await.expect("an event").name, "began");
            continue;
        }
        let rest = rest.until("ended").await;
        assert_eq!(names(&rest), names(&received[index + 1..]));
    }
    // An event id of an earlier process, and an invalid one.
    let mut other = EventStream::after(&door.address, ALL, Some("1-1")).await;
    assert_eq!(other.next().await.expect("an event").name, "lagged");
    assert_eq!(other.next().await.expect("an event").name, "running");
    let mut nonsense = EventStream::after(&door.address, ALL, Some("nonsense")).await;
    assert_eq!(nonsense.next().await.expect("an event").name, "running");
}

/// A client that asks for events and does not read them.
async fn stuck_client(address: &str) -> TcpStream {
    let mut client = TcpStream::connect(address.trim_start_matches("http://"))
        .await
        .expect("a gateway");
    let request = format!("GET {ALL} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    client.write_all(request.as_bytes()).await.expect("sent");
    let mut head = [0; 12];
    let read = within_patience("the events", client.read_exact(&mut head)).await;
    read.expect("an answer");
    assert_eq!(&head, b"HTTP/1.1 200");
    client
}

/// Large runs, with more events than the log or a connection holds.
async fn make_large_runs(door: &Door<Fake>, runs: usize) {
    for _ in 0..runs {
        let got = door.chat(&ask(false), &[]).await;
        assert_eq!(got.status, StatusCode::OK, "{}", got.body);
    }
}

async fn large_run_gateway() -> (Door<Fake>, Arc<dyn Store>) {
    let content = json!({ "text": "a line of text\n".repeat(40_000) }).to_string();
    let upstream = Fake::start(vec![FakeReply::content(&content, "stop")]);
    let door = Door {
        address: String::new(),
        upstream: upstream.await,
    };
    (door, overlock_store::in_memory().expect("a store"))
}

#[tokio::test]
async fn a_slow_subscriber_gets_a_lagged_event_and_delays_no_run() {
    let (mut door, store) = large_run_gateway().await;
    let set = |settings: &mut Settings| {
        settings.record = Record::Full;
        // Long enough that no connection times out on a slow machine.
        settings.limits.write_time = Duration::from_hours(1);
    };
    door.address = serve_with(&door.upstream.base, Some(store), set).await;
    let mut client = stuck_client(&door.address).await;
    make_large_runs(&door, 30).await;
    let mut got = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    let lagged = b"event: lagged";
    // Only the new text is searched, with a little of the earlier text.
    loop {
        let from = got.len().saturating_sub(lagged.len());
        let read = within_patience("a lag", client.read(&mut buffer)).await;
        let read = read.expect("no error");
        assert!(read > 0, "the stream ended without a word");
        got.extend_from_slice(&buffer[..read]);
        if got[from..].windows(lagged.len()).any(|it| it == lagged) {
            break;
        }
    }
    // Of 30 runs of 640 kB, at most the log and the buffers of the connection were sent.
    assert!(got.len() < 16 << 20, "{}", got.len());
}

#[tokio::test]
async fn event_streams_end_at_shutdown() {
    let (mut door, store) = large_run_gateway().await;
    let mut settings = Settings::new(Upstream::new(&door.upstream.base));
    settings.record = Record::Full;
    // The subscriber does not read.
    settings.limits.shutdown_time = Duration::from_hours(1);
    let gateway = Arc::new(Gateway::new(settings, Some(store)).expect("a gateway"));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    door.address = format!("http://{}", listener.local_addr().expect("an address"));
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(gateway.serve(listener, async {
        let _ = stopped.await;
    }));
    let mut reader = EventStream::to(&door.address, ALL).await;
    let (sender, mut ended) = mpsc::unbounded_channel();
    let reading = tokio::spawn(async move {
        while let Some(received) = reader.next().await {
            if received.name == "ended" {
                sender
                    .send(received.data["id"].clone())
                    .expect("it is heard");
            }
        }
    });
    let unread = stuck_client(&door.address).await;
    for _ in 0..30 {
        let got = door.chat(&ask(false), &[]).await;
        let run = within_patience("the end of the run", ended.recv()).await;
        assert_eq!(run, Some(json!(got.header("x-overlock-run"))));
    }
    stop.send(()).expect("it serves");
    let served = within_patience("the gateway to stop", serving).await;
    served.expect("no panic").expect("no error");
    // A subscriber that reads gets the end; the connection of the other is closed.
    let read = within_patience("the end of the events", reading).await;
    read.expect("the stream ends as it should");
    drop(unread);
}

#[tokio::test]
async fn sends_the_end_of_the_last_run_before_shutdown() {
    let slowly = [Some(Fault::Drip(5)), Some(Fault::Drip(5))];
    let model = script(&report(2000), 1500, &[Behaviour::AsAsked]);
    let upstream = ScriptedServer::start(model, &slowly).await;
    let upstream = upstream.expect("a server");
    let settings = Settings::new(Upstream::new(upstream.base()));
    let store = overlock_store::in_memory().expect("a store");
    let gateway = Arc::new(Gateway::new(settings, Some(store)).expect("a gateway"));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(gateway.serve(listener, async {
        let _ = stopped.await;
    }));
    let mut reader = EventStream::to(&address, ALL).await;
    let door = Door { address, upstream };
    let asking = tokio::spawn(async move { door.chat(&ask(true), &[]).await });
    reader.until("asking").await;
    stop.send(()).expect("it serves");
    reader.until("ended").await;
    let got = asking.await.expect("no panic");
    assert!(got.body.contains("outcome=complete"), "{}", got.body);
    let served = within_patience("the gateway to stop", serving).await;
    served.expect("no panic").expect("no error");
}

#[tokio::test]
async fn a_disconnected_subscriber_frees_its_slot() {
    let set = |settings: &mut Settings| {
        settings.limits.readers = 1;
        // Subscribers hold no concurrency permits.
        settings.limits.concurrent = 1;
        settings.limits.queue = 0;
    };
    let door = door_with(Record::Metadata, &[], set).await;
    let first = EventStream::to(&door.address, ALL).await;
    let got = door.get(ALL).await;
    assert_eq!(got.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(got.json()["error"]["code"], "too-many-readers");
    assert_eq!(got.header("retry-after"), "3");
    assert_eq!(door.chat(&ask(false), &[]).await.status, StatusCode::OK);
    drop(first);
    let look = async || open(&door.address, ALL).await.status();
    eventually("a free place", look, |status| *status == StatusCode::OK).await;
}

#[tokio::test]
async fn sends_keep_alive_comments() {
    let set = |settings: &mut Settings| settings.limits.keep_alive = Duration::from_millis(5);
    let door = door_with(Record::Metadata, &[], set).await;
    let mut listening = EventStream::to(&door.address, ALL).await;
    listening.next().await.expect("an event");
    while !listening.read.ends_with(b": keep-alive\n\n") {
        let frame = within_patience("a comment", listening.response.frame()).await;
        let frame = frame.expect("more").expect("no error");
        let data = frame.into_data().expect("data");
        listening.read.extend_from_slice(&data);
    }
}

#[track_caller]
fn check_error(got: &TestResponse, status: u16, code: &str) {
    assert_eq!(got.status, status, "{}", got.body);
    assert_eq!(got.json()["error"]["code"], code);
}

#[tokio::test]
async fn sends_no_events_without_recording() {
    let off = door(Record::Off, &[]).await;
    let without_store = Door {
        address: serve("http://127.0.0.1:1/v1", |_| {}).await,
        upstream: (),
    };
    for path in [ALL, "/api/runs/019a8a3f-5c00-7d2e-9b1c-6f0a4e2d8c31/events"] {
        check_error(&off.get(path).await, 404, "not-recorded");
        check_error(&without_store.get(path).await, 404, "not-recorded");
    }
}

#[tokio::test]
async fn events_need_an_api_key_and_a_known_run() {
    let set = |settings: &mut Settings| settings.keys = Keys::new(["right-key".to_owned()]);
    let door = door_with(Record::Full, &[], set).await;
    let (run, bad) = (
        "/api/runs/019a8a3f-5c00-7d2e-9b1c-6f0a4e2d8c31/events",
        "/api/runs/nonsense/events",
    );
    for path in [ALL, run, bad] {
        assert_eq!(door.get(path).await.status, StatusCode::UNAUTHORIZED);
    }
    let key = [("x-api-key", "right-key")];
    for path in [run, bad] {
        let got = door.send(hyper::Method::GET, path, &key, "").await;
        check_error(&got, 404, "no-run");
    }
}

#[tokio::test]
async fn sends_the_records_of_a_run_of_another_process() {
    let store = overlock_store::in_memory().expect("a store");
    let id = RunId::new(1000, 1);
    let options = ContinuationOptions::default();
    let run = NewRun {
        id: &id,
        at: 1000,
        model: "gpt-4o",
        request: "{}",
        options: &serde_json::to_string(&options).expect("plain"),
        conditions: "{}",
    };
    store.begin(&run).expect("it is recorded");
    let address = serve_with("http://127.0.0.1:1/v1", Some(store), |_| {}).await;
    let mut one = EventStream::to(&address, &format!("/api/runs/{id}/events")).await;
    assert_eq!(
        names(&one.until("interrupted").await),
        ["began", "interrupted"]
    );
    assert!(one.next().await.is_none());
}

#[tokio::test]
async fn a_run_of_another_gateway_is_not_reported_as_interrupted() {
    let script = script(&report(12_000), 1500, &Behaviour::AS_ASKED);
    let faults = [None, Some(Fault::NoAnswer)];
    let upstream = ScriptedServer::start(script, &faults).await;
    let upstream = upstream.expect("a server");
    let (_folder, store) = store_in_file();
    let full = |settings: &mut Settings| settings.record = Record::Full;
    let one = Door {
        address: serve_with(&upstream.base(), Some(store()), full).await,
        upstream: (),
    };
    let other = Door {
        address: serve_with("http://127.0.0.1:1/v1", Some(store()), full).await,
        upstream: (),
    };
    let request = ask(true);
    let mut chat = Box::pin(one.chat(&request, &[]));
    let looked = async {
        until_called(&upstream, 2).await;
        let listed = other.get("/api/runs").await.json();
        let run = &listed[0];
        assert_eq!((run.get("elsewhere"), run.get("interrupted")), (None, None));
        let id = run["id"].as_str().expect("a name").to_owned();
        let path = format!("/api/runs/{id}/events");
        let mut listening = EventStream::to(&other.address, &path).await;
        let received = listening.until("step").await;
        assert_eq!(names(&received), ["began", "step"]);
        listening
    };
    let mut listening = tokio::select! {
        _ = &mut chat => panic!("it is never answered"),
        listening = looked => listening,
    };
    // The other gateway cancels it, and this one reports it.
    drop(chat);
    let ended = listening.until("ended").await;
    assert_eq!(names(&ended), ["ended"]);
    assert_eq!(ended[0].data["reason"], "cancelled");
}

/// A store in a file, as each process opens it.
fn store_in_file() -> (TempDir, impl Fn() -> Arc<dyn Store>) {
    let folder = TempDir::new().expect("a folder");
    let address = StoreAddress::Sqlite(folder.path().join("runs.db"));
    let store = move || overlock_store::open(&address, Access::Create).expect("a store");
    (folder, store)
}

#[tokio::test]
async fn a_run_whose_gateway_is_gone_is_interrupted_at_once() {
    let (_folder, store) = store_in_file();
    let other = store();
    let (worker, id) = (RunId::new(1, 1), RunId::new(now(), 1));
    let held = other.work_on(&worker).expect("a store");
    let run = NewRun {
        id: &id,
        at: now(),
        model: "gpt-4o",
        request: "{}",
        options: &json!(ContinuationOptions::default()).to_string(),
        conditions: &json!({ "worker": worker }).to_string(),
    };
    let claim = other.begin(&run).expect("it is recorded");
    let step = json!({
        "iteration": 1, "strategy": null, "tokens": 7, "kpi": null, "progress": "unknown",
        "result": {
            "result": "grown", "seam": "first", "overlap": 0, "offset": 0, "added_bytes": 2,
            "added": "[1", "scanned": 2,
        },
        "reported": { "input": 30, "output": 7 }, "counted": 7,
    });
    let added = other.add_step(&claim, 1, &step.to_string());
    added.expect("it is recorded");
    let door = Door {
        address: serve_with("http://127.0.0.1:1/v1", Some(store()), |_| {}).await,
        upstream: (),
    };
    let path = format!("/api/runs/{id}");
    let listed = async || {
        let [listed, shown] = [door.get("/api/runs").await, door.get(&path).await];
        let [listed, shown] = [listed.json()[0].clone(), shown.json()];
        let received = |run: &Value| ["interrupted", "elsewhere"].map(|name| run[name] == true);
        assert_eq!(received(&listed), received(&shown));
        received(&listed)
    };
    assert_eq!(listed().await, [false, false]);
    let mut one = EventStream::to(&door.address, &format!("{path}/events")).await;
    assert_eq!(names(&one.until("step").await), ["began", "step"]);
    drop(held);
    assert_eq!(names(&one.until("interrupted").await), ["interrupted"]);
    assert_eq!(listed().await, [true, false]);
    // Its usage counts.
    for path in ["/api/runs", "/api/runs/totals"] {
        let received = door.get(path).await.json();
        let received = received.get(0).unwrap_or(&received);
        let tokens = ["input_tokens", "output_tokens"].map(|name| received[name].as_u64());
        assert_eq!(tokens, [Some(30), Some(7)], "{path}");
    }
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let milliseconds = since.expect("it is after 1970").as_millis();
    u64::try_from(milliseconds).expect("not that far in the future")
}
