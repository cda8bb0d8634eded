//! The record of one run in progress.

use std::mem;
use std::sync::Arc;

use overlock_json::Cut;
use overlock_llm::{ContinuationOptions, Outcome, Reason, Retry, Usage};
use overlock_runs::{
    CallBudget, CountedBy, Ending, ListedRun, Part, RecordedStep, Tally, Unfit, UpstreamFault,
    cut_of, to_json, unfinished,
};
use overlock_store::{Claim, RunId, Writes};

use super::live_progress::LiveProgress;
use super::writer::{EndedRecord, Write};
use super::{RecordError, Recorder, RunInfo, RunLock};
use crate::clock::now;
use crate::events::{Event, EventKind, PendingEvent};

/// The record of one run in progress.
pub(crate) struct Recording {
    recorder: Arc<Recorder>,
    pub(crate) id: RunId,
    began_at: u64,
    about: Arc<RunInfo>,
    storage: Storage,
    steps: u32,
    cut: Option<Cut>,
    /// Whether any text of an answer was recorded.
    has_text: bool,
    tally: Tally,
    /// The tokens of the prompt of the current call.
    prompt_tokens: Option<u64>,
    /// The bytes received of its answer.
    received: u64,
    /// The progress for subscribers, once there are any.
    progress: Option<Arc<LiveProgress>>,
    is_ended: bool,
    /// The part of the answer that the next steps belong to.
    part: Part,
    /// The answer to the first call, until it is written with the first step.
    first: Option<String>,
    earlier: Option<Box<EarlierSteps>>,
    /// Why the upstream did not answer.
    fault: Option<Box<UpstreamFault>>,
    /// Why the request was never sent.
    unfit: Option<Box<Unfit>>,
}

/// The record of an earlier request with the same key.
pub(crate) struct EarlierSteps {
    pub(crate) options: ContinuationOptions,
    /// The steps of all parts of the answer.
    pub(crate) steps: Vec<RecordedStep>,
}

/// How much of a run is recorded, and when.
enum Storage {
    /// Everything, step by step. A run with an idempotency key is locked meanwhile.
    Full { claim: Claim, key: Option<RunLock> },
    /// Metadata only, when the run ends.
    Metadata { steps: Vec<String> },
}

impl Recording {
    /// Begins to record a run step by step.
    pub(crate) async fn begin(
        recorder: &Arc<Recorder>,
        about: Arc<RunInfo>,
    ) -> Result<Self, RecordError> {
        let (id, began_at) = (RunId::now(), now());
        let (run, own_id) = (Arc::clone(&about), id.clone());
        let begin = move |writes: &mut dyn Writes| writes.begin(&run.begun(&own_id, began_at));
        // Marked before the run is visible in the store.
        let mark = RunMark::new(recorder, &id);
        let claim = recorder.write(begin).await?;
        let storage = Storage::Full { claim, key: None };
        let recording = Self::new(recorder, id, began_at, about, storage, 0);
        mark.keep();
        Ok(recording)
    }

    /// Begins a run of which only metadata are recorded.
    pub(crate) fn metadata(recorder: &Arc<Recorder>, about: Arc<RunInfo>) -> Self {
        let (id, began_at) = (RunId::now(), now());
        let storage = Storage::Metadata { steps: Vec::new() };
        Self::new(recorder, id, began_at, about, storage, 0)
    }

    /// Records a run with an idempotency key, which may have earlier steps.
    pub(crate) fn keyed(
        lock: RunLock,
        claim: Claim,
        began_at: u64,
        about: Arc<RunInfo>,
        earlier: Option<EarlierSteps>,
    ) -> Self {
        let steps = earlier.as_ref().map_or(0, |earlier| earlier.steps.len());
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        let (recorder, id) = (Arc::clone(&lock.recorder), claim.id().clone());
        let key = Some(lock);
        let storage = Storage::Full { claim, key };
        let mut recording = Self::new(&recorder, id, began_at, about, storage, steps);
        let before = earlier.iter().flat_map(|earlier| &earlier.steps);
        recording.tally = Tally::of(before);
        recording.earlier = earlier.map(Box::new);
        recording
    }

    fn new(
        recorder: &Arc<Recorder>,
        id: RunId,
        began_at: u64,
        about: Arc<RunInfo>,
        storage: Storage,
        steps: u32,
    ) -> Self {
        recorder.live().insert(id.clone());
        let recording = Self {
            recorder: Arc::clone(recorder),
            id,
            began_at,
            about,
            storage,
            steps,
            cut: None,
            has_text: false,
            tally: Tally::default(),
            prompt_tokens: None,
            received: 0,
            progress: None,
            is_ended: false,
            part: Part {
                choice: 0,
                tool_call: None,
            },
            first: None,
            earlier: None,
            fault: None,
            unfit: None,
        };
        let events = &recording.recorder.events;
        events.publish(|| recording.event(EventKind::Began, None));
        recording
    }

    /// An event of the run as a whole.
    fn event(&self, kind: EventKind, ended: Option<(&Outcome, u64)>) -> Event {
        let (outcome, ended_at) = ended.unzip();
        let run = ListedRun {
            id: &self.id,
            began_at: self.began_at,
            ended_at,
            model: &self.about.model,
            outcome: outcome.map(Outcome::name),
            reason: outcome.and_then(Outcome::reason),
            cut: outcome.and_then(cut_of),
            iterations: self.steps.into(),
            pipeline: None,
            stopped_at: None,
            interrupted: kind == EventKind::Interrupted,
            elsewhere: false,
            upstream_fault: self.fault.as_deref().cloned(),
            unfit: self.unfit.as_deref().cloned(),
            last_at: None,
            paused_ms: 0,
            paused_at_most: false,
            tally: outcome.map(|_| self.tally),
            used: None,
            cost: None,
            partial_cost: None,
        };
        Event::of_run(kind, &run.priced(&self.recorder.pricing))
    }

    /// The call for the next step begins.
    pub(crate) fn asking(&mut self, strategy: Option<&'static str>, budget: &CallBudget) {
        self.tally.plan(budget);
        self.prompt_tokens = Some(budget.input_token_count);
        let number = self.steps.saturating_add(1);
        let asking = || Event::asking(&self.id, number, strategy, budget);
        self.recorder.events.publish(asking);
        self.received = 0;
        if let Some(progress) = self.update_progress() {
            progress.locked().end.clear();
        }
    }

    /// The call for the next step failed and will be retried. `hidden` removes secrets from the
    /// error.
    pub(crate) fn retrying(&self, retry: &Retry, hidden: impl FnOnce(&str) -> String) {
        let number = self.steps.saturating_add(1);
        let retrying = || Event::retrying(&self.id, number, retry, hidden);
        self.recorder.events.publish(retrying);
    }

    /// The progress of the answer to the first call: its bytes, and its end.
    pub(crate) fn received(&mut self, bytes: u64, text: &str) {
        self.received = bytes;
        if let Some(progress) = self.update_progress() {
            progress.locked().set_end(text);
        }
    }

    /// A piece of an answer has arrived.
    pub(crate) fn add_text(&mut self, piece: &str) {
        self.received = self.received.saturating_add(piece.len() as u64);
        if let Some(progress) = self.update_progress() {
            progress.locked().append(piece);
        }
    }

    /// Whether there may be subscribers.
    pub(crate) fn is_followed(&self) -> bool {
        self.recorder.events.has_subscribers()
    }

    /// Updates the progress for subscribers; `None` without subscribers.
    fn update_progress(&mut self) -> Option<&LiveProgress> {
        if !self.is_followed() {
            return None;
        }
        let (all, about) = (&self.recorder.progress, &self.about);
        let progress = self
            .progress
            .get_or_insert_with(|| all.add(&self.id, about));
        let mut answer = progress.locked();
        (answer.number, answer.bytes) = (self.steps.saturating_add(1), self.received);
        answer.tally = self.tally;
        answer.tally.call(self.prompt_tokens.unwrap_or(0), 0);
        drop(answer);
        Some(progress)
    }

    /// Who counted the tokens of the calls.
    pub(crate) fn counted_by(&mut self, who: CountedBy) {
        self.tally.counted_by = Some(who);
    }

    /// The upstream reports no usage. The gateway has counted the prompt, and the answer only if a
    /// step is recorded; otherwise the output is unknown.
    pub(crate) fn answered_without_usage(&mut self) {
        self.tally.counted_by = Some(CountedBy::Us);
        if self.steps == 0 {
            self.tally.call(self.prompt_tokens.unwrap_or_default(), 0);
            self.tally.output_unknown = true;
        }
    }

    /// Records the fault of the upstream with the end of the run.
    pub(crate) fn note_fault(&mut self, fault: UpstreamFault) {
        self.fault = Some(Box::new(fault));
    }

    /// Records with the end of the run why the request is not sent.
    pub(crate) fn note_unfit(&mut self, unfit: Unfit) {
        self.unfit = Some(Box::new(unfit));
    }

    /// The beginning, in milliseconds since 1970.
    pub(crate) fn began_at(&self) -> u64 {
        self.began_at
    }

    /// Whether the run has an idempotency key.
    pub(crate) fn is_keyed(&self) -> bool {
        matches!(self.storage, Storage::Full { key: Some(_), .. })
    }

    /// Whether texts are recorded.
    pub(crate) fn keeps_text(&self) -> bool {
        matches!(self.storage, Storage::Full { .. })
    }

    /// Switches to a part of the answer.
    pub(crate) fn turn_to(&mut self, part: Part) -> &mut Self {
        self.part = part;
        self
    }

    /// Switches to a part of the answer, and returns `None` if an earlier request recorded it.
    pub(crate) fn turn_to_new(&mut self, part: Part) -> Option<&mut Self> {
        let recording = self.turn_to(part);
        let is_new = recording.earlier_steps().next().is_none();
        is_new.then_some(recording)
    }

    /// Sets the part and the time of a step. Of several parts of one call, only the first has its
    /// budget.
    fn place(&self, step: &mut RecordedStep) {
        step.part = self.part();
        step.at = Some(now());
        if step.step.iteration == 1 && self.steps > 0 {
            step.budget = None;
        }
    }

    /// The part of the next step, if the answer may have several.
    fn part(&self) -> Option<Part> {
        let is_first = self.part.choice == 0 && self.part.tool_call.is_none();
        (self.is_keyed() || !is_first).then_some(self.part)
    }

    /// The steps of this part that an earlier request recorded.
    fn earlier_steps(&self) -> impl Iterator<Item = &RecordedStep> {
        let earlier = self.earlier.iter().flat_map(|earlier| &earlier.steps);
        earlier.filter(|step| step.part == Some(self.part))
    }

    /// The earlier steps of a document, with the options of their run.
    pub(crate) fn earlier(&self) -> Option<(&ContinuationOptions, Vec<&RecordedStep>)> {
        let options = &self.earlier.as_deref()?.options;
        let steps: Vec<_> = self.earlier_steps().filter(|it| !it.plain_text).collect();
        (!steps.is_empty()).then_some((options, steps))
    }

    /// The earlier steps of a text.
    pub(crate) fn earlier_text(&self) -> Vec<&RecordedStep> {
        self.earlier_steps().filter(|it| it.plain_text).collect()
    }

    /// Stores the answer to the first call, which is written before the first step.
    pub(crate) fn answered_first(&mut self, first: impl FnOnce() -> String) {
        if self.is_keyed() && self.earlier.is_none() {
            self.first = Some(first());
        }
    }

    /// Adds a step to the totals.
    fn count(&mut self, step: &RecordedStep) {
        self.steps += 1;
        if let Some(bytes) = step.step.end_len() {
            self.cut.clone_from(&step.cut);
            self.has_text |= bytes > 0;
        }
        (self.prompt_tokens, self.received) = (None, 0);
        if let Some(progress) = &self.progress {
            progress.locked().number = 0;
        }
        self.tally.add(step);
    }

    /// Records the received part of an answer whose client has disconnected.
    pub(crate) fn record_partial(&mut self, mut step: RecordedStep) {
        // A retry with the same key repeats the call.
        if self.is_keyed() || self.is_ended {
            return;
        }
        self.place(&mut step);
        self.count(&step);
        let events = &self.recorder.events;
        let event = events.publish_on_drop(|| events.step(&self.id, self.steps, &step));
        match &mut self.storage {
            Storage::Metadata { steps } => steps.push(to_json(&step.without_text())),
            Storage::Full { claim, .. } => {
                let (claim, number, body) = (claim.clone(), self.steps, to_json(&step));
                let add = move |writes: &mut dyn Writes| writes.add_step(&claim, number, &body);
                self.recorder.note(event, add);
            }
        }
    }

    /// The outcome if the run ends now for this reason.
    pub(crate) fn unfinished(&self, reason: Reason) -> Outcome {
        unfinished(reason, self.has_text, self.cut.clone())
    }

    /// Records a step. An error counts only if a later request depends on the record.
    pub(crate) async fn step(&mut self, mut step: RecordedStep) -> Result<(), RecordError> {
        self.place(&mut step);
        self.count(&step);
        let written = match &mut self.storage {
            Storage::Metadata { steps } => {
                steps.push(to_json(&step.without_text()));
                Ok(())
            }
            Storage::Full { claim, key } => {
                if key.is_none() {
                    // The lock of this process may be lost during a long run.
                    self.recorder.locked_worker().await;
                }
                let (claim, number, body) = (claim.clone(), self.steps, to_json(&step));
                let first = self.first.take();
                let add = move |writes: &mut dyn Writes| {
                    if let Some(first) = first {
                        writes.store_answer(&claim, &first)?;
                    }
                    writes.add_step(&claim, number, &body)
                };
                self.recorder.write(add).await
            }
        };
        let events = &self.recorder.events;
        events.publish(|| events.step(&self.id, self.steps, &step));
        written.or_else(|error| if self.is_keyed() { Err(error) } else { Ok(()) })
    }

    /// Records the outcome, the usage of the calls if it is known, and the answer of a run with a
    /// key. Waits for the write unless only metadata are recorded.
    pub(crate) async fn end(
        mut self,
        outcome: &Outcome,
        usage: Option<Usage>,
        answer: Option<String>,
    ) -> Result<(), RecordError> {
        let at = now();
        let event = self.finish(outcome, at, usage);
        let Storage::Full { claim, key } = &self.storage else {
            self.write_metadata(outcome.clone(), at, event);
            return Ok(());
        };
        let (claim, ending) = (claim.clone(), self.ending(outcome.clone()));
        let answer = answer.filter(|_| key.is_some());
        let end = move |writes: &mut dyn Writes| {
            if let Some(answer) = answer {
                writes.store_answer(&claim, &answer)?;
            }
            writes.end(&claim, at, &ending)
        };
        let written = self.recorder.write(end).await;
        drop(event);
        written
    }

    /// Ends the run at a time. The returned event is published after the write.
    fn finish(&mut self, outcome: &Outcome, at: u64, usage: Option<Usage>) -> PendingEvent {
        self.is_ended = true;
        if let Some(usage) = usage {
            if self.steps == 0 {
                self.tally
                    .call(self.prompt_tokens.unwrap_or_default(), usage.output);
            }
            self.tally.input_tokens = usage.input;
            self.tally.output_tokens = usage.output;
            self.tally.cached_tokens = usage.cached;
        }
        let events = &self.recorder.events;
        events.publish_on_drop(|| self.event(EventKind::Ended, Some((outcome, at))))
    }

    /// The recorded end of the run.
    fn ending(&self, outcome: Outcome) -> String {
        to_json(&Ending {
            outcome,
            tally: Some(self.tally),
            upstream_fault: self.fault.as_deref().cloned(),
            unfit: self.unfit.as_deref().cloned(),
        })
    }

    /// Records a run of which only metadata are recorded, without waiting.
    fn write_metadata(&mut self, outcome: Outcome, at: u64, event: PendingEvent) {
        let ending = self.ending(outcome);
        let Storage::Metadata { steps } = &mut self.storage else {
            return;
        };
        self.recorder.writer.note(Write::EndedRun(EndedRecord {
            id: self.id.clone(),
            about: Arc::clone(&self.about),
            began_at: self.began_at,
            ended_at: at,
            steps: mem::take(steps),
            ending,
            event,
        }));
    }
}

impl Drop for Recording {
    /// A client that disconnects cancels the run. A run with a key can be resumed by a retry.
    fn drop(&mut self) {
        if self.progress.is_some() {
            self.recorder.progress.remove(&self.id);
        }
        if !self.is_ended {
            self.cancel();
        }
        // Removed after its end is queued, so that the run is always either in progress or ended.
        // The lock of a run with a key removes it.
        if !self.is_keyed() {
            self.recorder.live().remove(&self.id);
        }
    }
}

impl Recording {
    fn cancel(&mut self) {
        let events = Arc::clone(&self.recorder.events);
        if self.is_keyed() {
            events.publish(|| self.event(EventKind::Interrupted, None));
            return;
        }
        let outcome = self.unfinished(Reason::Cancelled);
        if let Some(input) = self.prompt_tokens.take() {
            // The prompt of the current call has been sent.
            self.tally.call(input, 0);
        }
        let at = now();
        let event = events.publish_on_drop(|| self.event(EventKind::Ended, Some((&outcome, at))));
        match &self.storage {
            Storage::Metadata { .. } => self.write_metadata(outcome, at, event),
            Storage::Full { claim, .. } => {
                let (claim, ending) = (claim.clone(), self.ending(outcome));
                self.recorder
                    .note(event, move |writes| writes.end(&claim, at, &ending));
            }
        }
    }
}

/// Marks a run that is about to begin as in progress, until it is dropped or kept.
struct RunMark<'a> {
    recorder: &'a Recorder,
    id: Option<RunId>,
}

impl<'a> RunMark<'a> {
    fn new(recorder: &'a Recorder, id: &RunId) -> Self {
        recorder.live().insert(id.clone());
        Self {
            recorder,
            id: Some(id.clone()),
        }
    }

    /// Keeps the mark, which the run removes later.
    fn keep(mut self) {
        self.id = None;
    }
}

impl Drop for RunMark<'_> {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.recorder.live().remove(id);
        }
    }
}
