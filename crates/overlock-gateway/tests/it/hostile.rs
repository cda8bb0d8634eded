use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hyper::StatusCode;
use overlock_gateway::Settings;
use overlock_llm::testing::{PATIENCE, within_patience};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::door::{Door, serve};
use crate::echo::Echo;
use crate::fake::{Fake, FakeReply};

async fn door(set: impl FnOnce(&mut Settings)) -> Door<Echo> {
    let upstream = Echo::start().await;
    let address = serve(&upstream.base, set).await;
    Door { address, upstream }
}

impl Door<Echo> {
    async fn connect(&self) -> TcpStream {
        let address = self.address.trim_start_matches("http://");
        TcpStream::connect(address).await.expect("a connection")
    }

    /// Sends bytes and reads until the connection is closed.
    async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        // The gateway may close the connection before it has read everything.
        let _ = stream.write_all(bytes).await;
        read(&mut stream).await
    }

    async fn lives(&self) {
        assert_eq!(self.get("/health").await.status, StatusCode::OK);
    }
}

/// Reads until the connection is closed.
async fn read(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    // A connection may be reset before all data arrives.
    let _ = within_patience("the connection to be closed", read).await;
    String::from_utf8(answer).expect("text")
}

/// Checks the status and the error format of `OpenAI`.
#[track_caller]
fn check(answer: &str, status: u16) {
    let start = format!("HTTP/1.1 {status} ");
    assert!(answer.starts_with(&start), "{status} expected: {answer}");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
    let value: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"));
    assert!(value["error"]["message"].is_string(), "{answer}");
    assert!(value["error"]["type"].is_string(), "{answer}");
}

/// Checks that the connection was closed, with or without an error.
#[track_caller]
fn check_refused(answer: &str) {
    let is_refused = answer.is_empty() || answer.starts_with("HTTP/1.1 4");
    assert!(is_refused, "{answer}");
}

fn post(path: &str, body: &[u8]) -> Vec<u8> {
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    request
}

const CHAT: &str = "/v1/chat/completions";

#[tokio::test]
async fn rejects_an_incomplete_body() {
    let door = door(|_| {}).await;
    for body in [
        "content-length: 100\r\n\r\n{\"model\": ",
        "transfer-encoding: chunked\r\n\r\n20\r\n{\"model\":",
        "transfer-encoding: chunked\r\n\r\n5\r\n{\"mod\r\n",
    ] {
        for path in [CHAT, "/api/cut", "/v1/files"] {
            let mut stream = door.connect().await;
            let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{body}");
            stream.write_all(head.as_bytes()).await.expect("sent");
            stream.shutdown().await.expect("no more comes");
            check_refused(&read(&mut stream).await);
        }
    }
    door.lives().await;
}

#[tokio::test]
async fn rejects_malformed_http() {
    let door = door(|_| {}).await;
    let long_path = format!(
        "GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n",
        "a".repeat(200_000)
    );
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/3.7\r\n\r\n",
        b"\r\n\r\n\r\n\x00\x00\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"POST /api/cut HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"POST /api/cut HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
        b"POST /api/cut HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999999999999999\r\n\r\n",
        b"POST /api/cut HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\nzz\r\n\r\n",
        b"GET /health HTTP/1.1\r\nbad header\r\n\r\n",
        b"GET /health HTTP/1.1\r\nx: \x00\r\n\r\n",
        long_path.as_bytes(),
    ] {
        check_refused(&door.raw(bytes).await);
    }
    assert_eq!(door.upstream.requests(), 0);
    door.lives().await;
}

#[tokio::test]
async fn limits_the_headers() {
    let door = door(|_| {}).await;
    let many: Vec<String> = (0..5000)
        .map(|number| format!("x-{number}: 1\r\n"))
        .collect();
    let long = format!("x-long: {}\r\n", "a".repeat(1 << 20));
    for headers in [many.concat(), long] {
        let request = format!("GET /health HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
        check_refused(&door.raw(request.as_bytes()).await);
    }
    door.lives().await;
}

#[tokio::test]
async fn rejects_a_body_over_the_limit() {
    let door = door(|settings| settings.limits.body_bytes = 10_000).await;
    for path in [CHAT, "/api/cut", "/v1/files"] {
        // With an announced length, the body need not be sent.
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 100000000\r\n\r\n"
        );
        check(&door.raw(head.as_bytes()).await, 413);
        // Without an announced length.
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             transfer-encoding: chunked\r\n\r\n"
        );
        let chunk = format!("1000\r\n{}\r\n", "a".repeat(0x1000));
        let request = head + &chunk.repeat(4) + "0\r\n\r\n";
        check(&door.raw(request.as_bytes()).await, 413);
    }
    door.lives().await;
}

#[tokio::test]
async fn rejects_invalid_utf_8() {
    let door = door(|_| {}).await;
    for path in [CHAT, "/api/cut", "/api/fit"] {
        let body = b"{\"model\": \"x\", \"text\": \"\xff\xfe\"}";
        check(&door.raw(&post(path, body)).await, 400);
    }
    door.lives().await;
}

#[tokio::test]
async fn survives_deeply_nested_documents() {
    let door = door(|_| {}).await;
    let deep = "[".repeat(1_000_000);
    let closed = format!("{deep}{}", "]".repeat(1_000_000));
    for body in [
        deep.clone(),
        closed.clone(),
        format!("{{\"model\": \"gpt-4o\", \"messages\": {deep}"),
        format!("{{\"model\": \"gpt-4o\", \"messages\": {closed}}}"),
        format!("{{\"model\": \"gpt-4o\", \"messages\": [], \"x\": {closed}}}"),
        format!(
            "{{\"model\": \"gpt-4o\", \"messages\": [{{\"role\": \"user\", \"content\": \
             {closed}}}]}}"
        ),
    ] {
        for path in [CHAT, "/api/fit", "/api/cut"] {
            check_refused(&door.raw(&post(path, body.as_bytes())).await);
        }
    }
    door.lives().await;
}

#[tokio::test]
async fn rejects_malformed_messages() {
    let door = door(|_| {}).await;
    for messages in [
        "null",
        "1",
        "\"hello\"",
        "{}",
        "[1]",
        "[null]",
        "[[]]",
        "[{}]",
        "[{\"role\": 1, \"content\": \"x\"}]",
        "[{\"role\": \"user\", \"content\": 1}]",
        "[{\"role\": \"user\", \"content\": {\"a\": 1}}]",
        "[{\"role\": \"user\", \"content\": [1]}]",
        "[{\"role\": \"assistant\", \"tool_calls\": 1}]",
        "[{\"role\": \"assistant\", \"tool_calls\": [1]}]",
    ] {
        let body = format!("{{\"model\": \"gpt-4o\", \"messages\": {messages}}}");
        check(&door.raw(&post(CHAT, body.as_bytes())).await, 400);
    }
    for body in [
        "",
        "null",
        "[]",
        "{}",
        "{\"model\": \"gpt-4o\"}",
        "{\"messages\": []}",
        "{\"model\": 1, \"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}",
        "{\"model\": \"gpt-4o\", \"stream\": \"yes\", \"messages\": [{\"role\": \"user\", \
         \"content\": \"x\"}]}",
        "{\"model\": \"gpt-4o\", \"max_tokens\": -1, \"messages\": [{\"role\": \"user\", \
         \"content\": \"x\"}]}",
    ] {
        check(&door.raw(&post(CHAT, body.as_bytes())).await, 400);
    }
    assert_eq!(door.upstream.requests(), 0);
    door.lives().await;
}

#[tokio::test]
async fn slow_requests_time_out() {
    let door = door(|settings| {
        settings.limits.head_time = Duration::from_millis(50);
        settings.limits.body_time = Duration::from_millis(50);
    })
    .await;
    // Half a head, and then nothing.
    for head in [
        "",
        "GET /hea",
        "GET /health HTTP/1.1\r\nhost: localhost\r\nx-slow: ",
    ] {
        check_refused(&door.raw(head.as_bytes()).await);
    }
    // A head, and half a body.
    for path in [CHAT, "/api/cut", "/v1/files"] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 100\r\n\r\n{{"
        );
        check(&door.raw(head.as_bytes()).await, 408);
    }
    door.lives().await;
}

#[tokio::test]
async fn a_path_stays_below_the_upstreams_address() {
    let door = door(|_| {}).await;
    for path in [
        "/v1/../../x",
        "/v1/..",
        "/v1/./x",
        "/v1//x",
        "//v1/models",
        "//evil.example/v1/models",
        "/v1/%2e%2e/x",
        "/v1/%2E%2E%2Fx",
        "/v1/..%2fx",
        "/v1/%252e%252e/x",
        "/v1/..%5cx",
        "/v1/x%00",
        "/v1/x%0d%0ax",
        "/V1/files",
        "/v1",
        "http://evil.example/v1/../x",
        "http://evil.example/x",
    ] {
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        check_refused(&door.raw(request.as_bytes()).await);
    }
    assert_eq!(door.upstream.requests(), 0);
    // A request with any host goes to the configured upstream.
    let request = "GET http://evil.example/v1/files?a=b HTTP/1.1\r\nhost: localhost\r\n\
                   connection: close\r\n\r\n";
    let answer = door.raw(request.as_bytes()).await;
    assert!(
        answer.contains("\"uri\":\"/base/v1/files?a=b\""),
        "{answer}"
    );
    assert!(!answer.contains("evil"), "{answer}");
    door.lives().await;
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_a_free_one() {
    let door = door(|settings| settings.limits.connections = 1).await;
    let first = door.connect().await;
    let mut second = door.connect().await;
    let request = b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    second.write_all(request).await.expect("sent");
    drop(first);
    assert!(read(&mut second).await.starts_with("HTTP/1.1 200 "));
}

/// A request with a schema that expands to 2^levels copies of another.
fn with_schema(levels: usize) -> Value {
    let mut definitions = Map::new();
    definitions.insert("d0".to_owned(), json!({ "not": { "const": "b" } }));
    for level in 1..=levels {
        let before = json!({ "$ref": format!("#/$defs/d{}", level - 1) });
        definitions.insert(format!("d{level}"), json!({ "allOf": [before, before] }));
    }
    let items = json!({ "$ref": format!("#/$defs/d{levels}") });
    let schema = json!({ "$defs": definitions, "type": "array", "items": items });
    json!({
        "model": "gpt-4o", "messages": [{ "role": "user", "content": "Tell me." }],
        "response_format": {
            "type": "json_schema", "json_schema": { "name": "answer", "schema": schema },
        },
    })
}

#[tokio::test]
async fn a_schema_that_multiplies_is_refused_before_the_upstream_is_called() {
    let door: Door<Fake> = Door::to_fake(vec![FakeReply::content("[\"a\"]", "stop")]).await;
    let got = door.chat(&with_schema(27), &[]).await;
    assert_eq!(got.status, StatusCode::BAD_REQUEST, "{}", got.body);
    let error = &got.json()["error"];
    assert_eq!(error["type"], "invalid_request_error");
    assert_eq!(error["code"], "schema_too_large");
    assert_eq!(error["param"], "response_format");
    let message = error["message"].as_str().unwrap_or_default();
    assert!(message.contains("at most 100000"), "{message}");
    assert!(door.upstream.requests().is_empty());
    let got = door.chat(&with_schema(8), &[]).await;
    assert_eq!(got.status, StatusCode::OK, "{}", got.body);
}

#[tokio::test(flavor = "current_thread")]
async fn comparisons_with_a_schema_do_not_hold_up_other_requests() {
    let document = format!("[{}\"a\"]", "\"a\",".repeat(1000));
    let door: Door<Fake> = Door::to_fake(vec![FakeReply::content(&document, "stop")]).await;
    let door = Arc::new(door);
    let answered = Arc::new(AtomicUsize::new(0));
    // Few enough that none of them waits too long on a busy machine.
    let chats: Vec<_> = (0..3)
        .map(|_| {
            let (door, answered) = (Arc::clone(&door), Arc::clone(&answered));
            tokio::spawn(async move {
                let got = door.chat(&with_schema(12), &[]).await;
                answered.fetch_add(1, Ordering::SeqCst);
                got
            })
        })
        .collect();
    while door.upstream.requests().len() < 3 {
        tokio::task::yield_now().await;
    }
    assert_eq!(door.get("/health").await.status, StatusCode::OK);
    assert_eq!(answered.load(Ordering::SeqCst), 0, "health comes first");
    for chat in chats {
        let got = chat.await.expect("an answer");
        assert_eq!(got.header("x-overlock-outcome"), "complete");
        assert_eq!(got.header("x-overlock-schema"), "");
    }
}

/// A request with an endless answer: as a chat, or forwarded.
fn flood(chat: bool) -> Vec<u8> {
    if !chat {
        return b"GET /v1/files/1 HTTP/1.1\r\nhost: localhost\r\n\r\n".to_vec();
    }
    let request = json!({
        "model": "gpt-4o", "stream": true,
        "messages": [{ "role": "user", "content": "Tell me." }],
    });
    post(CHAT, request.to_string().as_bytes())
}

/// Checks that a queued client is answered although clients that do not read hold every permit.
async fn check_freed(chat: bool, set: impl FnOnce(&mut Settings)) {
    const PLACES: usize = 3;
    let mut replies = vec![FakeReply::flooding(); PLACES];
    replies.push(FakeReply::content("All of it.", "stop"));
    let door = Door::to_fake_with(replies, |settings| {
        settings.limits.concurrent = PLACES;
        settings.limits.queue_time = PATIENCE;
        set(settings);
    })
    .await;
    let address = door.address.trim_start_matches("http://");
    let mut clients = Vec::new();
    for taken in 1..=PLACES {
        let mut client = TcpStream::connect(address).await.expect("a connection");
        client.write_all(&flood(chat)).await.expect("sent");
        clients.push(client);
        while door.upstream.requests().len() < taken {
            tokio::task::yield_now().await;
        }
    }
    let request = json!({
        "model": "gpt-4o", "messages": [{ "role": "user", "content": "Tell me." }],
    });
    let got = door.chat(&request, &[]).await;
    assert_eq!(got.status, StatusCode::OK, "{}", got.body);
    drop(clients);
}

#[tokio::test]
async fn clients_that_do_not_read_lose_their_connection() {
    for chat in [true, false] {
        check_freed(chat, |settings| {
            settings.limits.write_time = Duration::from_millis(300);
        })
        .await;
    }
}

#[tokio::test]
async fn a_request_ends_at_its_deadline_although_its_client_does_not_read() {
    for chat in [true, false] {
        check_freed(chat, |settings| {
            settings.limits.write_time = Duration::from_hours(1);
            settings.limits.run_time = Duration::from_secs(3);
        })
        .await;
    }
}

#[tokio::test]
async fn a_client_that_reads_slowly_keeps_its_connection() {
    let set = |settings: &mut Settings| settings.limits.write_time = Duration::from_secs(3);
    let door = Door::to_fake_with(vec![FakeReply::flooding()], set).await;
    let address = door.address.trim_start_matches("http://");
    let mut client = TcpStream::connect(address).await.expect("a connection");
    client.write_all(&flood(false)).await.expect("sent");
    let mut buffer = vec![0; 128 << 10];
    // In total it takes longer than the limit.
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let read = within_patience("bytes", client.read_exact(&mut buffer)).await;
        read.expect("the connection is open");
    }
}
