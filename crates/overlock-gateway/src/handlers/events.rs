//! `GET /api/runs/events` and `GET /api/runs/{id}/events`: what happens in runs, while it happens.
//!
//! All runs: what happens in this process from now on, or from the event on that the reader had
//! last. One run: what was recorded of it, whoever recorded it, and then what happens to it here.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::{Response, StatusCode};
use overlock_store::RunId;
use serde_json::json;
use tokio::time::timeout;

use super::runs::{not_recorded, run_id, unreadable, untold};
use crate::api::{ListedRun, RecordedRun, RunsError};
use crate::body::{Body, KEEP_ALIVE, event_stream, whole};
use crate::error::ApiError;
use crate::events::{Event, EventKind, Heard, Reader};
use crate::record::Recorder;
use crate::routes::{Call, Handled};
use crate::settings::Record;

/// How long a reader waits before it comes again.
const COME_AGAIN: Duration = Duration::from_secs(3);

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
    let stream = AllRuns { recorder, reader };
    let keep_alive = call.gateway.settings.limits.keep_alive;
    Ok(event_stream(told(first, stream, keep_alive)))
}

pub(crate) async fn one(call: Call) -> Handled {
    let id = run_id(call.request.uri().path(), "/events")?;
    if last_event(&call) == Some(ENDED) {
        // So a browser is told that there is no more to come.
        let mut reply = Response::new(whole(""));
        *reply.status_mut() = StatusCode::NO_CONTENT;
        return Ok(reply);
    }
    let (recorder, mut reader) = listen(&call)?;
    reader.go_back();
    let is_live = recorder.is_live(&id);
    // What was done before is on the disk then.
    let written = recorder.write(|_| Ok(())).await;
    written.map_err(|_| unreadable())?;
    let read = {
        let (recorder, id) = (Arc::clone(&recorder), id.clone());
        let read = move || RecordedRun::read(&**recorder.store(), &id);
        tokio::task::spawn_blocking(read).await
    };
    let run = match read.map_err(|_| ApiError::defect())? {
        Ok(run) => Some(run),
        // Of some runs nothing is written before they end.
        Err(RunsError::Missing { .. }) if is_live => None,
        Err(error) => return Err(untold(&error)),
    };
    let after = last_event(&call).and_then(|last| last.parse().ok());
    let mut stream = OneRun {
        recorder,
        reader: Some(reader),
        id,
        is_begun: false,
        steps: after.unwrap_or(0),
        stored: VecDeque::new(),
    };
    if let Some(run) = run {
        stream.recorded(&run, is_live);
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

struct AllRuns {
    recorder: Arc<Recorder>,
    reader: Reader,
}

impl Tell for AllRuns {
    async fn next(&mut self) -> Option<Told> {
        let mut told = Told::default();
        match self.reader.next(None).await {
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
}

impl OneRun {
    /// Tells what was recorded first.
    fn recorded(&mut self, run: &RecordedRun, is_live: bool) {
        let listed = ListedRun::from(&run.summary);
        let as_begun = ListedRun {
            ended_at: None,
            outcome: None,
            reason: None,
            cut: None,
            iterations: 0,
            tally: None,
            ..listed.clone()
        };
        let began = Event::of_run(EventKind::Began, &as_begun);
        self.stored.push_back(began);
        for (number, step) in (1..).zip(&run.steps) {
            let step = self.recorder.events.step(&self.id, number, step);
            self.stored.push_back(step);
        }
        let last = match listed.ended_at {
            Some(_) => EventKind::Ended,
            None if is_live => return,
            None => EventKind::Left,
        };
        self.stored.push_back(Event::of_run(last, &listed));
    }

    /// An event, unless it was told already.
    fn told(&mut self, event: &Event) -> Option<Told> {
        let mut told = Told::default();
        let number = event.steps.to_string();
        let id = match event.kind {
            EventKind::Began if self.is_begun || self.steps > 0 => return None,
            EventKind::Asking | EventKind::Step if event.steps <= self.steps => return None,
            EventKind::Began => Some("0"),
            EventKind::Step => Some(&*number),
            EventKind::Ended => Some(ENDED),
            EventKind::Asking | EventKind::Left => None,
        };
        let before = match event.kind {
            EventKind::Asking | EventKind::Step => event.steps - 1,
            EventKind::Began | EventKind::Ended | EventKind::Left => event.steps,
        };
        if before > self.steps && event.kind != EventKind::Began {
            told.lagged();
        }
        self.is_begun = true;
        if event.kind == EventKind::Step {
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
        while let Some(event) = self.stored.pop_front() {
            if let Some(told) = self.told(&event) {
                return Some(told);
            }
        }
        loop {
            match self.reader.as_mut()?.next(Some(&self.id)).await {
                Heard::Event(_, event) => {
                    if let Some(told) = self.told(&event) {
                        return Some(told);
                    }
                }
                Heard::Lagged => {
                    // Whoever comes again goes on after the last step.
                    self.reader = None;
                    let mut told = Told::default();
                    told.lagged();
                    return Some(told);
                }
                Heard::Closed => return None,
            }
        }
    }

    /// A run may have ended just before anybody listened.
    fn is_alive(&self) -> bool {
        self.recorder.is_live(&self.id)
    }
}
