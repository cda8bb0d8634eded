//! Many clients at once, each of which checks every event.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use overlock_llm::SseReader;
use overlock_llm::testing::{Behaviour, Script};
use serde_json::{Value, json};

/// The clients of one gateway.
#[derive(Clone)]
pub(crate) struct Clients {
    http: Client<HttpConnector, Full<Bytes>>,
    address: String,
    ends: Arc<AtomicUsize>,
}

/// The request of a client.
#[derive(Clone, Debug)]
pub(crate) struct ClientRequest {
    pub(crate) model: String,
    pub(crate) streams: bool,
    pub(crate) key: Option<String>,
}

/// What a client has received of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) events: usize,
    pub(crate) ids: BTreeSet<String>,
    pub(crate) roles: usize,
    pub(crate) content: String,
    pub(crate) finishes: Vec<String>,
    pub(crate) usages: Vec<Value>,
    /// The number of end events.
    pub(crate) ends: usize,
}

/// Why an answer ended.
pub(crate) type Broken = String;

impl Clients {
    pub(crate) fn new(address: &str) -> Self {
        Self {
            http: Client::builder(TokioExecutor::new()).build_http(),
            address: address.to_owned(),
            ends: Arc::default(),
        }
    }

    /// The number of clients that have received the end of their answer.
    pub(crate) fn ends(&self) -> usize {
        self.ends.load(Ordering::Relaxed)
    }

    /// Sends a request, and reads the answer to its end or up to a number of events.
    pub(crate) async fn ask(
        &self,
        question: &ClientRequest,
        most: usize,
        seen: &mut Received,
    ) -> Result<(), Broken> {
        let broken = |error: &dyn std::fmt::Display| error.to_string();
        let request = question.request(&self.address);
        let answer = self.http.request(request).await;
        let answer = answer.map_err(|error| broken(&error))?;
        let status = answer.status();
        let mut body = answer.into_body();
        if !status.is_success() || !question.streams {
            let said = body.collect().await.map_err(|error| broken(&error))?;
            let said = said.to_bytes();
            let value: Option<Value> = serde_json::from_slice(&said).ok();
            let value = value.filter(|_| status.is_success());
            let value =
                value.ok_or_else(|| format!("{status}: {}", String::from_utf8_lossy(&said)))?;
            self.take(&value, "message", seen);
            seen.ends += 1;
            return Ok(());
        }
        let mut reader = SseReader::default();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| broken(&error))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            reader.feed(&data).map_err(|error| broken(&error))?;
            while let Some(event) = reader.next_event() {
                if event.data == b"[DONE]" {
                    seen.ends += 1;
                    continue;
                }
                let value: Value =
                    serde_json::from_slice(&event.data).map_err(|error| broken(&error))?;
                if let Some(error) = value.get("error") {
                    return Err(error.to_string());
                }
                self.take(&value, "delta", seen);
                if seen.events >= most {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn take(&self, value: &Value, said: &str, seen: &mut Received) {
        seen.take(value, said);
        let is_end = !value["choices"][0]["finish_reason"].is_null();
        self.ends.fetch_add(usize::from(is_end), Ordering::Relaxed);
    }

    /// The response of the gateway at a path.
    pub(crate) async fn get(&self, path: &str) -> String {
        let request = Request::get(format!("http://{}{path}", self.address))
            .body(Full::default())
            .expect("a request");
        let answer = self.http.request(request).await.expect("an answer");
        let body = answer.into_body().collect().await.expect("all of it");
        String::from_utf8(body.to_bytes().into()).expect("text")
    }
}

impl ClientRequest {
    fn request(&self, address: &str) -> Request<Full<Bytes>> {
        let mut body = json!({
            "model": self.model,
            "stream": self.streams,
            "response_format": { "type": "json_object" },
            "messages": [{ "role": "user", "content": "Write the report as JSON." }],
        });
        if self.streams {
            body["stream_options"] = json!({ "include_usage": true });
        }
        let mut request = Request::post(format!("http://{address}/v1/chat/completions"))
            .header("content-type", "application/json");
        if let Some(key) = &self.key {
            request = request.header("idempotency-key", key);
        }
        let body = Full::new(Bytes::from(body.to_string()));
        request.body(body).expect("a request")
    }
}

impl Received {
    /// Adds an event, or an answer that is not streamed.
    fn take(&mut self, value: &Value, said: &str) {
        self.events += 1;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        self.ids.extend(text(&value["id"]));
        self.usages.extend(
            value
                .get("usage")
                .filter(|usage| usage.is_object())
                .cloned(),
        );
        for choice in value["choices"].as_array().into_iter().flatten() {
            self.roles += usize::from(choice[said]["role"] == "assistant");
            self.content
                .push_str(choice[said]["content"].as_str().unwrap_or_default());
            self.finishes.extend(text(&choice["finish_reason"]));
        }
    }

    /// Why it is not a correct answer with the complete document.
    pub(crate) fn fault(&self, document: &str) -> Option<String> {
        let Self {
            ids,
            roles,
            content,
            finishes,
            usages,
            ends,
            ..
        } = self;
        let is_one_answer =
            ids.len() == 1 && *roles == 1 && finishes == &["stop"] && usages.len() == 1;
        (!is_one_answer || *ends != 1 || content != document).then(|| {
            format!(
                "ids {ids:?}, {roles} roles, finishes {finishes:?}, {} usages, {ends} ends, {} of \
                 {} bytes, which are {}",
                usages.len(),
                content.len(),
                document.len(),
                if document.starts_with(content.as_str()) {
                    "right"
                } else {
                    "wrong"
                },
            )
        })
    }
}

/// A report of about this many bytes. Reports with different numbers share no section.
pub(crate) fn report(number: usize, bytes: usize) -> String {
    let mut text = format!("{{\"title\": \"Bericht {number} – 概要\", \"sections\": [");
    for name in number * 1000.. {
        let section = format!(
            "\n  {{\"id\": \"section-{name}\", \"rows\": [[\"a{name}\", {}, true], null], \
             \"note\": \"Zeile \\\"{name}\\\"\\n\\u00e9 🚀 {}\"}},",
            name * 7919,
            name * 31,
        );
        text.push_str(&section);
        if text.len() >= bytes {
            break;
        }
    }
    text.pop();
    text + "\n]}"
}

/// A model that writes a report in answers that are cut after about this many bytes.
pub(crate) fn cutting(number: usize, document: &str, breath: usize) -> (String, Script) {
    let script = Script {
        document: document.to_owned(),
        breath: (breath, breath + breath / 2),
        behaviours: Behaviour::AS_ASKED.to_vec(),
        seed: number as u64,
    };
    (model(number), script)
}

/// The name of the model that writes the report with this number.
pub(crate) fn model(number: usize) -> String {
    format!("report-{number}")
}
