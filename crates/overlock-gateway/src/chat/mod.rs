//! From a chat request to one whole answer.
//!
//! Plan, complete, append: the request is made to fit, its answer is passed on and continued until
//! it is whole, and what happened is kept. A streamed answer and one that comes at once are read
//! by the same rules.

mod compliance;
mod ending;
mod first;
mod joining;
mod keyed;
mod mended;
mod merged;
mod plain_text;
mod reading;
mod size;
mod skimmed;
mod stream;
mod taken;
mod whole;
pub(crate) mod wish;

pub(crate) use taken::Taken;

use std::borrow::Cow;
use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, StatusCode};
use overlock_model::{Outcome, Reason, RefusedSize, Usage};
use overlock_store::RunId;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::account::Account;
use crate::api::{CallBudget, Conditions, CountedBy, FaultKind, Unfit, UpstreamFault};
use crate::body::{Reply, json_reply, text_of, whole as whole_body};
use crate::demo;
use crate::error::ApiError;
use crate::gateway::Gateway;
use crate::record::{About, RUN, Recording, plain};
use crate::secrets::Secrets;
use crate::settings::Record;
use crate::trace::Called;
use crate::upstream::{Answer, CHAT_PATH, Client};
use joining::Joiner;
use keyed::{Answered, Keyed};
use reading::{Kind, Reading};
use size::Sent;
use whole::WholeAnswer;
use wish::{Continues, Fitted, Share, Wish};

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
    /// What the provider says that the first call took, if it answered with one text.
    pub(crate) told: Option<Usage>,
    /// How many messages were left out.
    dropped: usize,
    /// Why the request cannot be sent, if it cannot.
    unfit: Option<Box<Unfit>>,
    /// The request as it goes to the upstream, until it does.
    body: Bytes,
    /// What it is known by if it is asked again.
    key: Option<String>,
    pub(crate) recording: Option<Recording>,
    /// When all calls for it have to be done.
    pub(crate) deadline: Instant,
}

/// What a client asked, before it is read.
pub(crate) struct Asked {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) account: Arc<Account>,
    pub(crate) headers: HeaderMap,
    pub(crate) query: Option<String>,
    /// When it has to be answered.
    pub(crate) deadline: Instant,
}

impl Asked {
    /// Reads what was asked, and makes it fit.
    pub(crate) fn read(self, text: Bytes) -> Result<Box<Job>, ApiError> {
        let (wish, request) = Wish::read(&self.gateway, &self.headers, text)?;
        let fitted = wish.fit(request, Share::Most);
        let upstream = &self.gateway.settings.upstream;
        self.account
            .asked(&wish.model, wish.requested, upstream.base.as_deref());
        let key = keyed::key_of(&self.headers)?;
        let fitted = fitted?;
        let (base, shown) = if wish.model == demo::MODEL {
            (String::new(), None)
        } else if fitted.is_err() {
            // It goes nowhere, wherever it was to go.
            (upstream.base.clone().unwrap_or_default(), None)
        } else {
            (upstream.address()?.to_owned(), Some(self.headers))
        };
        let (budget, dropped, body, unfit) = match fitted {
            Ok(Fitted { plan, limit, body }) => {
                let dropped = plan.dropped_messages.len();
                (
                    CallBudget::of(&plan, &wish.known.found).with_limit(limit),
                    dropped,
                    body,
                    None,
                )
            }
            Err(unfit) => (unfit.budget.clone(), 0, Bytes::new(), Some(unfit.into())),
        };
        // Boxed, as it goes from hand to hand.
        Ok(Box::new(Job {
            deadline: self.deadline,
            gateway: self.gateway,
            account: self.account,
            wish,
            base,
            query: self.query,
            shown,
            budget,
            told: None,
            dropped,
            unfit,
            body,
            key,
            recording: None,
        }))
    }
}

/// Answers a chat request.
///
/// What few requests need is boxed here and below, or every request would carry the space for it.
pub(crate) async fn answer(mut job: Box<Job>) -> Result<Reply, ApiError> {
    if let Some(unfit) = job.unfit.take() {
        return Ok(Box::pin(job.turned_away(*unfit)).await);
    }
    if job.shown.is_none() {
        job.base = Box::pin(job.gateway.demo.base()).await?;
    } else if job.may_be_too_large()
        && let Some(unfit) = Box::pin(job.confirm_size()).await?
    {
        return Ok(Box::pin(job.turned_away(*unfit)).await);
    }
    if let Some(key) = job.key.take() {
        return Box::pin(job.keyed(key)).await;
    }
    job.begin_recording().await;
    Ok(job.first().await)
}

/// What a reply says besides the answer, whatever came of it.
struct Told {
    /// The run, by which it is found again.
    id: Option<RunId>,
    /// How many messages were left out.
    dropped: usize,
}

impl Told {
    fn with(self, replied: Result<Reply, ApiError>) -> Reply {
        static DROPPED: HeaderName = HeaderName::from_static("x-overlock-dropped-messages");
        let mut reply = replied.unwrap_or_else(ApiError::into_reply);
        let headers = reply.headers_mut();
        if let Some(id) = self.id {
            let id = HeaderValue::from_str(id.as_str());
            headers.insert(&RUN, id.expect("a name of a run is letters and digits"));
        }
        if self.dropped > 0 {
            headers.insert(&DROPPED, HeaderValue::from(self.dropped));
        }
        reply
    }
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

/// How others see whether somebody works on a run.
#[derive(Clone, Copy, Debug)]
enum Held<'a> {
    /// It is held itself, since it has a key.
    Itself,
    /// By whether this is, where anything is.
    ByWorker(Option<&'a RunId>),
}

impl Job {
    /// The reply to a request that is asked for the first time.
    async fn first(mut self: Box<Self>) -> Reply {
        match self.asked().await {
            Ok(answer) if answer.status.is_success() => {
                let told = self.told();
                told.with(self.answered(answer).await)
            }
            asked => Box::pin(self.not_answered(asked)).await,
        }
    }

    /// The reply to a request whose first call was refused or failed.
    async fn not_answered(mut self: Box<Self>, asked: Result<Box<Answer>, ApiError>) -> Reply {
        let sent = match asked {
            Ok(refused) => self.after_refusal(refused).await,
            Err(error) => Err(error),
        };
        let told = self.told();
        let replied = match sent {
            Ok(Sent::Answered(answer)) => self.answered(answer).await,
            Ok(Sent::Refused(status, refusal)) => self.refused(status, *refusal).await,
            Ok(Sent::TooLarge(unfit)) => Err(self.too_large(*unfit).await),
            Err(error) => {
                self.failed(&error).await;
                Err(error)
            }
        };
        told.with(replied)
    }

    /// The reply to a request with a key.
    async fn keyed(mut self: Box<Self>, key: String) -> Result<Reply, ApiError> {
        match keyed::begin(&self, key).await? {
            Keyed::New(recording) => {
                self.recording = Some(recording);
                Ok(self.first().await)
            }
            Keyed::Answered(id, answered) => {
                let told = Told {
                    id: Some(id),
                    ..self.told()
                };
                Ok(told.with(self.replayed(answered)))
            }
            Keyed::Unfinished(first, recording) => {
                self.recording = Some(recording);
                let told = self.told();
                Ok(told.with(self.resumed(first).await))
            }
        }
    }

    /// The reply to a request that does not fit. Whoever has a key may ask for less with it.
    async fn turned_away(mut self: Box<Self>, unfit: Unfit) -> Reply {
        self.begin_recording().await;
        let told = self.told();
        told.with(Err(self.too_large(unfit).await))
    }

    /// Keeps that the request does not fit, and what is said of it.
    async fn too_large(&mut self, unfit: Unfit) -> ApiError {
        let error = ApiError::invalid(unfit.message.clone())
            .with_code("context_length_exceeded")
            .with_param("messages");
        if let Some(mut recording) = self.recording.take() {
            recording.note_unfit(unfit);
            let reason = Reason::Window;
            // The client is told all the same.
            let _ = recording.end(&Outcome::Failed { reason }, None, None).await;
        }
        error
    }

    fn told(&self) -> Told {
        let recording = self.recording.as_ref();
        Told {
            id: recording.map(|recording| recording.id.clone()),
            dropped: self.dropped,
        }
    }

    /// Asks the upstream.
    async fn asked(&mut self) -> Result<Box<Answer>, ApiError> {
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
        let body = whole_body(mem::take(&mut self.body));
        let client = &self.gateway.client;
        let place = (self.base.as_str(), path.as_ref());
        let sent = client.send(Method::POST, place, headers, body, Some(self.deadline));
        drop(path);
        let asked = sent.await.map(Box::new);
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
    async fn answered(mut self: Box<Self>, answer: Box<Answer>) -> Result<Reply, ApiError> {
        match (self.wish.streams, answer.is_event_stream()) {
            (true, true) => Ok(stream::reply(*self, *answer)),
            (false, true) => {
                let message = "the upstream answered with a stream that nobody asked for";
                let error = ApiError::upstream(message);
                Box::pin(self.failed(&error)).await;
                Err(error)
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
    async fn refused(
        &mut self,
        status: StatusCode,
        refusal: Result<Refusal, ApiError>,
    ) -> Result<Reply, ApiError> {
        let said = match &refusal {
            Ok(refusal) => &refusal.message,
            Err(error) => &error.message,
        };
        self.fails_by(Some(status.as_u16()), None, said).await;
        Ok(refusal?.into_reply())
    }

    /// The reply to a request that was answered before.
    fn replayed(&self, answered: Answered) -> Result<Reply, ApiError> {
        self.account.unfinished(answered.outcome.name());
        let whole = WholeAnswer::replayed(answered)?;
        self.account.replayed(&whole.value, whole.outcome.name());
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
    fn about(&self, text: &str, held: Held<'_>) -> About {
        let (is_keyed, worker) = match held {
            Held::Itself => (true, None),
            Held::ByWorker(worker) => (false, worker),
        };
        let settings = &self.gateway.settings;
        let options = self.wish.continuation(&self.gateway);
        // Who asks the same again must find what was asked.
        let has_text = is_keyed || settings.record == Record::Full;
        let schema = self.wish.schema.as_ref().filter(|_| has_text);
        let conditions = Conditions {
            // A query may hold a key.
            upstream: self.base.split('?').next().map(str::to_owned),
            schema: schema.map(|schema| schema.bounded.value().clone()),
            is_held: is_keyed,
            worker: worker.map(ToString::to_string),
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

    /// Begins to keep what is to be kept of a request without a key.
    async fn begin_recording(&mut self) {
        self.recording = match self.gateway.settings.record {
            Record::Off => None,
            Record::Metadata => self.story(),
            Record::Full => Box::pin(self.recorded()).await,
        };
    }

    /// A recording of all there is. An answer does not depend on whether it can be kept.
    async fn recorded(&self) -> Option<Recording> {
        let recorder = self.gateway.recorder.as_ref()?;
        let held = Held::ByWorker(recorder.seen_worker().await);
        let about = self.about(text_of(&self.wish.text).ok()?, held);
        Recording::begin(recorder, Arc::new(about)).await.ok()
    }

    /// A recording without the text. What that is about is the same for most requests to a model,
    /// as long as nothing is learnt about its strategies.
    fn story(&self) -> Option<Recording> {
        let recorder = self.gateway.recorder.as_ref()?;
        let about = || Arc::new(self.about("", Held::ByWorker(None)));
        let strategies = self.wish.strategies(&self.gateway);
        let is_common = self.wish.max_total_tokens == self.gateway.settings.max_total_tokens;
        let story = &self.wish.known.story;
        let common = is_common.then(|| story.get_or_init(|| (strategies.to_vec(), about())));
        let about = match common {
            Some((known, about)) if known == strategies => Arc::clone(about),
            _ => about(),
        };
        Some(Recording::story(recorder, about))
    }

    /// The keys that go with the request.
    fn secrets(&self) -> Secrets {
        let own = self.gateway.settings.upstream.key.as_deref();
        Secrets::of(own, self.shown.as_ref(), self.query.as_deref())
    }

    /// What the calls for the rest of an answer need to know.
    fn joiner(&self) -> Joiner<'_> {
        Joiner {
            gateway: &self.gateway,
            wish: &self.wish,
            counter: self.wish.counter(),
            base: &self.base,
            query: self.query.as_deref(),
            shown: self.shown.as_ref(),
            account: &self.account,
            budget: &self.budget,
            told: self.told,
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

    /// Keeps how an answer ended, what that took and who says so, and what was answered for whoever
    /// may ask the same again.
    async fn ended(
        &mut self,
        outcome: &Outcome,
        usage: Option<Usage>,
        counted_by: CountedBy,
        answered: impl FnOnce() -> Answered,
    ) {
        if let Some(mut recording) = self.recording.take() {
            match usage {
                Some(_) => recording.counted_by(counted_by),
                None => recording.answered_untold(),
            }
            let answer = recording.is_keyed().then(|| answered().kept());
            // The client has its answer all the same.
            let _ = recording.end(outcome, usage, answer).await;
        }
    }

    /// Keeps that a text ended by itself, and what it took if the provider says so.
    async fn ended_plainly(&mut self, usage: Option<Usage>) {
        let outcome = Outcome::Complete;
        if let Some(recording) = &mut self.recording {
            match usage {
                Some(_) => recording.counted_by(CountedBy::Provider),
                None => recording.answered_untold(),
            }
        }
        let recording = self.recording.take();
        if let Some(recording) = recording.and_then(|it| it.end_story(&outcome, usage)) {
            // The client has its answer all the same. Boxed, or every request would carry the space
            // for what is written of few.
            let _ = Box::pin(recording.end(&outcome, usage, None)).await;
        }
        let usage = usage.unwrap_or_default();
        self.account.ended(usage, outcome.name(), Taken::default());
    }

    /// Keeps that there is no answer because of this, and what is said of it.
    async fn fails(&mut self, error: ApiError) -> ApiError {
        self.account.called(|| Called::failed(error.name()));
        self.failed(&error).await;
        error
    }

    /// Keeps that there is no answer because of this.
    async fn failed(&mut self, error: &ApiError) {
        self.fails_by(None, error.fault, &error.message).await;
    }

    /// Keeps that there is no answer, and why. One with a key may be asked for again all the same:
    /// what it is known by is an answer, and not an end.
    async fn fails_by(&mut self, status: Option<u16>, kind: Option<FaultKind>, message: &str) {
        let reason = Reason::ModelError;
        let secrets = self.secrets();
        if let Some(mut recording) = self.recording.take() {
            recording.note_fault(UpstreamFault {
                status,
                kind,
                message: secrets.scrub(message),
                retried: None,
            });
            let outcome = recording.unfinished(reason);
            self.account.unfinished(outcome.name());
            let _ = recording.end(&outcome, None, None).await;
        }
    }

    /// Keeps that nobody knows whether the answer ended. One with a key may be asked for again.
    async fn does_not_end(&mut self) {
        if let Some(recording) = self.recording.take_if(|it| !it.is_keyed()) {
            let outcome = recording.unfinished(Reason::NoFinish);
            self.account.unfinished(outcome.name());
            let _ = recording.end(&outcome, None, None).await;
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

/// What an upstream says against a request.
pub(crate) struct Refusal {
    status: StatusCode,
    headers: HeaderMap,
    /// What it says, if that is in the shape that clients know.
    known: Option<Value>,
    /// The same in words.
    pub(crate) message: String,
    /// The sizes it names, if the request is too large.
    size: Option<RefusedSize>,
}

impl Refusal {
    pub(crate) async fn read(client: &Client, mut answer: Answer) -> Result<Self, ApiError> {
        const LONGEST: usize = 1 << 20;
        let body = answer.read_whole(LONGEST).await?;
        let mut value: Option<Value> = serde_json::from_slice(&body).ok();
        if let Some(value) = &mut value {
            client.hide_key_in(value);
        }
        let is_about_request = matches!(answer.status.as_u16(), 400 | 413 | 422);
        let size = value.as_ref().filter(|_| is_about_request);
        let size = size.and_then(RefusedSize::read);
        let is_known = |value: &Value| value.get("error").is_some_and(Value::is_object);
        let known = value.filter(is_known);
        let said = known
            .as_ref()
            .and_then(|value| value.pointer("/error/message"));
        let message = match (said.and_then(Value::as_str), answer.packing()) {
            (Some(said), _) => said.to_owned(),
            (None, Some(packing)) => format!("something that is packed as `{packing}`"),
            (None, None) => client.without_key(&String::from_utf8_lossy(&body)),
        };
        Ok(Self {
            status: answer.status,
            headers: answer.headers,
            known,
            message,
            size,
        })
    }

    /// The same in the shape that clients know, with its status.
    pub(crate) fn into_reply(self) -> Reply {
        let mut reply = if let Some(value) = self.known {
            json_reply(self.status, &value)
        } else {
            let said: String = self.message.chars().take(500).collect();
            let message = format!("the upstream answered {}: {said}", self.status);
            ApiError::new(self.status, "upstream_error", message).into_reply()
        };
        pass_on(&self.headers, reply.headers_mut());
        reply
    }
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
pub(crate) fn tell(headers: &mut HeaderMap, outcome: &Outcome, continuations: u32) {
    const OUTCOME: HeaderName = HeaderName::from_static("x-overlock-outcome");
    const REASON: HeaderName = HeaderName::from_static("x-overlock-reason");
    const CONTINUATIONS: HeaderName = HeaderName::from_static("x-overlock-continuations");
    headers.insert(OUTCOME, HeaderValue::from_static(outcome.name()));
    if let Some(reason) = outcome.reason() {
        headers.insert(REASON, HeaderValue::from_static(reason.name()));
    }
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
        let asked = Asked {
            gateway,
            account: Arc::new(Account::default()),
            headers: HeaderMap::new(),
            query: None,
            deadline: Instant::now(),
        };
        let message = json!({ "role": "user", "content": "Hello" });
        let request = json!({ "model": demo::MODEL, "messages": [message] }).to_string();
        let job = asked.read(request.into());
        let size = size_of_val(&answer(
            job.unwrap_or_else(|error| panic!("{}", error.message)),
        ));
        assert!(size <= 1 << 10, "it takes {size} bytes");
    }
}
