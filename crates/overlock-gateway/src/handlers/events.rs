//! `GET /api/runs/events` and `GET /api/runs/{id}/events`: what happens in runs, while it happens.
//!
//! All runs: what happens in this process from now on, or from the event on that the reader had
//! last. One run: what was recorded of it, whoever recorded it, and then what happens to it. If
//! that happens here it is heard; while another process works on it, as on every run of a pipeline,
//! the store is looked into again and again.
//!
//! How far an answer is that is just being written is looked at twice a second, by each who listens:
//! it happens too often to be kept, and whoever writes it must not be held up.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::{Response, StatusCode};
use overlock_runs::{Happened, SoFar};
use overlock_store::{RunId, Since, StoreError};
use serde::Serialize;
use serde_json::json;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, timeout, timeout_at};

use super::runs::{
    Here, Missing, going_on, not_recorded, run_id, so_far, unreadable, untold, worked_on,
};
use crate::error::ApiError;
use crate::events::{Event, EventKind, Heard, Reader};
use crate::gateway::Gateway;
use crate::handlers::{Call, Handled};
use crate::record::{Grown, Growth, Recorder};
use crate::reply::{Body, KEEP_ALIVE, Reply, event_stream, whole};
use crate::unfinished_runs::Whereabouts;
use overlock_runs::Record;
use overlock_runs::to_json;
use overlock_runs::{ListedRun, RunCost, RunsError};

/// How long a reader waits before it comes again.
const COME_AGAIN: Duration = Duration::from_secs(3);

/// How often it is looked what another process has recorded.
const LOOK_AGAIN: Duration = Duration::from_millis(700);

/// How often it is looked how far answers are.
const GROWING: Duration = Duration::from_millis(500);

/// Of so many runs it is told at a time how far they are.
const MOST_GROWING: usize = 64;

/// The name of the last event of a run, which has no number.
const ENDED: &str = "ended";

pub(crate) async fn all(call: Call) -> Handled {
    let (recorder, mut reader) = listen(&call)?;
    let mut first = Told::first();
    let last = last_event(&call).and_then(|last| {
        let (era, number) = last.split_once('-')?;
        Some((era.parse::<u64>().ok()?, number.parse::<u64>().ok()?))
    });
    match last {
        Some((era, number)) if era == reader.era() => reader.go_on_after(number),
        Some(_) => first.lagged().running(&recorder, &reader),
        None => first.running(&recorder, &reader),
    }
    let growing = Growing::new(&call.gateway);
    let stream = AllRuns {
        recorder,
        reader,
        growing,
    };
    let keep_alive = call.gateway.settings.limits.keep_alive;
    Ok(event_stream(told(first, stream, keep_alive)))
}

pub(crate) async fn one(call: Call) -> Handled {
    let missing = Missing::of(call.request.uri().query())?;
    missing.told(followed(call).await, no_more)
}

/// So a browser is told that there is no more to come.
fn no_more() -> Reply {
    let mut reply = Response::new(whole(""));
    *reply.status_mut() = StatusCode::NO_CONTENT;
    reply
}

async fn followed(call: Call) -> Handled {
    let id = run_id(call.request.uri().path(), "/events")?;
    if last_event(&call) == Some(ENDED) {
        return Ok(no_more());
    }
    let (recorder, mut reader) = listen(&call)?;
    reader.go_back();
    let is_live = recorder.is_live(&id);
    // What was done before is on the disk then.
    let written = recorder.write(|_| Ok(())).await;
    written.map_err(|_| unreadable())?;
    let after = last_event(&call).and_then(|last| last.parse().ok());
    let mut stream = OneRun {
        recorder,
        reader: Some(reader),
        id,
        is_begun: false,
        steps: after.unwrap_or(0),
        stored: VecDeque::new(),
        looks: Looks::No,
        growing: Growing::new(&call.gateway),
    };
    let looked = stream.look().await.map_err(|_| ApiError::defect())?;
    match looked.map_err(|error| untold(&error.into()))? {
        Some(look) => stream.saw(look).map_err(|error| untold(&error))?,
        // Of some runs nothing is written before they end.
        None if is_live => {}
        None => return Err(untold(&RunsError::Missing { id: stream.id })),
    }
    let keep_alive = call.gateway.settings.limits.keep_alive;
    Ok(event_stream(told(Told::first(), stream, keep_alive)))
}

/// Somebody more who listens, if runs are recorded and there is room.
fn listen(call: &Call) -> Result<(Arc<Recorder>, Reader), ApiError> {
    let settings = &call.gateway.settings;
    let recorder = call.gateway.recorder.as_ref();
    let recorder = recorder.filter(|_| settings.record != Record::Off);
    let recorder = Arc::clone(recorder.ok_or_else(not_recorded)?);
    let most = settings.limits.readers;
    let reader = recorder.events.listen(most, call.hang_up.clone());
    let reader = reader.ok_or_else(|| {
        let message = format!("{most} readers of events are there already");
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message)
            .with_code("too-many-readers")
            .with_retry_after(COME_AGAIN)
    })?;
    Ok((recorder, reader))
}

/// The last event that the client had, which a browser tells by itself when it comes again.
fn last_event(call: &Call) -> Option<&str> {
    call.request.headers().get("last-event-id")?.to_str().ok()
}

/// Events as they go over the wire.
#[derive(Default)]
struct Told(String);

impl Told {
    /// What every stream begins with.
    fn first() -> Self {
        Self(format!("retry: {}\n\n", COME_AGAIN.as_millis()))
    }

    fn event(&mut self, id: Option<&str>, name: &str, data: &str) -> &mut Self {
        // Text that is written into a string is never refused.
        if let Some(id) = id {
            let _ = writeln!(self.0, "id: {id}");
        }
        let _ = write!(self.0, "event: {name}\ndata: {data}\n\n");
        self
    }

    fn lagged(&mut self) -> &mut Self {
        let message = "some of what happened is not there any more: read the runs again";
        self.event(None, "lagged", &json!({ "message": message }).to_string())
    }

    /// The runs that are worked on, which whoever comes too late for their beginning must know.
    fn running(&mut self, recorder: &Recorder, reader: &Reader) {
        let runs = json!({ "runs": recorder.running() }).to_string();
        // It stands for all that happened before.
        let id = format!("{}-{}", reader.era(), reader.at.saturating_sub(1));
        self.event(Some(&id), "running", &runs);
    }
}

/// Something that goes on telling.
trait Tell: Send + 'static {
    /// What is told next; nothing if that was all.
    fn next(&mut self) -> impl Future<Output = Option<Told>> + Send;

    /// Whether anything can still come, asked after a long silence.
    fn is_alive(&self) -> bool;
}

/// A body that tells, and shows life where there is nothing to tell.
fn told(first: Told, stream: impl Tell, keep_alive: Duration) -> Body {
    let pieces = stream::unfold(
        (Some(first), stream),
        move |(first, mut stream)| async move {
            if let Some(Told(first)) = first {
                return Some((Bytes::from(first), (None, stream)));
            }
            let piece = match timeout(keep_alive, stream.next()).await {
                Ok(told) => Bytes::from(told?.0),
                Err(_) if stream.is_alive() => Bytes::from_static(KEEP_ALIVE),
                Err(_) => return None,
            };
            Some((piece, (None, stream)))
        },
    );
    let frames = futures_util::StreamExt::map(pieces, |piece| Ok(Frame::data(piece)));
    BodyExt::boxed_unsync(StreamBody::new(frames))
}

/// Tells one who listens how far answers are that are being written.
struct Growing {
    gateway: Arc<Gateway>,
    /// When it is looked at next.
    at: Instant,
    /// What was told of each run, and in which turn.
    told: HashMap<RunId, GrowthTold>,
    turn: u64,
}

/// How far an answer was when that was told.
#[derive(Clone, Copy, PartialEq, Eq)]
struct GrowthTold {
    turn: u64,
    number: u32,
    bytes: u64,
}

impl Growing {
    fn new(gateway: &Arc<Gateway>) -> Self {
        Self {
            gateway: Arc::clone(gateway),
            at: Instant::now() + GROWING,
            told: HashMap::new(),
            turn: 0,
        }
    }

    /// What is new of these, which are all that there are. Those that have waited longest are told
    /// first.
    fn news(&mut self, recorder: &Recorder, growths: Vec<(RunId, Arc<Growth>)>) -> Told {
        self.at = Instant::now() + GROWING;
        self.turn += 1;
        let before = std::mem::take(&mut self.told);
        let mut waiting = Vec::new();
        for (id, growth) in growths {
            let grown = growth.now();
            let known = before.get(&id).copied();
            if let Some(known) = known {
                self.told.insert(id.clone(), known);
            }
            let is_known = |it: GrowthTold| (it.number, it.bytes) == (grown.number, grown.bytes);
            if grown.number > 0 && !known.is_some_and(is_known) {
                waiting.push((known.map_or(0, |it| it.turn), id, growth, grown));
            }
        }
        waiting.sort_unstable_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
        let mut told = Told::default();
        for (_, id, growth, grown) in waiting.into_iter().take(MOST_GROWING) {
            told.event(
                None,
                "growing",
                &self.of_run(recorder, &id, &growth, &grown),
            );
            let known = GrowthTold {
                turn: self.turn,
                number: grown.number,
                bytes: grown.bytes,
            };
            self.told.insert(id, known);
        }
        told
    }

    /// How far an answer is. Its tokens are an estimate, by what its end has.
    fn of_run(&self, recorder: &Recorder, id: &RunId, growth: &Growth, grown: &Grown) -> String {
        #[derive(Serialize)]
        struct Told<'a> {
            run: &'a RunId,
            number: u32,
            bytes: u64,
            tokens: u64,
            input_tokens: u64,
            output_tokens: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            cost: Option<RunCost>,
            #[serde(skip_serializing_if = "Option::is_none")]
            text: Option<&'a str>,
        }
        let model = &growth.about.model;
        let known = self.gateway.known.get(&self.gateway.settings, model);
        let of_end = known.counter.tokens().count(&grown.end);
        let tokens = match grown.end.len() as u64 {
            0 => 0,
            end => u128::from(of_end) * u128::from(grown.bytes) / u128::from(end),
        };
        let tokens = u64::try_from(tokens).unwrap_or(u64::MAX);
        let mut tally = grown.tally;
        tally.call(0, tokens);
        to_json(&Told {
            run: id,
            number: grown.number,
            bytes: grown.bytes,
            tokens,
            input_tokens: tally.input_tokens,
            output_tokens: tally.output_tokens,
            cost: recorder.pricing.of([(model.as_str(), tally.usage())]),
            text: recorder.events.shows_text().then_some(&*grown.end),
        })
    }
}

struct AllRuns {
    recorder: Arc<Recorder>,
    reader: Reader,
    growing: Growing,
}

impl Tell for AllRuns {
    async fn next(&mut self) -> Option<Told> {
        let heard = loop {
            let next = self.reader.next(None);
            if let Ok(heard) = timeout_at(self.growing.at, next).await {
                break heard;
            }
            let growths = self.recorder.growths.all();
            let told = self.growing.news(&self.recorder, growths);
            if !told.0.is_empty() {
                return Some(told);
            }
        };
        let mut told = Told::default();
        match heard {
            Heard::Event(number, event) => {
                let id = format!("{}-{number}", self.reader.era());
                told.event(Some(&id), event.kind.name(), &event.data);
            }
            Heard::Lagged => told.lagged().running(&self.recorder, &self.reader),
            Heard::Closed => return None,
        }
        Some(told)
    }

    fn is_alive(&self) -> bool {
        true
    }
}

struct OneRun {
    recorder: Arc<Recorder>,
    /// Nothing once there is nothing more to hear.
    reader: Option<Reader>,
    id: RunId,
    is_begun: bool,
    /// How many steps were told.
    steps: u32,
    /// What was recorded and is not told yet.
    stored: VecDeque<Event>,
    looks: Looks,
    growing: Growing,
}

/// Whether the store is looked into for what another process records.
enum Looks {
    No,
    /// At this time.
    At(Instant),
    /// Now. Whoever waits for it may be gone before it is there.
    Now(JoinHandle<Result<Option<Look>, StoreError>>),
}

/// Where something was heard of a run.
enum OneHeard {
    Here(Heard),
    /// It was found in the store.
    Looked,
    /// It has come so far.
    Grown(Told),
}

/// What the store has of a run.
struct Look {
    /// What of it and of who works on it was held before that was read.
    worked_on: HashSet<RunId>,
    since: Since,
    /// How far it had come when nobody worked on it any more.
    so_far: Option<SoFar>,
}

impl OneRun {
    /// Looks what is recorded of the run and was not told yet.
    fn look(&self) -> JoinHandle<Result<Option<Look>, StoreError>> {
        let (store, id) = (Arc::clone(self.recorder.store()), self.id.clone());
        let steps = self.steps;
        let definitions = Arc::clone(&self.growing.gateway.definitions);
        spawn_blocking(move || {
            let Some(before) = store.since(&id, u32::MAX)? else {
                return Ok(None);
            };
            // In this order: of who has let go, everything is there.
            let worked_on = worked_on(&*store, slice::from_ref(&before.summary))?;
            let Some(since) = store.since(&id, steps)? else {
                return Ok(None);
            };
            // Of who is at work it is told step by step.
            let so_far = if worked_on.contains(&id) {
                None
            } else {
                so_far(&*store, &since.summary, &*definitions)?
            };
            Ok(Some(Look {
                worked_on,
                since,
                so_far,
            }))
        })
    }

    /// Tells what was seen in the store.
    fn saw(&mut self, look: Look) -> Result<(), RunsError> {
        let Look {
            worked_on,
            since: Since { mut summary, steps },
            so_far,
        } = look;
        let is_worked_on = worked_on.contains(&self.id);
        if is_worked_on {
            summary = going_on(summary);
        }
        let at = if is_worked_on {
            Whereabouts::Known
        } else {
            Here::of(&self.growing.gateway).whereabouts(&summary, &worked_on)
        };
        let listed = ListedRun::from(&summary);
        let listed = at.told(match so_far {
            Some(so_far) => listed.so_far(so_far),
            None => listed,
        });
        let as_begun = ListedRun {
            ended_at: None,
            outcome: None,
            reason: None,
            cut: None,
            stopped_at: None,
            left: false,
            iterations: 0,
            last_at: None,
            paused_ms: 0,
            paused_at_most: false,
            tally: None,
            used: None,
            upstream_fault: None,
            unfit: None,
            ..listed.clone()
        };
        let goes_on = is_worked_on && self.steps > 0;
        let began = if goes_on { &listed } else { &as_begun };
        let began = Event::of_run(EventKind::Began, began);
        self.stored.push_back(began);
        let events = &self.recorder.events;
        for (number, step) in (self.steps + 1..).zip(&steps) {
            let damaged = |source| RunsError::Damaged {
                id: self.id.clone(),
                source,
            };
            let event = if listed.pipeline.is_some() {
                let happened = Happened::read(step).map_err(damaged)?;
                let pricing = &self.recorder.pricing;
                events.in_pipeline(&self.id, number, happened, pricing)
            } else {
                let step = serde_json::from_str(step).map_err(damaged)?;
                events.step(&self.id, number, &step)
            };
            self.stored.push_back(event);
        }
        self.looks = Looks::No;
        let last = match listed.ended_at {
            Some(_) => EventKind::Ended,
            None if self.recorder.is_live(&self.id) => return Ok(()),
            None if at != Whereabouts::Left => {
                self.looks = Looks::At(Instant::now() + LOOK_AGAIN);
                return Ok(());
            }
            None => EventKind::Left,
        };
        let listed = ListedRun {
            left: last == EventKind::Left,
            ..listed
        };
        let listed = listed.priced(&self.recorder.pricing);
        self.stored.push_back(Event::of_run(last, &listed));
        Ok(())
    }

    /// Waits for what is heard here, for as long as the store need not be looked into.
    async fn hear(&mut self) -> Option<OneHeard> {
        loop {
            let reader = self.reader.as_mut()?;
            match &mut self.looks {
                Looks::No => {
                    let next = reader.next(Some(&self.id));
                    if let Ok(heard) = timeout_at(self.growing.at, next).await {
                        return Some(OneHeard::Here(heard));
                    }
                    let growth = self.recorder.growths.of(&self.id);
                    // Of an answer that was told as a step there is nothing more to come.
                    let growth = growth.filter(|it| it.now().number > self.steps);
                    let growth = growth.map(|growth| (self.id.clone(), growth));
                    let growths = growth.into_iter().collect();
                    let told = self.growing.news(&self.recorder, growths);
                    if self.is_begun && !told.0.is_empty() {
                        return Some(OneHeard::Grown(told));
                    }
                }
                Looks::At(time) => {
                    let time = *time;
                    if let Ok(heard) = timeout_at(time, reader.next(Some(&self.id))).await {
                        return Some(OneHeard::Here(heard));
                    }
                    self.looks = Looks::Now(self.look());
                }
                Looks::Now(looking) => {
                    let looked = looking.await.ok().and_then(Result::ok).flatten();
                    // A store that cannot be read now may be there when somebody comes again.
                    self.saw(looked?).ok()?;
                    return Some(OneHeard::Looked);
                }
            }
        }
    }

    /// An event, unless it was told already.
    fn told(&mut self, event: &Event) -> Option<Told> {
        let mut told = Told::default();
        let number = event.steps.to_string();
        let id = match event.kind {
            // Who comes again knows of the beginning, but not that somebody has taken it up.
            EventKind::Began if self.is_begun || self.steps > 0 && event.steps == 0 => return None,
            EventKind::Asking | EventKind::Retrying if event.steps <= self.steps => return None,
            kind if kind.is_recorded() && event.steps <= self.steps => return None,
            EventKind::Began if event.steps == 0 => Some("0"),
            EventKind::Step | EventKind::Answer | EventKind::Resumed => Some(&*number),
            EventKind::Ended => Some(ENDED),
            EventKind::Began | EventKind::Asking | EventKind::Retrying | EventKind::Left => None,
        };
        let before = match event.kind {
            EventKind::Asking
            | EventKind::Retrying
            | EventKind::Step
            | EventKind::Answer
            | EventKind::Resumed => event.steps - 1,
            EventKind::Began | EventKind::Ended | EventKind::Left => event.steps,
        };
        if before > self.steps && event.kind != EventKind::Began {
            told.lagged();
        }
        self.is_begun = true;
        if event.kind.is_recorded() {
            self.steps = event.steps;
        }
        if event.kind.is_last() {
            self.reader = None;
            self.stored.clear();
        }
        told.event(id, event.kind.name(), &event.data);
        Some(told)
    }
}

impl Tell for OneRun {
    async fn next(&mut self) -> Option<Told> {
        loop {
            while let Some(event) = self.stored.pop_front() {
                if let Some(told) = self.told(&event) {
                    return Some(told);
                }
            }
            match self.hear().await? {
                OneHeard::Looked => {}
                OneHeard::Grown(told) => return Some(told),
                OneHeard::Here(Heard::Event(_, event)) => {
                    if let Some(told) = self.told(&event) {
                        return Some(told);
                    }
                }
                OneHeard::Here(Heard::Lagged) => {
                    // Whoever comes again goes on after the last step.
                    self.reader = None;
                    let mut told = Told::default();
                    told.lagged();
                    return Some(told);
                }
                OneHeard::Here(Heard::Closed) => return None,
            }
        }
    }

    /// A run may have ended just before anybody listened.
    fn is_alive(&self) -> bool {
        !matches!(self.looks, Looks::No) || self.recorder.is_live(&self.id)
    }
}
