//! The event log of runs.
//!
//! All subscribers share one bounded log of the latest events; each has its own cursor. A subscriber
//! that is too slow loses events and is notified, so no run waits for a subscriber and the memory is
//! bounded. Without a subscriber no events are built, and a run only checks a flag.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::AbortHandle;
use overlock_llm::{Retry, Usage};
use overlock_runs::StoredEvent;
use overlock_store::RunId;
use serde::Serialize;
use serde_json::json;
use tokio::sync::Notify;

use overlock_runs::to_json;
use overlock_runs::{
    CallBudget, ListedRun, Pricing, RecordedStep, RunCost, Text, price, shown_event,
};

/// The most events in the log.
const MOST_EVENTS: usize = 4096;

/// The most bytes of events in the log, unless one event alone is longer.
const MOST_BYTES: usize = 4 << 20;

/// A longer step is published without its text.
const LONGEST_STEP: usize = 1 << 20;

/// How long events are kept for subscribers that lost their connection.
const RECONNECT_TIME: Duration = Duration::from_secs(30);

/// The events of the runs of this process.
pub(crate) struct Events {
    /// Whether there may be subscribers.
    has_subscribers: AtomicBool,
    /// Whether events contain the text of a run.
    shows_text: bool,
    /// Distinguishes the event numbers of this process from those of an earlier one.
    pub(crate) era: u64,
    log: Mutex<Log>,
    news: Notify,
}

/// The latest events, without a gap.
#[derive(Default)]
struct Log {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    /// The number of the next event.
    next: u64,
    subscribers: Vec<(u64, AbortHandle)>,
    /// The number of the latest subscriber.
    last_subscriber: u64,
    last_unsubscribed: Option<Instant>,
    is_closed: bool,
}

/// An answer within a step of a pipeline, with its usage.
#[derive(Serialize)]
struct AnswerData<'a> {
    run: &'a RunId,
    /// The number of the record of the run.
    entry: u32,
    step_id: &'a str,
    tokens: u64,
    usage: Usage,
    window: u64,
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<RunCost>,
}

/// An event of a run.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) kind: EventKind,
    pub(crate) run: RunId,
    /// How many steps the run has, including this one.
    pub(crate) steps: u32,
    /// The payload, as JSON.
    pub(crate) data: String,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    Began,
    Asking,
    /// A call failed and will be retried.
    Retrying,
    Step,
    /// A model answered within a step of a pipeline.
    Answer,
    /// A pipeline was resumed.
    Resumed,
    Ended,
    /// The client disconnected, and may retry with the same key.
    Interrupted,
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
            Self::Interrupted => "interrupted",
        }
    }

    /// Whether the event is a numbered record of the run.
    pub(crate) fn is_recorded(self) -> bool {
        matches!(self, Self::Step | Self::Answer | Self::Resumed)
    }

    /// Whether no event follows.
    pub(crate) fn is_last(self) -> bool {
        matches!(self, Self::Ended | Self::Interrupted)
    }
}

impl Events {
    pub(crate) fn new(era: u64, shows_text: bool) -> Self {
        Self {
            has_subscribers: AtomicBool::new(false),
            shows_text,
            era,
            log: Mutex::new(Log {
                // Number 0 means "before the first event".
                next: 1,
                ..Log::default()
            }),
            news: Notify::new(),
        }
    }

    /// Publishes an event. It is only built if there are subscribers.
    pub(crate) fn publish(&self, event: impl FnOnce() -> Event) {
        if let Some(event) = self.built(event) {
            self.add(event);
        }
    }

    /// An event that is published when the returned value is dropped.
    pub(crate) fn publish_on_drop(self: &Arc<Self>, event: impl FnOnce() -> Event) -> PendingEvent {
        let event = self.built(event);
        PendingEvent(event.map(|event| (Arc::clone(self), event)))
    }

    /// Whether there may be subscribers.
    pub(crate) fn has_subscribers(&self) -> bool {
        self.has_subscribers.load(Ordering::SeqCst)
    }

    /// Whether events contain the text of a run.
    pub(crate) fn shows_text(&self) -> bool {
        self.shows_text
    }

    fn built(&self, event: impl FnOnce() -> Event) -> Option<Event> {
        self.has_subscribers().then(event)
    }

    fn add(&self, event: Event) {
        let mut log = self.log();
        if log.is_closed {
            return;
        }
        if !log.is_needed() {
            self.has_subscribers.store(false, Ordering::SeqCst);
            log.clear();
            return;
        }
        log.add(event);
        drop(log);
        self.news.notify_waiters();
    }

    /// The event of a step.
    pub(crate) fn step(&self, run: &RunId, number: u32, step: &RecordedStep) -> Event {
        #[derive(Serialize)]
        struct StepData<'a> {
            run: &'a RunId,
            number: u32,
            #[serde(flatten)]
            step: &'a RecordedStep,
        }
        let data_of = |step: &RecordedStep| to_json(&StepData { run, number, step });
        let with_text = self.shows_text.then(|| data_of(step));
        let data = with_text.filter(|data| data.len() <= LONGEST_STEP);
        Event {
            kind: EventKind::Step,
            run: run.clone(),
            steps: number,
            data: data.unwrap_or_else(|| data_of(&step.without_text())),
        }
    }

    /// The event of a record of a pipeline run.
    pub(crate) fn in_pipeline(
        &self,
        run: &RunId,
        number: u32,
        happened: StoredEvent,
        pricing: &Pricing,
    ) -> Event {
        let (kind, data) = match happened {
            StoredEvent::Answered {
                step_id,
                tokens,
                usage,
                window,
                model,
            } => {
                let data = AnswerData {
                    run,
                    entry: number,
                    step_id: &step_id,
                    tokens,
                    usage,
                    window,
                    cost: pricing.of([(model.as_str(), usage)]),
                    model: &model,
                };
                (EventKind::Answer, to_json(&data))
            }
            StoredEvent::TakenUp { at, ended_at } => {
                let data = json!({ "run": run, "entry": number, "at": at, "ended_at": ended_at });
                (EventKind::Resumed, to_json(&data))
            }
            StoredEvent::Stepped { event, changed } => {
                let data_of = |text| {
                    let mut data = shown_event(event.clone(), changed.clone(), text);
                    price(&mut data, pricing);
                    data.insert("run".to_owned(), json!(run));
                    to_json(&data)
                };
                let with_text = self.shows_text.then(|| data_of(Text::Shown));
                let data = with_text.filter(|data| data.len() <= LONGEST_STEP);
                let data = data.unwrap_or_else(|| data_of(Text::LeftOut));
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

    /// Adds a subscriber, whose connection `hang_up` closes; `None` if there are `most` already.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        most: usize,
        hang_up: AbortHandle,
    ) -> Option<Subscription> {
        let mut log = self.log();
        if log.subscribers.len() >= most {
            return None;
        }
        log.last_subscriber += 1;
        let number = log.last_subscriber;
        log.subscribers.push((number, hang_up));
        self.has_subscribers.store(!log.is_closed, Ordering::SeqCst);
        Some(Subscription {
            events: Arc::clone(self),
            number,
            at: log.next,
        })
    }

    /// Ends the log: later events are ignored, and subscribers reach its end.
    pub(crate) fn close(&self) {
        self.log().is_closed = true;
        self.has_subscribers.store(false, Ordering::SeqCst);
        self.news.notify_waiters();
    }

    /// Closes the connections of subscribers that have not read to the end.
    pub(crate) fn hang_up(&self) {
        for (_, hang_up) in &self.log().subscribers {
            hang_up.abort();
        }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    fn is_needed(&self) -> bool {
        let may_reconnect = |at: Instant| at.elapsed() < RECONNECT_TIME;
        !self.subscribers.is_empty() || self.last_unsubscribed.is_some_and(may_reconnect)
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

    fn clear(&mut self) {
        (self.events, self.bytes) = (VecDeque::new(), 0);
        // Leaves a gap in the numbers, so that a returning subscriber learns that it missed events.
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

/// An event that is published on drop.
pub(crate) struct PendingEvent(Option<(Arc<Events>, Event)>);

impl Drop for PendingEvent {
    fn drop(&mut self) {
        if let Some((events, event)) = self.0.take() {
            events.add(event);
        }
    }
}

/// A subscriber's cursor in the log. Dropping it ends the subscription.
pub(crate) struct Subscription {
    events: Arc<Events>,
    number: u64,
    /// The number of the next event.
    pub(crate) at: u64,
}

/// What a subscriber receives.
pub(crate) enum Received {
    /// An event, with its number.
    Event(u64, Arc<Event>),
    /// Some events are lost.
    Lagged,
    /// No more events will follow.
    Closed,
}

impl Subscription {
    /// Distinguishes the event numbers of this process from those of an earlier one.
    pub(crate) fn era(&self) -> u64 {
        self.events.era
    }

    /// Continues after an event. If later events are lost, the next one received is `Lagged`.
    pub(crate) fn resume_after(&mut self, number: u64) {
        // A number from the future is ignored.
        self.at = self.at.min(number.saturating_add(1));
    }

    /// Starts at the oldest event in the log.
    pub(crate) fn rewind(&mut self) {
        self.at = self.events.log().first();
    }

    /// Waits for the next event, of one run or of any.
    pub(crate) async fn next(&mut self, run: Option<&RunId>) -> Received {
        let events = Arc::clone(&self.events);
        loop {
            let mut news = pin!(events.news.notified());
            // Enabled before the check, so that an event right after it wakes this task.
            news.as_mut().enable();
            if let Some(received) = self.poll_log(run) {
                return received;
            }
            news.await;
        }
    }

    fn poll_log(&mut self, run: Option<&RunId>) -> Option<Received> {
        let log = self.events.log();
        if self.at < log.first() {
            self.at = log.next;
            return Some(Received::Lagged);
        }
        while let Some(event) = log.event(self.at) {
            let number = self.at;
            self.at += 1;
            if run.is_none_or(|run| *run == event.run) {
                return Some(Received::Event(number, Arc::clone(event)));
            }
        }
        log.is_closed.then_some(Received::Closed)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut log = self.events.log();
        // After the end of the log, a client may still not read its last events, so `hang_up` must
        // close its connection.
        if !log.is_closed {
            log.subscribers.retain(|(number, _)| *number != self.number);
        }
        log.last_unsubscribed = Some(Instant::now());
    }
}

impl Event {
    /// An event of the run as a whole: its beginning or end.
    pub(crate) fn of_run(kind: EventKind, run: &ListedRun<'_>) -> Self {
        Self {
            kind,
            run: run.id.clone(),
            steps: u32::try_from(run.iterations).unwrap_or(u32::MAX),
            data: to_json(run),
        }
    }

    /// The call for step `number` begins.
    pub(crate) fn asking(
        run: &RunId,
        number: u32,
        strategy: Option<&'static str>,
        budget: &CallBudget,
    ) -> Self {
        #[derive(Serialize)]
        struct CallData<'a> {
            run: &'a RunId,
            number: u32,
            strategy: Option<&'static str>,
            budget: &'a CallBudget,
        }
        Self {
            kind: EventKind::Asking,
            run: run.clone(),
            steps: number,
            data: to_json(&CallData {
                run,
                number,
                strategy,
                budget,
            }),
        }
    }

    /// The call for step `number` failed and will be retried.
    pub(crate) fn retrying(
        run: &RunId,
        number: u32,
        retry: &Retry,
        hidden: impl FnOnce(&str) -> String,
    ) -> Self {
        let error = hidden(&retry.error.to_string());
        let wait_ms = u64::try_from(retry.wait.as_millis()).unwrap_or(u64::MAX);
        let data = json!({ "run": run, "number": number, "error": error, "wait_ms": wait_ms });
        Self {
            kind: EventKind::Retrying,
            run: run.clone(),
            steps: number,
            data: to_json(&data),
        }
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.run.as_str().len() + self.data.len()
    }
}

#[cfg(test)]
mod tests;
