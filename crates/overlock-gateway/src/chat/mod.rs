//! From a chat request to one whole answer.
//!
//! Plan, complete, append: the request is made to fit, its answer is passed on and continued until
//! it is whole, and what happened is kept. A streamed answer and one that comes at once are read
//! by the same rules.

mod ending;
mod joining;
mod keyed;
mod reading;
mod schema;
mod stream;
mod taken;
mod whole;
mod wish;

use std::sync::Arc;

use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method};
use overlock_budget::ChatCounter;
use overlock_json::{Cut, Place};
use overlock_model::{Continuation, Outcome, Reason, Usage};
use overlock_store::RunId;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout_at};

use crate::account::Account;
use crate::api::{CallBudget, Conditions};
use crate::body::{Reply, json_reply, whole as whole_body};
use crate::demo;
use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::record::{About, Recording, plain};
use crate::settings::Record;
use crate::trace::Called;
use crate::upstream::{Answer, Client, late};
use joining::Joiner;
use keyed::Keyed;
use reading::{Kind, Reading};
use taken::Taken;
use whole::WholeAnswer;
use wish::{Continues, Wish};

/// A chat request on its way.
pub(crate) struct Job {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) account: Arc<Account>,
    pub(crate) wish: Wish,
    /// The address of who answers.
    pub(crate) base: String,
    /// What is shown to them.
    pub(crate) headers: HeaderMap,
    /// How the window of the request was divided.
    pub(crate) budget: CallBudget,
    pub(crate) recording: Option<Recording>,
    /// When all calls for it have to be done.
    pub(crate) deadline: Instant,
}

/// How an answer ended, for those who do not look into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Complete,
    Partial,
}

impl Ended {
    /// The same of an answer that is no document.
    pub(crate) fn outcome(self) -> Outcome {
        match self {
            Self::Complete => Outcome::Complete,
            Self::Partial => Outcome::Partial {
                reason: Reason::TokenLimit,
                cut: Cut {
                    offset: 0,
                    path: String::new(),
                    place: Place::Root,
                },
            },
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Partial => "partial",
        }
    }
}

/// Answers a chat request.
pub(crate) async fn answer(
    gateway: Arc<Gateway>,
    account: Arc<Account>,
    headers: HeaderMap,
    text: String,
) -> Result<Reply, ApiError> {
    let wish = Wish::read(&gateway.settings, &headers, &text)?;
    let upstream = gateway.settings.upstream.base.as_deref();
    account.asked(&wish.model, wish.request.requested(), upstream);
    let key = keyed::key_of(&headers)?;
    let counter = ChatCounter::for_model(&wish.found);
    let fitted = wish.fit(&gateway.settings, &counter, &text)?;
    let (base, headers) = if wish.model == demo::MODEL {
        (gateway.demo.base().await?, json_headers())
    } else {
        let key_is_ours = !gateway.settings.keys.is_empty();
        let headers = gateway.client.headers(&headers, key_is_ours);
        (gateway.settings.upstream.address()?.to_owned(), headers)
    };
    let deadline = Instant::now() + gateway.settings.limits.run_time;
    let mut job = Job {
        gateway,
        account,
        wish,
        base,
        headers,
        budget: CallBudget::from(&fitted.plan),
        recording: None,
        deadline,
    };
    match key {
        None => job.recording = job.recorded(&text).await,
        Some(key) => match keyed::begin(&job, key, &text, job.about(&text, true)).await? {
            Keyed::New(recording) => job.recording = Some(recording),
            Keyed::Answered(value) => return Ok(job.replayed(value)),
            Keyed::Unfinished(run, recording) => {
                job.recording = Some(recording);
                return Box::pin(job.resumed(*run)).await;
            }
        },
    }
    let id = job.recording.as_ref().map(|recording| recording.id.clone());
    let mut reply = match job.asked(fitted.body).await {
        Ok(answer) if answer.status.is_success() => job.answered(answer).await?,
        refused => {
            job.failed().await;
            refusal(&job.gateway.client, refused?).await?
        }
    };
    if let Some(id) = id {
        tell_run(reply.headers_mut(), &id);
    }
    Ok(reply)
}

/// What is said with every request.
fn json_headers() -> HeaderMap {
    let json = HeaderValue::from_static("application/json");
    HeaderMap::from_iter([(header::CONTENT_TYPE, json)])
}

impl Job {
    /// Asks the upstream.
    async fn asked(&self, body: String) -> Result<Answer, ApiError> {
        let (path, mut headers) = ("/chat/completions", self.headers.clone());
        self.account.calling(None);
        self.account.place_in_trace(&mut headers);
        let client = &self.gateway.client;
        let body = whole_body(body);
        let sent = client.send(Method::POST, &self.base, path, headers, body);
        let asked = match timeout_at(self.deadline, sent).await {
            Ok(asked) => asked.map(|answer| answer.due(self.deadline)),
            Err(_) => Err(late()),
        };
        match &asked {
            Ok(answer) if answer.status.is_success() => {}
            Ok(answer) => self
                .account
                .called(|| Called::failed(answer.status.as_str())),
            Err(error) => self.account.called(|| Called::failed(error.name())),
        }
        asked
    }

    /// The reply that the upstream's answer becomes.
    async fn answered(mut self, answer: Answer) -> Result<Reply, ApiError> {
        match (self.wish.streams, answer.is_event_stream()) {
            (true, true) => Ok(stream::reply(self, answer)),
            (false, true) => {
                self.failed().await;
                Err(ApiError::upstream(
                    "the upstream answered with a stream that nobody asked for",
                ))
            }
            (streams, false) => {
                let whole = whole::read(&mut self, answer).await?;
                Ok(if streams {
                    stream::told(&self, &whole)
                } else {
                    whole.into_reply()
                })
            }
        }
    }

    /// The reply to a request that was answered before.
    fn replayed(&self, value: Value) -> Reply {
        let whole = WholeAnswer::replayed(value);
        if self.wish.streams {
            stream::told(self, &whole)
        } else {
            whole.into_reply()
        }
    }

    /// The reply to a request of which a part was answered before.
    async fn resumed(mut self, run: Continuation) -> Result<Reply, ApiError> {
        let id = self
            .recording
            .as_ref()
            .map(|recording| recording.id.clone());
        let mut reply = if self.wish.streams {
            stream::resumed(self, run)
        } else {
            whole::resumed(&mut self, run).await?.into_reply()
        };
        if let Some(id) = id {
            tell_run(reply.headers_mut(), &id);
        }
        Ok(reply)
    }

    /// What is kept of the request itself.
    fn about(&self, text: &str, is_keyed: bool) -> About {
        let settings = &self.gateway.settings;
        let options = settings.continuation_for(&self.wish.found.model, self.wish.max_total_tokens);
        let conditions = Conditions {
            upstream: Some(self.base.clone()),
            schema: self.wish.schema.clone(),
        };
        let request = if is_keyed || settings.record == Record::Full {
            text.to_owned()
        } else {
            let message = json!({ "role": "user", "content": "" });
            json!({ "model": self.wish.model, "messages": [message] }).to_string()
        };
        About {
            model: self.wish.model.clone(),
            request,
            options: plain(&options),
            conditions: plain(&conditions),
        }
    }

    /// A recording in the way that is set. An answer does not depend on whether it can be kept.
    async fn recorded(&self, text: &str) -> Option<Recording> {
        let recorder = self.gateway.recorder.as_ref()?;
        let record = self.gateway.settings.record;
        if record == Record::Off {
            return None;
        }
        let about = self.about(text, false);
        Recording::begin(recorder, record, about).await.ok()?
    }

    /// What the calls for the rest of an answer need to know.
    fn joiner<'a>(&'a self, counter: &'a ChatCounter<'a>) -> Joiner<'a> {
        Joiner {
            gateway: &self.gateway,
            wish: &self.wish,
            counter,
            base: &self.base,
            headers: &self.headers,
            account: &self.account,
            budget: self.budget,
            deadline: self.deadline,
        }
    }

    /// What is said of an answer that no upstream has named.
    fn head(&self, object: &str) -> Map<String, Value> {
        let recording = self.recording.as_ref();
        let id = recording.map_or("run", |recording| recording.id.as_str());
        let created = recording.map_or(0, Recording::began_at) / 1000;
        let head = json!({
            "id": format!("chatcmpl-{id}"), "object": object, "created": created,
            "model": self.wish.model,
        });
        head.as_object().cloned().unwrap_or_default()
    }

    /// What a run took of which some calls were made for an earlier request: the prompt is counted
    /// once for those.
    fn usage_of(&self, run: &Continuation, taken: &Taken) -> Usage {
        Usage {
            input: self
                .budget
                .input_token_count
                .saturating_add(taken.usage.input),
            output: run.output_tokens(),
        }
    }

    /// Keeps how an answer ended.
    async fn ended(&mut self, outcome: &Outcome, answer: &Value) {
        if let Some(recording) = self.recording.take() {
            let answer = recording.is_keyed().then(|| answer.to_string());
            // The client has its answer all the same.
            let _ = recording.end(outcome, answer).await;
        }
    }

    /// Keeps that there is no answer. One with a key may be asked for again.
    async fn failed(&mut self) {
        let reason = Reason::ModelError;
        if let Some(recording) = self.recording.take()
            && !recording.is_keyed()
        {
            let _ = recording.end(&Outcome::Failed { reason }, None).await;
        }
    }

    /// Reads the content of an answer.
    pub(crate) fn content_reading(&self) -> Reading {
        self.reading(self.content_kind())
    }

    /// Reads the arguments of a tool call.
    pub(crate) fn arguments_reading(&self) -> Reading {
        self.reading(Kind::Arguments)
    }

    pub(crate) fn content_kind(&self) -> Kind {
        if self.wish.is_json {
            Kind::Document
        } else {
            Kind::Looks
        }
    }

    fn reading(&self, kind: Kind) -> Reading {
        match self.wish.continues {
            Continues::Nothing => Reading::verbatim(kind),
            Continues::Json | Continues::Text => Reading::new(kind),
        }
    }
}

/// What the upstream says against a request, in the shape that clients know, with its status.
pub(crate) async fn refusal(client: &Client, mut answer: Answer) -> Result<Reply, ApiError> {
    const LONGEST: usize = 1 << 20;
    let body = answer.read_whole(LONGEST).await?;
    let mut value: Option<Value> = serde_json::from_slice(&body).ok();
    if let Some(value) = &mut value {
        client.hide_key_in(value);
    }
    let is_known = value
        .as_ref()
        .is_some_and(|value| value.get("error").is_some_and(Value::is_object));
    let mut reply = match value {
        Some(value) if is_known => json_reply(answer.status, &value),
        _ => {
            let said = match answer.packing() {
                Some(packing) => format!("something that is packed as `{packing}`"),
                None => client.without_key(&String::from_utf8_lossy(&body)),
            };
            let said: String = said.chars().take(500).collect();
            let message = format!("the upstream answered {}: {said}", answer.status);
            ApiError::new(answer.status, "upstream_error", message).into_reply()
        }
    };
    pass_on(&answer.headers, reply.headers_mut());
    Ok(reply)
}

/// Puts what the upstream says about an answer beside what is said here.
pub(crate) fn pass_on(from: &HeaderMap, to: &mut HeaderMap) {
    const KEPT_BACK: [HeaderName; 9] = [
        header::CONNECTION,
        // Whatever could be read here is not packed any more.
        header::CONTENT_ENCODING,
        header::CONTENT_LENGTH,
        header::CONTENT_TYPE,
        header::TRANSFER_ENCODING,
        header::TRAILER,
        header::UPGRADE,
        header::DATE,
        header::SET_COOKIE,
    ];
    for (name, value) in from {
        if !KEPT_BACK.contains(name) && name != "keep-alive" {
            to.append(name.clone(), value.clone());
        }
    }
}

/// How a run is found again.
fn tell_run(headers: &mut HeaderMap, id: &RunId) {
    let id = HeaderValue::from_str(id.as_str()).expect("a name of a run is letters and digits");
    headers.insert("x-overlock-run", id);
}

/// What is said about an answer besides the answer.
pub(crate) fn tell(headers: &mut HeaderMap, ended: Ended, continuations: u32) {
    headers.insert("x-overlock-outcome", HeaderValue::from_static(ended.name()));
    headers.insert("x-overlock-continuations", HeaderValue::from(continuations));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Settings, Upstream};

    #[test]
    fn an_answer_that_is_waited_for_takes_little_memory() {
        let settings = Settings::new(Upstream::none());
        let gateway = Arc::new(Gateway::new(settings, None).expect("a gateway"));
        let account = Arc::new(Account::default());
        let answer = answer(gateway, account, HeaderMap::new(), String::new());
        let size = size_of_val(&answer);
        assert!(size <= 8 << 10, "it takes {size} bytes");
    }
}
