use overlock_json::PartialDocument;
use overlock_llm::testing::{Behaviour, Fault, ScriptedServer, eventually, within_patience};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::door::{Door, ask, report, script, serve, serve_with};
use crate::fake::FakeReply;

/// The content of a stream, checked event by event.
#[derive(Debug, Default)]
struct StreamSummary {
    content: String,
    finish: Vec<Value>,
    usage: Vec<Value>,
    ids: Vec<Value>,
    roles: usize,
    done: usize,
    /// The number of upstream calls.
    calls: usize,
    /// Why the run ended with a part of the document.
    reason: Option<String>,
}

#[track_caller]
fn summary_of(body: &str) -> StreamSummary {
    let mut summary = StreamSummary::default();
    for event in body.split_terminator("\n\n") {
        if event.starts_with(':') {
            continue;
        }
        let data = event.strip_prefix("data: ");
        let data = data.unwrap_or_else(|| panic!("an event is data: {event:?}"));
        assert_eq!(summary.done, 0, "nothing comes after the end: {event}");
        if data == "[DONE]" {
            summary.done += 1;
            continue;
        }
        let chunk: Value = serde_json::from_str(data).expect("an event is JSON");
        assert!(chunk.get("error").is_none(), "{chunk}");
        if !summary.ids.contains(&chunk["id"]) {
            summary.ids.push(chunk["id"].clone());
        }
        if chunk["usage"].is_object() {
            summary.usage.push(chunk["usage"].clone());
        }
        for choice in chunk["choices"].as_array().expect("choices") {
            assert!(
                summary.finish.is_empty(),
                "nothing comes after the finish: {chunk}"
            );
            let delta = &choice["delta"];
            summary.roles += usize::from(delta.get("role").is_some());
            summary
                .content
                .push_str(delta["content"].as_str().unwrap_or_default());
            if !choice["finish_reason"].is_null() {
                summary.finish.push(choice["finish_reason"].clone());
            }
        }
    }
    summary
}

/// Checks that a stream has one id, one end, one usage and one `[DONE]`.
async fn streamed(document: &str, breath: usize, behaviours: &[Behaviour]) -> StreamSummary {
    let upstream = ScriptedServer::start(script(document, breath, behaviours), &[]).await;
    let upstream = upstream.expect("a server");
    let store = overlock_store::in_memory().expect("a store");
    let address = serve_with(&upstream.base(), Some(store), |_| {}).await;
    let door = Door { address, upstream };
    let mut request = ask(true);
    request["stream_options"] = json!({ "include_usage": true });
    let mut summary = summary_of(&door.chat(&request, &[]).await.body);
    let look = async || door.get("/api/runs").await.json()[0].clone();
    let run = eventually("the run to end", look, |run| run["ended_at"].is_number()).await;
    let reason = run["reason"].as_str();
    summary.reason = reason.map(str::to_owned);
    summary.calls = door.upstream.calls();
    assert_eq!((summary.ids.len(), summary.roles, summary.done), (1, 1, 1));
    assert_eq!((summary.finish.len(), summary.usage.len()), (1, 1));
    summary
}

#[tokio::test]
async fn a_cut_document_is_one_stream() {
    for (bytes, breath, calls) in [(2_000, 300, 6), (12_000, 1500, 7), (60_000, 4000, 12)] {
        let document = report(bytes);
        let summary = streamed(&document, breath, &Behaviour::AS_ASKED).await;
        assert_eq!(summary.content, document);
        assert_eq!(summary.finish, ["stop"]);
        assert_eq!(summary.calls, calls, "{bytes} bytes");
    }
}

#[tokio::test]
async fn bytes_sent_to_the_client_are_never_revised() {
    /// Behaviours that end with a part of the document: length of an answer and reason.
    const PARTIAL: [(Behaviour, usize, Option<&str>); 0] = [];
    let document = report(12_000);
    let value: Value = serde_json::from_str(&document).expect("valid");
    let mut partial = Vec::new();
    for behaviour in Behaviour::ALL {
        for breath in [300, 900, 2500] {
            let summary = streamed(&document, breath, &[behaviour, Behaviour::AsAsked]).await;
            if summary.finish == ["stop"] {
                let is: Value = serde_json::from_str(&summary.content).expect("valid");
                assert_eq!(is, value, "{behaviour:?}");
            } else {
                assert_eq!(summary.finish, ["length"], "{behaviour:?}");
                partial.push((behaviour, breath, summary.reason));
                let base = PartialDocument::read(&summary.content).expect("a document has begun");
                assert!(base.cut().is_some() && base.fixes().is_empty());
            }
        }
    }
    let partial: Vec<_> = partial
        .iter()
        .map(|(behaviour, breath, reason)| (*behaviour, *breath, reason.as_deref()))
        .collect();
    assert_eq!(partial, PARTIAL);
}

#[tokio::test]
async fn continues_an_answer_whose_stream_breaks_off() {
    let document = report(12_000);
    let both = |fault| [Some(fault), None, Some(fault)];
    for faults in [
        both(Fault::MalformedEvent),
        both(Fault::ErrorEvent),
        both(Fault::WrongFinish),
        both(Fault::Reset(3000)),
        [
            None,
            Some(Fault::Reset(3000)),
            Some(Fault::Status(503, None)),
        ],
    ] {
        let script = script(&document, 1500, &Behaviour::AS_ASKED);
        let door = Door::open(script, &faults).await;
        let summary = summary_of(&door.chat(&ask(true), &[]).await.body);
        assert_eq!(summary.content, document, "{faults:?}");
        assert_eq!(summary.finish, ["stop"]);
    }
}

#[tokio::test]
async fn counts_failed_continuations() {
    for (fault, reason) in [
        (Fault::Status(503, None), "server_error"),
        (Fault::Status(429, None), "rate_limited"),
        (Fault::Reset(1), "broken"),
        (Fault::MalformedEvent, "broken"),
    ] {
        for stream in [false, true] {
            let script = script(&report(6000), 1500, &Behaviour::AS_ASKED);
            let door = Door::open(script, &[None, Some(fault)]).await;
            door.chat(&ask(stream), &[]).await;
            let summary = door.get("/metrics").await.body;
            let line = format!("overlock_upstream_errors_total{{reason=\"{reason}\"}} 1\n");
            assert!(summary.contains(&line), "{fault:?}: {summary}");
        }
    }
}

#[tokio::test]
async fn joins_surrogates_split_between_events() {
    let document = report(12_000);
    let script = script(&document, 1500, &Behaviour::AS_ASKED);
    let torn = [Some(Fault::TornCharacters); 50];
    let door = Door::open(script, &torn).await;
    let summary = summary_of(&door.chat(&ask(true), &[]).await.body);
    assert_eq!(summary.content, document);
    assert_eq!(summary.finish, ["stop"]);
}

#[tokio::test]
async fn marks_a_lone_surrogate_in_a_stream() {
    let chunk = |delta: &str| {
        format!(
            r#"data: {{"choices": [{{"index": 0, "delta": {delta}}}]}}{}"#,
            "\n\n"
        )
    };
    let body = [
        chunk(r#"{"role": "assistant", "content": "a\ud83d"}"#),
        chunk("{}"),
        chunk(r#"{"content": "b\ud83d"}"#),
        chunk(r#"{"content": "\ude00c\ud83d"}"#),
        r#"data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}"#.to_owned(),
        "\n\ndata: [DONE]\n\n".to_owned(),
    ];
    let said = FakeReply {
        status: 200,
        headers: vec![("content-type", "text/event-stream".to_owned())],
        body: body.concat(),
        frame: None,
    };
    let door = Door::to_fake(vec![said]).await;
    let mut request = ask(true);
    request["response_format"] = json!({ "type": "text" });
    let summary = summary_of(&door.chat(&request, &[]).await.body);
    assert_eq!(summary.content, "a\u{fffd}b😀c");
}

#[tokio::test]
async fn a_client_disconnect_cancels_the_upstream_call() {
    let upstream = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let base = format!("http://{}/v1", upstream.local_addr().expect("an address"));
    let address = serve(&base, |_| {}).await;
    let mut client = TcpStream::connect(address.trim_start_matches("http://"))
        .await
        .expect("a gateway");
    let body = ask(true).to_string();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    client.write_all(request.as_bytes()).await.expect("sent");

    let accepted = within_patience("an upstream call", upstream.accept()).await;
    let (mut call, _) = accepted.expect("a call");
    let event = "data: {\"choices\": [{\"index\": 0, \"delta\": {\"content\": \"{\"}}]}\n\n";
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    call.write_all(format!("{head}{event}").as_bytes())
        .await
        .expect("answered");
    let mut got = [0; 16];
    let read = within_patience("the first event", client.read_exact(&mut got)).await;
    read.expect("it arrives");
    drop(client);

    // The rest of the request, then the end or an error: the gateway has closed the connection.
    let mut rest = Vec::new();
    let _ = within_patience("the gateway to hang up", call.read_to_end(&mut rest)).await;
    let request = String::from_utf8_lossy(&rest);
    assert!(
        request.starts_with("POST /v1/chat/completions "),
        "{request}"
    );
}
