//! Tells those who listen what happens in runs, while it happens.
//!
//! What happened last is kept once for all who listen, up to a size. Whoever reads too slowly to
//! find it there is told so, and goes on with what is new: no run waits for a reader, and no
//! reader takes more memory the slower it is. While nobody listens nothing is kept or even written
//! down, and a run pays for one look at a flag.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::AbortHandle;
use overlock_llm::{Retry, Usage};
use overlock_runs::Happened;
use overlock_store::RunId;
use serde::Serialize;
use serde_json::json;
use tokio::sync::Notify;

use overlock_runs::to_json;
use overlock_runs::{
    CallBudget, ListedRun, Pricing, RecordedStep, RunCost, Text, price, shown_event,
};

/// So many events are kept at most.
const MOST_EVENTS: usize = 4096;

/// So many bytes of events are kept at most, if there is more than one.
const MOST_BYTES: usize = 4 << 20;

/// A step that is longer is told without its text.
const LONGEST_STEP: usize = 1 << 20;

/// So long events are kept for those who lost their connection.
const COMING_BACK: Duration = Duration::from_secs(30);

/// What happens in the runs of this process.
pub(crate) struct Events {
    /// Whether there is anybody to keep events for.
    is_kept: AtomicBool,
    /// Whether the text of a run is told too.
    shows_text: bool,
    /// Tells the numbers of this process from those of one that was here before.
    pub(crate) era: u64,
    log: Mutex<Log>,
    news: Notify,
}

/// What happened last, without a gap.
#[derive(Default)]
struct Log {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    /// The number of the next event.
    next: u64,
    readers: Vec<(u64, AbortHandle)>,
    /// How many readers there were.
    readers_so_far: u64,
    last_left: Option<Instant>,
    is_closed: bool,
}

/// An answer within a step of a pipeline, with what it took.
#[derive(Serialize)]
struct ToldAnswer<'a> {
    run: &'a RunId,
    /// How many things are recorded of the run with it.
    entry: u32,
    step_id: &'a str,
    tokens: u64,
    usage: Usage,
    window: u64,
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<RunCost>,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) kind: EventKind,
    pub(crate) run: RunId,
    /// How many steps the run has with it.
    pub(crate) steps: u32,
    /// What is told of it, as JSON.
    pub(crate) data: String,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    Began,
    Asking,
    /// The model was asked and did not answer, and will be asked again.
    Retrying,
    Step,
    /// A model answered within a step of a pipeline.
    Answer,
    /// Somebody goes on with a pipeline.
    Resumed,
    Ended,
    /// Whoever asked went away, and may ask again.
    Left,
}

impl EventKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Began => "began",
            Self::Asking => "asking",
            Self::Retrying => "retrying",
            Self::Step => "step",
            Self::Answer => "answer",
            Self::Resumed => "resumed",
            Self::Ended => "ended",
            Self::Left => "left",
        }
    }

    /// Whether it is one of the things that are recorded of a run, one after the other.
    pub(crate) fn is_recorded(self) -> bool {
        matches!(self, Self::Step | Self::Answer | Self::Resumed)
    }

    /// Whether nothing comes after it.
    pub(crate) fn is_last(self) -> bool {
        matches!(self, Self::Ended | Self::Left)
    }
}

impl Events {
    /// Nobody listens yet.
    pub(crate) fn new(era: u64, shows_text: bool) -> Self {
        Self {
            is_kept: AtomicBool::new(false),
            shows_text,
            era,
            log: Mutex::new(Log {
                // There is a number before the first, for whoever has heard nothing yet.
                next: 1,
                ..Log::default()
            }),
            news: Notify::new(),
        }
    }

    /// Tells of an event, which is only made if somebody listens.
    pub(crate) fn tell(&self, event: impl FnOnce() -> Event) {
        if let Some(event) = self.prepared(event) {
            self.add(event);
        }
    }

    /// An event that is told when this is dropped, whatever becomes of what it waits for.
    pub(crate) fn tell_later(self: &Arc<Self>, event: impl FnOnce() -> Event) -> Later {
        let event = self.prepared(event);
        Later(event.map(|event| (Arc::clone(self), event)))
    }

    /// Whether there is anybody to keep events for.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept.load(Ordering::SeqCst)
    }

    /// Whether the text of a run is told too.
    pub(crate) fn shows_text(&self) -> bool {
        self.shows_text
    }

    fn prepared(&self, event: impl FnOnce() -> Event) -> Option<Event> {
        self.is_kept().then(event)
    }

    fn add(&self, event: Event) {
        let mut log = self.log();
        if log.is_closed {
            return;
        }
        if !log.is_listened_to() {
            self.is_kept.store(false, Ordering::SeqCst);
            log.forget();
            return;
        }
        log.add(event);
        drop(log);
        self.news.notify_waiters();
    }

    /// A step as it is told.
    pub(crate) fn step(&self, run: &RunId, number: u32, step: &RecordedStep) -> Event {
        #[derive(Serialize)]
        struct Told<'a> {
            run: &'a RunId,
            number: u32,
            #[serde(flatten)]
            step: &'a RecordedStep,
        }
        let told = |step: &RecordedStep| to_json(&Told { run, number, step });
        let text = self.shows_text.then(|| told(step));
        let data = text.filter(|text| text.len() <= LONGEST_STEP);
        Event {
            kind: EventKind::Step,
            run: run.clone(),
            steps: number,
            data: data.unwrap_or_else(|| told(&step.without_text())),
        }
    }

    /// What happened in a run of a pipeline, as it is told.
    pub(crate) fn in_pipeline(
        &self,
        run: &RunId,
        number: u32,
        happened: Happened,
        pricing: &Pricing,
    ) -> Event {
        let (kind, data) = match happened {
            Happened::Answered {
                step_id,
                tokens,
                usage,
                window,
                model,
            } => {
                let told = ToldAnswer {
                    run,
                    entry: number,
                    step_id: &step_id,
                    tokens,
                    usage,
                    window,
                    cost: pricing.of([(model.as_str(), usage)]),
                    model: &model,
                };
                (EventKind::Answer, to_json(&told))
            }
            Happened::TakenUp { at, ended_at } => {
                let told = json!({ "run": run, "entry": number, "at": at, "ended_at": ended_at });
                (EventKind::Resumed, to_json(&told))
            }
            Happened::Stepped { event, changed } => {
                let told = |text| {
                    let mut told = shown_event(event.clone(), changed.clone(), text);
                    price(&mut told, pricing);
                    told.insert("run".to_owned(), json!(run));
                    to_json(&told)
                };
                let text = self.shows_text.then(|| told(Text::Shown));
                let data = text.filter(|text| text.len() <= LONGEST_STEP);
                let data = data.unwrap_or_else(|| told(Text::LeftOut));
                (EventKind::Step, data)
            }
        };
        Event {
            kind,
            run: run.clone(),
            steps: number,
            data,
        }
    }

    /// Somebody more who listens, with a way to hang up; nothing if so many do already.
    pub(crate) fn listen(self: &Arc<Self>, most: usize, hang_up: AbortHandle) -> Option<Reader> {
        let mut log = self.log();
        if log.readers.len() >= most {
            return None;
        }
        log.readers_so_far += 1;
        let number = log.readers_so_far;
        log.readers.push((number, hang_up));
        self.is_kept.store(!log.is_closed, Ordering::SeqCst);
        Some(Reader {
            events: Arc::clone(self),
            number,
            at: log.next,
        })
    }

    /// Nothing more is told, and whoever listens is at the end.
    pub(crate) fn close(&self) {
        self.log().is_closed = true;
        self.is_kept.store(false, Ordering::SeqCst);
        self.news.notify_waiters();
    }

    /// Takes the connections from those that have not read to the end. For one that has, this does
    /// nothing: its connection is gone.
    pub(crate) fn hang_up(&self) {
        for (_, hang_up) in &self.log().readers {
            hang_up.abort();
        }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    fn is_listened_to(&self) -> bool {
        let may_come_back = |left: Instant| left.elapsed() < COMING_BACK;
        !self.readers.is_empty() || self.last_left.is_some_and(may_come_back)
    }

    fn add(&mut self, event: Event) {
        self.bytes += event.size();
        self.events.push_back(Arc::new(event));
        self.next += 1;
        while self.events.len() > MOST_EVENTS || (self.bytes > MOST_BYTES && self.events.len() > 1)
        {
            let oldest = self.events.pop_front();
            self.bytes -= oldest.map_or(0, |event| event.size());
        }
    }

    fn forget(&mut self) {
        (self.events, self.bytes) = (VecDeque::new(), 0);
        // What happens from now on has no number: there is a gap, and whoever comes back hears it.
        self.next += 1;
    }

    /// The number of the oldest event.
    fn first(&self) -> u64 {
        self.next - self.events.len() as u64
    }

    /// The event with a number that is not too small.
    fn event(&self, number: u64) -> Option<&Arc<Event>> {
        let index = usize::try_from(number.checked_sub(self.first())?).ok()?;
        self.events.get(index)
    }
}

/// An event that is told in the end.
pub(crate) struct Later(Option<(Arc<Events>, Event)>);

impl Drop for Later {
    fn drop(&mut self) {
        if let Some((events, event)) = self.0.take() {
            events.add(event);
        }
    }
}

/// Somebody who listens, until this is dropped.
pub(crate) struct Reader {
    events: Arc<Events>,
    number: u64,
    /// The number of the event that comes next.
    pub(crate) at: u64,
}

/// What a reader hears.
pub(crate) enum Heard {
    /// An event, with its number.
    Event(u64, Arc<Event>),
    /// Something is not there any more.
    Lagged,
    /// There is nothing more to come.
    Closed,
}

impl Reader {
    /// Tells the numbers of this process from those of another.
    pub(crate) fn era(&self) -> u64 {
        self.events.era
    }

    /// Goes on after an event; if that is not possible, the next that is heard is that it is not.
    pub(crate) fn go_on_after(&mut self, number: u64) {
        // Nobody was told of anything that is to come.
        self.at = self.at.min(number.saturating_add(1));
    }

    /// Begins with the oldest event there is.
    pub(crate) fn go_back(&mut self) {
        self.at = self.events.log().first();
    }

    /// Waits for the next event, of one run or of any.
    pub(crate) async fn next(&mut self, run: Option<&RunId>) -> Heard {
        let events = Arc::clone(&self.events);
        loop {
            let mut news = pin!(events.news.notified());
            // What comes after the look must not be slept through.
            news.as_mut().enable();
            if let Some(heard) = self.look(run) {
                return heard;
            }
            news.await;
        }
    }

    fn look(&mut self, run: Option<&RunId>) -> Option<Heard> {
        let log = self.events.log();
        if self.at < log.first() {
            self.at = log.next;
            return Some(Heard::Lagged);
        }
        while let Some(event) = log.event(self.at) {
            let number = self.at;
            self.at += 1;
            if run.is_none_or(|run| *run == event.run) {
                return Some(Heard::Event(number, Arc::clone(event)));
            }
        }
        log.is_closed.then_some(Heard::Closed)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut log = self.events.log();
        // The last events may still be on their way to a client that does not read them, so the
        // connection must be taken from it all the same.
        if !log.is_closed {
            log.readers.retain(|(number, _)| *number != self.number);
        }
        log.last_left = Some(Instant::now());
    }
}

impl Event {
    /// What is told of a run as a whole: that it began, that it ended.
    pub(crate) fn of_run(kind: EventKind, run: &ListedRun<'_>) -> Self {
        Self {
            kind,
            run: run.id.clone(),
            steps: u32::try_from(run.iterations).unwrap_or(u32::MAX),
            data: to_json(run),
        }
    }

    /// The model is asked for what is to be step `number`.
    pub(crate) fn asking(
        run: &RunId,
        number: u32,
        way: Option<&'static str>,
        budget: &CallBudget,
    ) -> Self {
        #[derive(Serialize)]
        struct Told<'a> {
            run: &'a RunId,
            number: u32,
            way: Option<&'static str>,
            budget: &'a CallBudget,
        }
        Self {
            kind: EventKind::Asking,
            run: run.clone(),
            steps: number,
            data: to_json(&Told {
                run,
                number,
                way,
                budget,
            }),
        }
    }

    /// The call for what is to be step `number` was not answered and will be made again.
    pub(crate) fn retrying(
        run: &RunId,
        number: u32,
        retry: &Retry,
        hidden: impl FnOnce(&str) -> String,
    ) -> Self {
        let error = hidden(&retry.error.to_string());
        let wait_ms = u64::try_from(retry.wait.as_millis()).unwrap_or(u64::MAX);
        let told = json!({ "run": run, "number": number, "error": error, "wait_ms": wait_ms });
        Self {
            kind: EventKind::Retrying,
            run: run.clone(),
            steps: number,
            data: to_json(&told),
        }
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.run.as_str().len() + self.data.len()
    }
}

#[cfg(test)]
mod tests;
