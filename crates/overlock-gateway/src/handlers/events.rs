//! `GET /api/runs/events` and `GET /api/runs/{id}/events`: streams of the events of runs.
//!
//! All runs: the events of this process from now on, or after the last event that the client had.
//! One run: its recorded events, from any process, and then new ones. Events of this
//! process come from its log. While another process works on the run, as on every pipeline, the
//! store is polled.

mod progress;
mod sse;

use std::collections::{HashSet, VecDeque};
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::response::IntoResponse;
use hyper::{HeaderMap, StatusCode};
use overlock_runs::{ListedRun, Record, RunProgress, RunsError, StoredEvent};
use overlock_store::{RunId, Since, StoreError};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, timeout_at};

use super::runs::{
    MissingRun, RunInPath, RunOwners, api_error, held_runs, not_recorded, pipeline_progress,
    reopened, run_id, store_error,
};
use crate::error::ApiError;
use crate::events::{Event, EventKind, Received, Subscription};
use crate::gateway::Gateway;
use crate::handlers::{Handled, RequestScope};
use crate::record::Recorder;
use crate::reply::{Reply, event_stream};
use crate::unfinished_runs::Liveness;
use progress::ProgressReporter;
use sse::{EventSource, RECONNECT_DELAY, SseText};

/// How often the store is polled for the records of another process.
const POLL_INTERVAL: Duration = Duration::from_millis(700);

/// The id of the last event of a run, which has no number.
const ENDED: &str = "ended";

pub(crate) async fn all(
    State(gateway): State<Arc<Gateway>>,
    Extension(scope): Extension<RequestScope>,
    headers: HeaderMap,
) -> Handled {
    let (recorder, mut subscription) = subscribe(&gateway, &scope)?;
    let mut first = SseText::first();
    let last = last_event(&headers).and_then(|last| {
        let (era, number) = last.split_once('-')?;
        Some((era.parse::<u64>().ok()?, number.parse::<u64>().ok()?))
    });
    match last {
        Some((era, number)) if era == subscription.era() => subscription.resume_after(number),
        Some(_) => first.lagged().running(&recorder, &subscription),
        None => first.running(&recorder, &subscription),
    }
    let progress = ProgressReporter::new(&gateway);
    let source = AllRuns {
        recorder,
        subscription,
        progress,
    };
    let keep_alive = gateway.settings.limits.keep_alive;
    Ok(event_stream(sse::body(first, source, keep_alive)))
}

pub(crate) async fn one(
    State(gateway): State<Arc<Gateway>>,
    Extension(scope): Extension<RequestScope>,
    RawQuery(query): RawQuery,
    id: RunInPath,
    headers: HeaderMap,
) -> Handled {
    let missing = MissingRun::from_query(query.as_deref())?;
    let events = run_events(&gateway, &scope, id, last_event(&headers)).await;
    missing.reply(events, no_more)
}

/// An empty reply, after which a browser does not reconnect.
fn no_more() -> Reply {
    StatusCode::NO_CONTENT.into_response()
}

async fn run_events(
    gateway: &Arc<Gateway>,
    scope: &RequestScope,
    id: RunInPath,
    last_event: Option<&str>,
) -> Handled {
    let id = run_id(id)?;
    if last_event == Some(ENDED) {
        return Ok(no_more());
    }
    let (recorder, mut subscription) = subscribe(gateway, scope)?;
    subscription.rewind();
    let is_live = recorder.is_live(&id);
    // Waits until earlier writes are on disk.
    let written = recorder.write(|_| Ok(())).await;
    written.map_err(|_| store_error())?;
    let after = last_event.and_then(|last| last.parse().ok());
    let mut source = OneRun {
        recorder,
        subscription: Some(subscription),
        id,
        is_begun: false,
        steps: after.unwrap_or(0),
        stored: VecDeque::new(),
        polling: Polling::Off,
        progress: ProgressReporter::new(gateway),
    };
    let records = source.read_store().await.map_err(|_| ApiError::defect())?;
    match records.map_err(|error| api_error(&error.into()))? {
        Some(records) => source.add(records).map_err(|error| api_error(&error))?,
        // With metadata only, a run is recorded when it ends.
        None if is_live => {}
        None => return Err(api_error(&RunsError::Missing { id: source.id })),
    }
    let keep_alive = gateway.settings.limits.keep_alive;
    Ok(event_stream(sse::body(
        SseText::first(),
        source,
        keep_alive,
    )))
}

/// Subscribes to events, if runs are recorded and the limit is not reached.
fn subscribe(
    gateway: &Gateway,
    scope: &RequestScope,
) -> Result<(Arc<Recorder>, Subscription), ApiError> {
    let settings = &gateway.settings;
    let recorder = gateway.recorder.as_ref();
    let recorder = recorder.filter(|_| settings.record != Record::Off);
    let recorder = Arc::clone(recorder.ok_or_else(not_recorded)?);
    let most = settings.limits.readers;
    let subscription = recorder.events.subscribe(most, scope.peer.hang_up.clone());
    let subscription = subscription.ok_or_else(|| {
        let message = format!("the limit of {most} event subscribers is reached");
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message)
            .with_code("too-many-readers")
            .with_retry_after(RECONNECT_DELAY)
    })?;
    Ok((recorder, subscription))
}

/// The id of the last event that the client received, which browsers send when they reconnect.
fn last_event(headers: &HeaderMap) -> Option<&str> {
    headers.get("last-event-id")?.to_str().ok()
}

struct AllRuns {
    recorder: Arc<Recorder>,
    subscription: Subscription,
    progress: ProgressReporter,
}

impl EventSource for AllRuns {
    async fn next(&mut self) -> Option<SseText> {
        let received = loop {
            let next = self.subscription.next(None);
            if let Ok(received) = timeout_at(self.progress.at, next).await {
                break received;
            }
            let running = self.recorder.progress.all();
            let text = self.progress.changes(&self.recorder, running);
            if !text.is_empty() {
                return Some(text);
            }
        };
        let mut text = SseText::default();
        match received {
            Received::Event(number, event) => {
                let id = format!("{}-{number}", self.subscription.era());
                text.event(Some(&id), event.kind.name(), &event.data);
            }
            Received::Lagged => text.lagged().running(&self.recorder, &self.subscription),
            Received::Closed => return None,
        }
        Some(text)
    }

    fn is_alive(&self) -> bool {
        true
    }
}

struct OneRun {
    recorder: Arc<Recorder>,
    /// `None` after the last event.
    subscription: Option<Subscription>,
    id: RunId,
    is_begun: bool,
    /// How many steps were sent.
    steps: u32,
    /// Recorded events that are not sent yet.
    stored: VecDeque<Event>,
    polling: Polling,
    progress: ProgressReporter,
}

/// Whether the store is polled for the records of another process.
enum Polling {
    Off,
    /// The next poll is at this time.
    At(Instant),
    /// A poll is running. The task continues if the stream is dropped meanwhile.
    Now(JoinHandle<Result<Option<StoredRun>, StoreError>>),
}

/// Something new about a run.
enum Update {
    /// From the log of this process.
    Received(Received),
    /// From the store; the events are in `stored`.
    Stored,
    /// The progress of the current answer.
    Progress(SseText),
}

/// The records of a run.
struct StoredRun {
    /// Of the run and its worker, those that a process held before the records were read.
    held: HashSet<RunId>,
    since: Since,
    /// The progress of a pipeline that no process works on.
    so_far: Option<RunProgress>,
}

impl OneRun {
    /// Reads the records of the run that are not sent yet.
    fn read_store(&self) -> JoinHandle<Result<Option<StoredRun>, StoreError>> {
        let (store, id) = (Arc::clone(self.recorder.store()), self.id.clone());
        let steps = self.steps;
        let definitions = Arc::clone(&self.progress.gateway.definitions);
        spawn_blocking(move || {
            let Some(before) = store.since(&id, u32::MAX)? else {
                return Ok(None);
            };
            // Locks are checked before the records are read: a process that has released its lock
            // has written all its records.
            let held = held_runs(&*store, slice::from_ref(&before.summary))?;
            let Some(since) = store.since(&id, steps)? else {
                return Ok(None);
            };
            // While a process works on the run, its progress is sent step by step.
            let so_far = if held.contains(&id) {
                None
            } else {
                pipeline_progress(&*store, &since.summary, &*definitions)?
            };
            Ok(Some(StoredRun {
                held,
                since,
                so_far,
            }))
        })
    }

    /// Queues the events of records, and decides whether to poll again.
    fn add(&mut self, records: StoredRun) -> Result<(), RunsError> {
        let StoredRun {
            held,
            since: Since { mut summary, steps },
            so_far,
        } = records;
        let is_held = held.contains(&self.id);
        if is_held {
            summary = reopened(summary);
        }
        let liveness = if is_held {
            Liveness::Known
        } else {
            RunOwners::new(&self.progress.gateway).liveness(&summary, &held)
        };
        let listed = ListedRun::from(&summary);
        let listed = liveness.mark(match so_far {
            Some(so_far) => listed.so_far(so_far),
            None => listed,
        });
        let as_begun = ListedRun {
            ended_at: None,
            outcome: None,
            reason: None,
            cut: None,
            stopped_at: None,
            interrupted: false,
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
        let is_resumed = is_held && self.steps > 0;
        let began = if is_resumed { &listed } else { &as_begun };
        let began = Event::of_run(EventKind::Began, began);
        self.stored.push_back(began);
        let events = &self.recorder.events;
        for (number, step) in (self.steps + 1..).zip(&steps) {
            let damaged = |source| RunsError::Damaged {
                id: self.id.clone(),
                source,
            };
            let event = if listed.pipeline.is_some() {
                let happened = StoredEvent::read(step).map_err(damaged)?;
                let pricing = &self.recorder.pricing;
                events.in_pipeline(&self.id, number, happened, pricing)
            } else {
                let step = serde_json::from_str(step).map_err(damaged)?;
                events.step(&self.id, number, &step)
            };
            self.stored.push_back(event);
        }
        self.polling = Polling::Off;
        let last = match listed.ended_at {
            Some(_) => EventKind::Ended,
            None if self.recorder.is_live(&self.id) => return Ok(()),
            None if liveness != Liveness::Interrupted => {
                self.polling = Polling::At(Instant::now() + POLL_INTERVAL);
                return Ok(());
            }
            None => EventKind::Interrupted,
        };
        let listed = ListedRun {
            interrupted: last == EventKind::Interrupted,
            ..listed
        };
        let listed = listed.priced(&self.recorder.pricing);
        self.stored.push_back(Event::of_run(last, &listed));
        Ok(())
    }

    /// Waits for the next update from the log or the store.
    async fn update(&mut self) -> Option<Update> {
        loop {
            let subscription = self.subscription.as_mut()?;
            match &mut self.polling {
                Polling::Off => {
                    let next = subscription.next(Some(&self.id));
                    if let Ok(received) = timeout_at(self.progress.at, next).await {
                        return Some(Update::Received(received));
                    }
                    let live = self.recorder.progress.get(&self.id);
                    // An answer that was sent as a step makes no more progress.
                    let live = live.filter(|it| it.now().number > self.steps);
                    let running = live.map(|live| (self.id.clone(), live));
                    let running = running.into_iter().collect();
                    let text = self.progress.changes(&self.recorder, running);
                    if self.is_begun && !text.is_empty() {
                        return Some(Update::Progress(text));
                    }
                }
                Polling::At(time) => {
                    let time = *time;
                    let next = subscription.next(Some(&self.id));
                    if let Ok(received) = timeout_at(time, next).await {
                        return Some(Update::Received(received));
                    }
                    self.polling = Polling::Now(self.read_store());
                }
                Polling::Now(task) => {
                    let records = task.await.ok().and_then(Result::ok).flatten();
                    // If the store cannot be read, the stream ends and the client reconnects.
                    self.add(records?).ok()?;
                    return Some(Update::Stored);
                }
            }
        }
    }

    /// The text of an event, unless it was sent already.
    fn text(&mut self, event: &Event) -> Option<SseText> {
        let mut text = SseText::default();
        let number = event.steps.to_string();
        let id = match event.kind {
            // A reconnected client knows that the run began, but not that it was resumed.
            EventKind::Began if self.is_begun || self.steps > 0 && event.steps == 0 => return None,
            EventKind::Asking | EventKind::Retrying if event.steps <= self.steps => return None,
            kind if kind.is_recorded() && event.steps <= self.steps => return None,
            EventKind::Began if event.steps == 0 => Some("0"),
            EventKind::Step | EventKind::Answer | EventKind::Resumed => Some(&*number),
            EventKind::Ended => Some(ENDED),
            EventKind::Began | EventKind::Asking | EventKind::Retrying | EventKind::Interrupted => {
                None
            }
        };
        let before = match event.kind {
            EventKind::Asking
            | EventKind::Retrying
            | EventKind::Step
            | EventKind::Answer
            | EventKind::Resumed => event.steps - 1,
            EventKind::Began | EventKind::Ended | EventKind::Interrupted => event.steps,
        };
        if before > self.steps && event.kind != EventKind::Began {
            text.lagged();
        }
        self.is_begun = true;
        if event.kind.is_recorded() {
            self.steps = event.steps;
        }
        if event.kind.is_last() {
            self.subscription = None;
            self.stored.clear();
        }
        text.event(id, event.kind.name(), &event.data);
        Some(text)
    }
}

impl EventSource for OneRun {
    async fn next(&mut self) -> Option<SseText> {
        loop {
            while let Some(event) = self.stored.pop_front() {
                if let Some(text) = self.text(&event) {
                    return Some(text);
                }
            }
            match self.update().await? {
                Update::Stored => {}
                Update::Progress(text) => return Some(text),
                Update::Received(Received::Event(_, event)) => {
                    if let Some(text) = self.text(&event) {
                        return Some(text);
                    }
                }
                Update::Received(Received::Lagged) => {
                    // The client reconnects and continues after the last step.
                    self.subscription = None;
                    let mut text = SseText::default();
                    text.lagged();
                    return Some(text);
                }
                Update::Received(Received::Closed) => return None,
            }
        }
    }

    /// False if the run ended just before the subscription began.
    fn is_alive(&self) -> bool {
        !matches!(self.polling, Polling::Off) || self.recorder.is_live(&self.id)
    }
}
