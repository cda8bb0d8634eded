//! From a chat request to one whole answer.
//!
//! Plan, complete, append: the request is made to fit, its answer is passed on and continued until
//! it is whole, and what happened is kept. A streamed answer and one that comes at once are read
//! by the same rules.

mod ending;
mod joining;
mod keyed;
mod merged;
mod plain_text;
mod reading;
mod schema;
mod skimmed;
mod stream;
mod taken;
mod whole;
mod wish;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method};
use overlock_json::{Cut, Place};
use overlock_model::{Outcome, Reason, Usage};
use overlock_store::RunId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::account::Account;
use crate::api::{CallBudget, Conditions};
use crate::aside;
use crate::body::{Reply, json_reply, text_of, whole as whole_body};
use crate::demo;
use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::record::{About, RUN, Recording, plain};
use crate::settings::Record;
use crate::trace::Called;
use crate::upstream::{Answer, CHAT_PATH, Client};
use joining::Joiner;
use keyed::{Answered, Keyed};
use reading::{Kind, Reading};
use whole::WholeAnswer;
use wish::{Continues, Wish};

/// A chat request on its way.
pub(crate) struct Job {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) account: Arc<Account>,
    pub(crate) wish: Wish,
    /// The address of who answers.
    pub(crate) base: String,
    /// What the client says after the path, which is said with every call.
    pub(crate) query: Option<String>,
    /// What the client showed, unless the demonstration answers.
    pub(crate) shown: Option<HeaderMap>,
    /// How the window of the request was divided.
    pub(crate) budget: CallBudget,
    pub(crate) recording: Option<Recording>,
    /// When all calls for it have to be done.
    pub(crate) deadline: Instant,
}

/// How an answer ended, for those who do not look into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

    pub(crate) const fn name(self) -> &'static str {
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
    query: Option<String>,
    text: Bytes,
) -> Result<Reply, ApiError> {
    let reader = Arc::clone(&gateway);
    let read = move |text: Bytes| {
        let wish = Wish::read(&reader, &headers, text_of(&text)?)?;
        let fitted = wish.fit(&text);
        Ok((headers, text, wish, fitted))
    };
    let (headers, text, wish, fitted) = aside::with_text(text, read).await??;
    let upstream = gateway.settings.upstream.base.as_deref();
    account.asked(&wish.model, wish.request.requested(), upstream);
    let key = keyed::key_of(&headers)?;
    let fitted = fitted?;
    let (base, shown) = if wish.model == demo::MODEL {
        // Boxed, or every request would carry the space for what few ask.
        (Box::pin(gateway.demo.base()).await?, None)
    } else {
        let base = gateway.settings.upstream.address()?;
        (base.to_owned(), Some(headers))
    };
    let dropped = fitted.plan.dropped_messages.len();
    let deadline = Instant::now() + gateway.settings.limits.run_time;
    // Boxed, as it goes from hand to hand.
    let mut job = Box::new(Job {
        gateway,
        account,
        wish,
        base,
        query,
        shown,
        budget: CallBudget::from(&fitted.plan),
        recording: None,
        deadline,
    });
    let mut first = None;
    match key {
        None => job.recording = job.recorded(&text).await,
        // Boxed, or every request would carry the space for what few have.
        Some(key) => match Box::pin(keyed::begin(&job, key, text_of(&text)?)).await? {
            Keyed::New(recording) => job.recording = Some(recording),
            Keyed::Answered(id, answered) => {
                let replied = job.replayed(answered);
                return Ok(with_dropped(of_run(replied, Some(&id)), dropped));
            }
            Keyed::Unfinished(answered, recording) => {
                job.recording = Some(recording);
                first = Some(answered);
            }
        },
    }
    let id = job.recording.as_ref().map(|recording| recording.id.clone());
    let replied = match first {
        Some(first) => Box::pin(job.resumed(first)).await,
        None => match job.asked(fitted.body).await {
            Ok(answer) if answer.status.is_success() => job.answered(answer).await,
            // Boxed, or every request would carry the space for what goes wrong with few.
            Ok(refused) => Box::pin(job.refused(refused)).await,
            Err(error) => {
                Box::pin(job.failed()).await;
                Err(error)
            }
        },
    };
    Ok(with_dropped(of_run(replied, id.as_ref()), dropped))
}

/// A reply that says how many messages were left out, if any were.
fn with_dropped(mut reply: Reply, dropped: usize) -> Reply {
    const DROPPED: HeaderName = HeaderName::from_static("x-overlock-dropped-messages");
    if dropped > 0 {
        reply
            .headers_mut()
            .insert(DROPPED, HeaderValue::from(dropped));
    }
    reply
}

/// A reply that says how its run is found again, whatever came of it.
fn of_run(replied: Result<Reply, ApiError>, id: Option<&RunId>) -> Reply {
    let mut reply = replied.unwrap_or_else(ApiError::into_reply);
    if let Some(id) = id {
        let id = HeaderValue::from_str(id.as_str()).expect("a name of a run is letters and digits");
        reply.headers_mut().insert(&RUN, id);
    }
    reply
}

/// The headers of a call to the upstream for a client that showed these, or to the demonstration.
fn headers_of(gateway: &Gateway, shown: Option<&HeaderMap>) -> HeaderMap {
    let Some(shown) = shown else {
        let json = HeaderValue::from_static("application/json");
        return HeaderMap::from_iter([(header::CONTENT_TYPE, json)]);
    };
    let key_is_ours = !gateway.settings.keys.is_empty();
    gateway.client.headers(shown, key_is_ours)
}

impl Job {
    /// Asks the upstream.
    async fn asked(&mut self, body: Bytes) -> Result<Answer, ApiError> {
        let path = match &self.query {
            Some(query) => Cow::Owned(format!("{CHAT_PATH}?{query}")),
            None => Cow::Borrowed(CHAT_PATH),
        };
        let mut headers = headers_of(&self.gateway, self.shown.as_ref());
        self.account.calling(None);
        if let Some(recording) = &mut self.recording {
            recording.asking(None, &self.budget);
        }
        self.account.place_in_trace(&mut headers);
        let client = &self.gateway.client;
        let body = whole_body(body);
        let place = (self.base.as_str(), path.as_ref());
        let asked = client
            .send(Method::POST, place, headers, body, Some(self.deadline))
            .await;
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
    async fn answered(mut self: Box<Self>, answer: Answer) -> Result<Reply, ApiError> {
        match (self.wish.streams, answer.is_event_stream()) {
            (true, true) => Ok(stream::reply(*self, answer)),
            (false, true) => {
                Box::pin(self.failed()).await;
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

    /// The reply to a request that the upstream refuses.
    async fn refused(&mut self, answer: Answer) -> Result<Reply, ApiError> {
        self.failed().await;
        refusal(&self.gateway.client, answer).await
    }

    /// The reply to a request that was answered before.
    fn replayed(&self, answered: Answered) -> Result<Reply, ApiError> {
        let whole = WholeAnswer::replayed(answered)?;
        self.account.replayed(&whole.value, whole.ended.name());
        Ok(if self.wish.streams {
            stream::told(self, &whole)
        } else {
            whole.into_reply()
        })
    }

    /// The reply to a request of which a part was answered before.
    async fn resumed(mut self: Box<Self>, first: Value) -> Result<Reply, ApiError> {
        if self.wish.streams {
            return Ok(stream::resumed(*self, first));
        }
        let whole = whole::resumed(&mut self, first).await?;
        Ok(whole.into_reply())
    }

    /// What is kept of the request itself.
    fn about(&self, text: &str, is_keyed: bool) -> About {
        let settings = &self.gateway.settings;
        let options =
            settings.continuation_for(&self.wish.known.found.model, self.wish.max_total_tokens);
        // Who asks the same again must find what was asked.
        let has_text = is_keyed || settings.record == Record::Full;
        let conditions = Conditions {
            // A query may hold a key.
            upstream: self.base.split('?').next().map(str::to_owned),
            schema: self.wish.schema.as_ref().filter(|_| has_text).cloned(),
        };
        let request = if has_text {
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
    async fn recorded(&self, text: &[u8]) -> Option<Recording> {
        let recorder = self.gateway.recorder.as_ref()?;
        let record = self.gateway.settings.record;
        if record == Record::Off {
            return None;
        }
        let about = match record {
            Record::Metadata => self.story(),
            _ => Arc::new(self.about(text_of(text).ok()?, false)),
        };
        Recording::begin(recorder, record, about).await.ok()?
    }

    /// What is kept of a request without its text, which is the same for most requests to a model.
    fn story(&self) -> Arc<About> {
        let about = || Arc::new(self.about("", false));
        if self.wish.max_total_tokens != self.gateway.settings.max_total_tokens {
            return about();
        }
        Arc::clone(self.wish.known.story.get_or_init(about))
    }

    /// What the calls for the rest of an answer need to know.
    fn joiner(&self) -> Joiner<'_> {
        Joiner {
            gateway: &self.gateway,
            wish: &self.wish,
            counter: &self.wish.known.counter,
            base: &self.base,
            query: self.query.as_deref(),
            shown: self.shown.as_ref(),
            account: &self.account,
            budget: &self.budget,
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

    /// Keeps how an answer ended, and what was answered for whoever may ask the same again.
    async fn ended(
        &mut self,
        outcome: &Outcome,
        usage: Option<Usage>,
        answered: impl FnOnce() -> Answered,
    ) {
        if let Some(recording) = self.recording.take() {
            let answer = recording.is_keyed().then(|| answered().kept());
            // The client has its answer all the same.
            let _ = recording.end(outcome, usage, answer).await;
        }
    }

    /// Keeps that a text ended by itself, and what it took.
    async fn ended_plainly(&mut self, usage: Usage) {
        let outcome = Outcome::Complete;
        let recording = self.recording.take();
        if let Some(recording) = recording.and_then(|it| it.end_story(&outcome, Some(usage))) {
            // The client has its answer all the same. Boxed, or every request would carry the space
            // for what is written of few.
            let _ = Box::pin(recording.end(&outcome, Some(usage), None)).await;
        }
        self.account.ended(usage, Ended::Complete.name(), 0);
    }

    /// Keeps that there is no answer because of this, and what is said of it.
    async fn fails(&mut self, error: ApiError) -> ApiError {
        self.account.called(|| Called::failed(error.name()));
        self.failed().await;
        error
    }

    /// Keeps that there is no answer. One with a key may be asked for again.
    async fn failed(&mut self) {
        let reason = Reason::ModelError;
        if let Some(recording) = self.recording.take()
            && !recording.is_keyed()
        {
            let _ = recording.end(&Outcome::Failed { reason }, None, None).await;
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
    static KEPT_BACK: [HeaderName; 9] = [
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

/// What is said about an answer besides the answer.
pub(crate) fn tell(headers: &mut HeaderMap, ended: Ended, continuations: u32) {
    const OUTCOME: HeaderName = HeaderName::from_static("x-overlock-outcome");
    const CONTINUATIONS: HeaderName = HeaderName::from_static("x-overlock-continuations");
    headers.insert(OUTCOME, HeaderValue::from_static(ended.name()));
    let continuations = match continuations {
        0 => HeaderValue::from_static("0"),
        some => HeaderValue::from(some),
    };
    headers.insert(CONTINUATIONS, continuations);
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
        let answer = answer(gateway, account, HeaderMap::new(), None, Bytes::new());
        let size = size_of_val(&answer);
        assert!(size <= 8 << 10, "it takes {size} bytes");
    }
}
