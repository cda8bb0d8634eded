//! Keeps what happens in runs, many of them at once.
//!
//! One thread writes to the store, so that a thousand runs cost little more than one. What must not
//! be lost is waited for; the rest is not.

mod growth;
mod writer;

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hyper::header::HeaderName;
use overlock_json::Cut;
use overlock_llm::{ContinuationOptions, Outcome, Reason, Retry, Usage};
use overlock_store::{Claim, NewRun, RunId, Store, StoreError, StrategyResult, Work, Writes};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use crate::clock::now;
use crate::events::{Event, EventKind, Events, Later};
use growth::Growths;
pub(crate) use growth::{Grown, Growth};
use overlock_runs::Record;
use overlock_runs::{
    CallBudget, CountedBy, Ending, ListedRun, Part, Pricing, RecordedStep, Tally, Unfit,
    UpstreamFault, cut_of, to_json, unfinished,
};
use writer::{Closed, Done, Story, Write, Writer};

/// A time at which no run begins, thousands of years from now: what a process is known by must not
/// be the name of a run.
const NEVER: u64 = 1 << 49;

/// Says which run a reply belongs to.
pub(crate) static RUN: HeaderName = HeaderName::from_static("x-overlock-run");

/// Writes to a store.
pub(crate) struct Recorder {
    store: Arc<dyn Store>,
    writer: Writer,
    /// Held for as long as this process is there, so that others can see whether it is.
    presence: Option<Presence>,
    /// The runs with a key that somebody is working on.
    live: Mutex<HashSet<RunId>>,
    /// Tells runs apart that begin in the same millisecond.
    drawn: AtomicU64,
    /// Hears of what happens.
    pub(crate) events: Arc<Events>,
    /// How far the answers are that are being written.
    pub(crate) growths: Growths,
    /// Knows what that costs.
    pub(crate) pricing: Arc<Pricing>,
}

/// That a process is there.
struct Presence {
    id: RunId,
    /// Locked while it is held anew, or two would take it from each other.
    work: tokio::sync::Mutex<Option<Work>>,
}

/// Why something was not kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the store takes nothing any more")]
    Closed,
}

impl Recorder {
    /// Starts to write to a store. Whoever listens hears what is kept of a run, and no more.
    pub(crate) fn start(store: Arc<dyn Store>, record: Record, pricing: Pricing) -> Self {
        let presence = || Presence {
            id: RunId::new(now() | NEVER, RandomState::new().hash_one(0)),
            work: tokio::sync::Mutex::default(),
        };
        Self {
            writer: Writer::start(Arc::clone(&store)),
            // Of others nothing is on the disk before it ends, or each is held by itself.
            presence: (record == Record::Full).then(presence),
            store,
            live: Mutex::new(HashSet::new()),
            drawn: AtomicU64::new(now()),
            events: Arc::new(Events::new(now(), record == Record::Full)),
            growths: Growths::default(),
            pricing: Arc::new(pricing),
        }
    }

    /// What this process is known by to be at work, if it is.
    pub(crate) fn worker(&self) -> Option<&RunId> {
        self.presence.as_ref().map(|presence| &presence.id)
    }

    /// The same, once it is held. Who cannot be seen is not known to be at work, and no more.
    pub(crate) async fn seen_worker(&self) -> Option<&RunId> {
        let Presence { id, work } = self.presence.as_ref()?;
        let mut work = work.lock().await;
        if !work.as_ref().is_some_and(Work::is_held) {
            let (store, own, lost) = (Arc::clone(&self.store), id.clone(), work.take());
            // The store may be on another machine.
            let held = spawn_blocking(move || {
                // What was lost is let go of first, or nobody could hold it.
                drop(lost);
                store.work_on(&own)
            });
            *work = held.await.ok()?.ok()?;
        }
        work.is_some().then_some(id)
    }

    /// Where it writes to.
    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// A name for a run that begins now.
    pub(crate) fn new_id(&self) -> RunId {
        RunId::new(now(), self.drawn.fetch_add(1, Ordering::Relaxed))
    }

    /// Writes, and waits until it is on the disk.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut dyn Writes) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, RecordError> {
        let (sender, written) = oneshot::channel();
        let added = self.writer.add(Box::new(move |writes| {
            let result = work(writes);
            Done::Other(Box::new(move || {
                // Who does not wait any more does not want to know.
                let _ = sender.send(result);
            }))
        }));
        added.map_err(|Closed| RecordError::Closed)?;
        // A commit that fails leaves nobody to say how it went.
        Ok(written.await.map_err(|_| RecordError::Closed)??)
    }

    /// Waits until everything is on the disk that was noted before.
    pub(crate) async fn settle(&self) {
        // Who reads sees what there is, even if no more can be written.
        let _ = self.write(|_| Ok(())).await;
    }

    /// Writes what a run has shown about strategies, without waiting.
    pub(crate) fn note_strategies(&self, server: String, result: StrategyResult) {
        self.writer.note(Write::Other(Box::new(move |writes| {
            // What cannot be written is learnt again.
            let _ = writes.add_strategy_result(&server, &result);
            Done::Other(Box::new(|| {}))
        })));
    }

    /// Writes without waiting, and tells of it afterwards. What cannot be written is not.
    fn note(
        &self,
        told: Later,
        work: impl FnOnce(&mut dyn Writes) -> Result<(), StoreError> + Send + 'static,
    ) {
        self.writer.note(Write::Other(Box::new(move |writes| {
            let _ = work(writes);
            Done::Tell(told)
        })));
    }

    /// Marks a run as being worked on, unless somebody works on it, here or in another process.
    pub(crate) async fn work_on(self: &Arc<Self>, id: &RunId) -> Result<Option<Live>, RecordError> {
        if !self.live().insert(id.clone()) {
            return Ok(None);
        }
        let mut live = Live {
            recorder: Arc::clone(self),
            id: id.clone(),
            work: None,
        };
        let (store, id) = (Arc::clone(&self.store), id.clone());
        // The store may be on another machine.
        let work = spawn_blocking(move || store.work_on(&id)).await;
        live.work = work.map_err(|_| RecordError::Closed)??;
        Ok(live.work.is_some().then_some(live))
    }

    /// Whether somebody works on a run.
    pub(crate) fn is_live(&self, id: &RunId) -> bool {
        self.live().contains(id)
    }

    /// Whether nobody works on any run.
    pub(crate) fn is_idle(&self) -> bool {
        self.live().is_empty()
    }

    /// The runs that somebody works on, the latest first.
    pub(crate) fn running(&self) -> Vec<RunId> {
        let mut running: Vec<RunId> = self.live().iter().cloned().collect();
        running.sort_unstable_by(|one, other| other.cmp(one));
        running
    }

    fn live(&self) -> std::sync::MutexGuard<'_, HashSet<RunId>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A run that is worked on for as long as this lasts, however that ends: a key whose run nobody
/// lets go of could never be asked for again.
pub(crate) struct Live {
    recorder: Arc<Recorder>,
    id: RunId,
    work: Option<Work>,
}

impl Drop for Live {
    fn drop(&mut self) {
        // Who finds it free here finds it free everywhere.
        drop(self.work.take());
        self.recorder.live().remove(&self.id);
    }
}

/// Marks a run as being worked on that is only about to begin: whoever leaves before it does takes
/// the mark along.
struct Mark<'a> {
    recorder: &'a Recorder,
    id: Option<RunId>,
}

impl<'a> Mark<'a> {
    fn new(recorder: &'a Recorder, id: &RunId) -> Self {
        recorder.live().insert(id.clone());
        Self {
            recorder,
            id: Some(id.clone()),
        }
    }

    /// Somebody else takes it away.
    fn stays(mut self) {
        self.id = None;
    }
}

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.recorder.live().remove(id);
        }
    }
}

/// What is kept of one run.
pub(crate) struct Recording {
    recorder: Arc<Recorder>,
    pub(crate) id: RunId,
    began_at: u64,
    about: Arc<About>,
    kept: Kept,
    steps: u32,
    cut: Option<Cut>,
    /// Whether anything of an answer was kept.
    has_come: bool,
    tally: Tally,
    /// The tokens of the prompt that is being answered, if one is.
    asking: Option<u64>,
    /// The bytes that have come of the answer to it.
    came: u64,
    /// Where those who follow the run look, once there are any.
    growth: Option<Arc<Growth>>,
    is_ended: bool,
    /// The part of the answer that the next steps are of.
    part: Part,
    /// What the first call answered, until it is written with the first step.
    first: Option<String>,
    earlier: Option<Box<Earlier>>,
    /// Why the upstream did not answer.
    fault: Option<Box<UpstreamFault>>,
    /// Why the request was never sent.
    unfit: Option<Box<Unfit>>,
}

/// What was kept of a run for an earlier request.
pub(crate) struct Earlier {
    pub(crate) options: ContinuationOptions,
    /// Those of all parts of the answer.
    pub(crate) steps: Vec<RecordedStep>,
}

/// What a run is about.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub(crate) model: String,
    pub(crate) request: String,
    pub(crate) options: String,
    pub(crate) conditions: String,
}

/// How much of a run is kept, and when.
enum Kept {
    /// All of it, as it happens, by whoever has the right to. One with a key is worked on by nobody
    /// else meanwhile.
    All { claim: Claim, key: Option<Live> },
    /// What happened without what was said, in the end.
    Story { steps: Vec<String> },
}

impl Recording {
    /// Begins to keep all of a run.
    pub(crate) async fn begin(
        recorder: &Arc<Recorder>,
        about: Arc<About>,
    ) -> Result<Self, RecordError> {
        let (id, began_at) = (recorder.new_id(), now());
        let (run, own_id) = (Arc::clone(&about), id.clone());
        let begin = move |writes: &mut dyn Writes| writes.begin(&run.begun(&own_id, began_at));
        // Known before anybody can find it.
        let mark = Mark::new(recorder, &id);
        let claim = recorder.write(begin).await?;
        let kept = Kept::All { claim, key: None };
        let recording = Self::of(recorder, id, began_at, about, kept, 0);
        mark.stays();
        Ok(recording)
    }

    /// Begins to keep the story of a run.
    pub(crate) fn story(recorder: &Arc<Recorder>, about: Arc<About>) -> Self {
        let (id, began_at) = (recorder.new_id(), now());
        let kept = Kept::Story { steps: Vec::new() };
        Self::of(recorder, id, began_at, about, kept, 0)
    }

    /// Goes on to keep a run that has a key.
    pub(crate) fn keyed(
        live: Live,
        claim: Claim,
        began_at: u64,
        about: Arc<About>,
        earlier: Option<Earlier>,
    ) -> Self {
        let steps = earlier.as_ref().map_or(0, |earlier| earlier.steps.len());
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        let (recorder, id) = (Arc::clone(&live.recorder), claim.id().clone());
        let key = Some(live);
        let kept = Kept::All { claim, key };
        let mut recording = Self::of(&recorder, id, began_at, about, kept, steps);
        let before = earlier.iter().flat_map(|earlier| &earlier.steps);
        recording.tally = Tally::of(before);
        recording.earlier = earlier.map(Box::new);
        recording
    }

    fn of(
        recorder: &Arc<Recorder>,
        id: RunId,
        began_at: u64,
        about: Arc<About>,
        kept: Kept,
        steps: u32,
    ) -> Self {
        recorder.live().insert(id.clone());
        let recording = Self {
            recorder: Arc::clone(recorder),
            id,
            began_at,
            about,
            kept,
            steps,
            cut: None,
            has_come: false,
            tally: Tally::default(),
            asking: None,
            came: 0,
            growth: None,
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
        events.tell(|| recording.event(EventKind::Began, None));
        recording
    }

    /// What is told of the run as a whole.
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
            left: kind == EventKind::Left,
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

    /// Tells that the model is asked for the next step.
    pub(crate) fn asking(&mut self, way: Option<&'static str>, budget: &CallBudget) {
        self.tally.plan(budget);
        self.asking = Some(budget.input_token_count);
        let number = self.steps.saturating_add(1);
        let asking = || Event::asking(&self.id, number, way, budget);
        self.recorder.events.tell(asking);
        self.came = 0;
        if let Some(growth) = self.followed() {
            growth.locked().end.clear();
        }
    }

    /// Tells that the call for the next step was not answered and will be made again, without what
    /// is `hidden` of the reason.
    pub(crate) fn retrying(&self, retry: &Retry, hidden: impl FnOnce(&str) -> String) {
        let number = self.steps.saturating_add(1);
        let retrying = || Event::retrying(&self.id, number, retry, hidden);
        self.recorder.events.tell(retrying);
    }

    /// So much has come of the answer to the first call, which ends with this text.
    pub(crate) fn came(&mut self, bytes: u64, text: &str) {
        self.came = bytes;
        if let Some(growth) = self.followed() {
            growth.locked().ends_with(text);
        }
    }

    /// A piece of an answer has come.
    pub(crate) fn heard(&mut self, piece: &str) {
        self.came = self.came.saturating_add(piece.len() as u64);
        if let Some(growth) = self.followed() {
            growth.locked().goes_on(piece);
        }
    }

    /// Whether anybody may want to know how far the answer is.
    pub(crate) fn is_followed(&self) -> bool {
        self.recorder.events.is_kept()
    }

    /// Where those look who follow the run, with how far it is; nothing while there are none.
    fn followed(&mut self) -> Option<&Growth> {
        if !self.is_followed() {
            return None;
        }
        let (growths, about) = (&self.recorder.growths, &self.about);
        let growth = self
            .growth
            .get_or_insert_with(|| growths.add(&self.id, about));
        let mut grown = growth.locked();
        (grown.number, grown.bytes) = (self.steps.saturating_add(1), self.came);
        grown.tally = self.tally;
        grown.tally.call(self.asking.unwrap_or(0), 0);
        drop(grown);
        Some(growth)
    }

    /// Whose count the tokens are that the calls are said to have taken.
    pub(crate) fn counted_by(&mut self, who: CountedBy) {
        self.tally.counted_by = Some(who);
    }

    /// The upstream has answered, and does not say what that took. Its prompt was counted here; so
    /// was its answer if a step of it is kept, and else nobody knows its length.
    pub(crate) fn answered_untold(&mut self) {
        self.tally.counted_by = Some(CountedBy::Us);
        if self.steps == 0 {
            self.tally.call(self.asking.unwrap_or_default(), 0);
            self.tally.output_unknown = true;
        }
    }

    /// Keeps with its end why the upstream did not answer.
    pub(crate) fn note_fault(&mut self, fault: UpstreamFault) {
        self.fault = Some(Box::new(fault));
    }

    /// Keeps with its end why the request is not sent.
    pub(crate) fn note_unfit(&mut self, unfit: Unfit) {
        self.unfit = Some(Box::new(unfit));
    }

    /// When it began, in milliseconds since 1970.
    pub(crate) fn began_at(&self) -> u64 {
        self.began_at
    }

    /// Whether somebody may ask the same again and wants the same answer.
    pub(crate) fn is_keyed(&self) -> bool {
        matches!(self.kept, Kept::All { key: Some(_), .. })
    }

    /// Whether the text is kept too.
    pub(crate) fn keeps_text(&self) -> bool {
        matches!(self.kept, Kept::All { .. })
    }

    /// Turns to a part of the answer.
    pub(crate) fn turn_to(&mut self, part: Part) -> &mut Self {
        self.part = part;
        self
    }

    /// Turns to a part of the answer, unless it was kept for an earlier request.
    pub(crate) fn turn_to_new(&mut self, part: Part) -> Option<&mut Self> {
        let recording = self.turn_to(part);
        let is_new = recording.earlier_steps().next().is_none();
        is_new.then_some(recording)
    }

    /// Puts a step where it belongs: into its part, and to its call. The window of a call is told
    /// once, however many parts its answer has.
    pub(crate) fn place(&self, step: &mut RecordedStep) {
        step.part = self.part();
        step.at = Some(now());
        if step.step.iteration == 1 && self.steps > 0 {
            step.budget = None;
        }
    }

    /// The part that the next step is of, if it may be one of several.
    fn part(&self) -> Option<Part> {
        let is_first = self.part.choice == 0 && self.part.tool_call.is_none();
        (self.is_keyed() || !is_first).then_some(self.part)
    }

    /// The steps of this part that were kept for an earlier request.
    fn earlier_steps(&self) -> impl Iterator<Item = &RecordedStep> {
        let earlier = self.earlier.iter().flat_map(|earlier| &earlier.steps);
        earlier.filter(|step| step.part == Some(self.part))
    }

    /// Those of a document, and what their run may do.
    pub(crate) fn earlier(&self) -> Option<(&ContinuationOptions, Vec<&RecordedStep>)> {
        let options = &self.earlier.as_deref()?.options;
        let steps: Vec<_> = self.earlier_steps().filter(|it| !it.plain_text).collect();
        (!steps.is_empty()).then_some((options, steps))
    }

    /// Those of a text.
    pub(crate) fn earlier_text(&self) -> Vec<&RecordedStep> {
        self.earlier_steps().filter(|it| it.plain_text).collect()
    }

    /// What the first call answered, to be written before anything that follows from it.
    pub(crate) fn answered_first(&mut self, first: impl FnOnce() -> String) {
        if self.is_keyed() && self.earlier.is_none() {
            self.first = Some(first());
        }
    }

    /// Counts a step in.
    fn count(&mut self, step: &RecordedStep) {
        self.steps += 1;
        if let Some(bytes) = step.step.end_len() {
            self.cut.clone_from(&step.cut);
            self.has_come |= bytes > 0;
        }
        (self.asking, self.came) = (None, 0);
        if let Some(growth) = &self.growth {
            // Nothing is being written until the model is asked again.
            growth.locked().number = 0;
        }
        self.tally.add(step);
    }

    /// Keeps what has come of an answer that nobody waits for any more.
    pub(crate) fn leave(&mut self, mut step: RecordedStep) {
        // Whoever asks the same again is answered anew.
        if self.is_keyed() || self.is_ended {
            return;
        }
        self.place(&mut step);
        self.count(&step);
        let events = &self.recorder.events;
        let told = events.tell_later(|| events.step(&self.id, self.steps, &step));
        match &mut self.kept {
            Kept::Story { steps } => steps.push(to_json(&step.without_text())),
            Kept::All { claim, .. } => {
                let (claim, number, body) = (claim.clone(), self.steps, to_json(&step));
                let add = move |writes: &mut dyn Writes| writes.add_step(&claim, number, &body);
                self.recorder.note(told, add);
            }
        }
    }

    /// How it ends if no more comes, for this reason.
    pub(crate) fn unfinished(&self, reason: Reason) -> Outcome {
        unfinished(reason, self.has_come, self.cut.clone())
    }

    /// Keeps a step.
    pub(crate) async fn step(&mut self, step: &RecordedStep) -> Result<(), RecordError> {
        self.count(step);
        let kept = match &mut self.kept {
            Kept::Story { steps } => {
                steps.push(to_json(&step.without_text()));
                Ok(())
            }
            Kept::All { claim, key } => {
                if key.is_none() {
                    // A long run may outlast what its gateway is known by.
                    self.recorder.seen_worker().await;
                }
                let (claim, number, body) = (claim.clone(), self.steps, to_json(step));
                let first = self.first.take();
                let add = move |writes: &mut dyn Writes| {
                    if let Some(first) = first {
                        writes.keep_answer(&claim, &first)?;
                    }
                    writes.add_step(&claim, number, &body)
                };
                self.recorder.write(add).await
            }
        };
        let events = &self.recorder.events;
        events.tell(|| events.step(&self.id, self.steps, step));
        kept
    }

    /// Keeps how a story ended, and what its calls took if anybody knows; nobody has to wait for
    /// that. A run of which all is kept is given back as it is.
    pub(crate) fn end_story(mut self, outcome: &Outcome, usage: Option<Usage>) -> Option<Self> {
        if matches!(self.kept, Kept::All { .. }) {
            return Some(self);
        }
        let at = now();
        let told = self.ends(outcome, at, usage);
        self.tell(outcome.clone(), at, told);
        None
    }

    /// Keeps how it ended, what its calls took if anybody knows, and what was answered to whoever
    /// has a key.
    pub(crate) async fn end(
        self,
        outcome: &Outcome,
        usage: Option<Usage>,
        answer: Option<String>,
    ) -> Result<(), RecordError> {
        let Some(mut ended) = self.end_story(outcome, usage) else {
            return Ok(());
        };
        let at = now();
        let told = ended.ends(outcome, at, usage);
        let Kept::All { claim, key } = &ended.kept else {
            return Ok(());
        };
        let (claim, ending) = (claim.clone(), ended.ending(outcome.clone()));
        let answer = answer.filter(|_| key.is_some());
        let end = move |writes: &mut dyn Writes| {
            if let Some(answer) = answer {
                writes.keep_answer(&claim, &answer)?;
            }
            writes.end(&claim, at, &ending)
        };
        let written = ended.recorder.write(end).await;
        drop(told);
        written
    }

    /// It ends at a time, which is told later. What is told and what is kept have the same time.
    fn ends(&mut self, outcome: &Outcome, at: u64, usage: Option<Usage>) -> Later {
        self.is_ended = true;
        if let Some(usage) = usage {
            if self.steps == 0 {
                self.tally
                    .call(self.asking.unwrap_or_default(), usage.output);
            }
            self.tally.input_tokens = usage.input;
            self.tally.output_tokens = usage.output;
            self.tally.cached_tokens = usage.cached;
        }
        let events = &self.recorder.events;
        events.tell_later(|| self.event(EventKind::Ended, Some((outcome, at))))
    }

    /// The end as it is kept.
    fn ending(&self, outcome: Outcome) -> String {
        to_json(&Ending {
            outcome,
            tally: Some(self.tally),
            upstream_fault: self.fault.as_deref().cloned(),
            unfit: self.unfit.as_deref().cloned(),
        })
    }

    /// Writes down the story of a run.
    fn tell(&mut self, outcome: Outcome, at: u64, told: Later) {
        let ending = self.ending(outcome);
        let Kept::Story { steps } = &mut self.kept else {
            return;
        };
        self.recorder.writer.note(Write::Story(Story {
            id: self.id.clone(),
            about: Arc::clone(&self.about),
            began_at: self.began_at,
            ended_at: at,
            steps: mem::take(steps),
            ending,
            told,
        }));
    }
}

impl Drop for Recording {
    /// Who goes away in the middle calls the run off. One with a key waits to be asked for again.
    fn drop(&mut self) {
        if self.growth.is_some() {
            self.recorder.growths.remove(&self.id);
        }
        if !self.is_ended {
            self.call_off();
        }
        // After its end is on its way, or it would be found without either. One with a key is let
        // go of by its mark.
        if !self.is_keyed() {
            self.recorder.live().remove(&self.id);
        }
    }
}

impl Recording {
    /// Nobody waits for it any more.
    fn call_off(&mut self) {
        let events = Arc::clone(&self.recorder.events);
        if self.is_keyed() {
            events.tell(|| self.event(EventKind::Left, None));
            return;
        }
        let outcome = self.unfinished(Reason::Cancelled);
        if let Some(input) = self.asking.take() {
            // The prompt has been sent, whatever comes back.
            self.tally.call(input, 0);
        }
        let at = now();
        let told = events.tell_later(|| self.event(EventKind::Ended, Some((&outcome, at))));
        match &self.kept {
            Kept::Story { .. } => self.tell(outcome, at, told),
            Kept::All { claim, .. } => {
                let (claim, ending) = (claim.clone(), self.ending(outcome));
                self.recorder
                    .note(told, move |writes| writes.end(&claim, at, &ending));
            }
        }
    }
}

impl About {
    pub(crate) fn begun<'a>(&'a self, id: &'a RunId, at: u64) -> NewRun<'a> {
        NewRun {
            id,
            at,
            model: &self.model,
            request: &self.request,
            options: &self.options,
            conditions: &self.conditions,
        }
    }
}

#[cfg(test)]
mod tests {
    use overlock_store::{Access, StoreAddress};

    use super::*;

    fn about() -> Arc<About> {
        Arc::new(About {
            model: "a-model".to_owned(),
            request: "{}".to_owned(),
            options: "{}".to_owned(),
            conditions: "{}".to_owned(),
        })
    }

    fn pricing() -> Pricing {
        Pricing::new(overlock_budget::Models::default(), "USD")
    }

    fn recorder(record: Record) -> Arc<Recorder> {
        let store = overlock_store::in_memory().expect("a store");
        Arc::new(Recorder::start(store, record, pricing()))
    }

    #[tokio::test]
    async fn a_story_is_written_in_the_end() {
        let recorder = recorder(Record::Metadata);
        let recording = Recording::story(&recorder, about());
        recorder.settle().await;
        assert_eq!(recorder.store().latest(9).expect("a list").len(), 0);
        let usage = Some(Usage {
            input: 30,
            output: 7,
            cached: None,
        });
        let ended = recording.end(&Outcome::Complete, usage, None).await;
        ended.expect("it is kept");
        recorder.settle().await;
        let run = &recorder.store().latest(9).expect("a list")[0];
        let listed = ListedRun::from(run);
        assert_eq!(listed.outcome, Some("complete"));
        let tally = listed.tally.expect("what it took");
        assert_eq!((tally.input_tokens, tally.output_tokens), (30, 7));
    }

    #[tokio::test]
    async fn a_run_that_somebody_left_is_called_off() {
        for record in [Record::Metadata, Record::Full] {
            let recorder = recorder(record);
            match record {
                Record::Full => drop(Recording::begin(&recorder, about()).await),
                _ => drop(Recording::story(&recorder, about())),
            }
            recorder.settle().await;
            let run = &recorder.store().latest(9).expect("a list")[0];
            let outcome = run.outcome.as_deref().expect("an end");
            assert!(outcome.contains("cancelled"), "{outcome}");
        }
    }

    #[tokio::test]
    async fn a_run_is_worked_on_by_one_until_they_let_go() {
        let recorder = recorder(Record::Off);
        let id = recorder.new_id();
        let work_on = async || recorder.work_on(&id).await.expect("a store");
        let live = work_on().await.expect("nobody works on it");
        assert!(work_on().await.is_none());
        drop(live);
        assert!(work_on().await.is_some());
    }

    #[tokio::test]
    async fn nobody_waits_for_a_writer_that_is_gone() {
        let recorder = recorder(Record::Off);
        let write = recorder.write(|_| -> Result<(), StoreError> { panic!("a defect") });
        assert!(matches!(write.await, Err(RecordError::Closed)));
        let write = recorder.write(|_| Ok(()));
        assert!(matches!(write.await, Err(RecordError::Closed)));
    }

    #[tokio::test]
    async fn nobody_waits_for_a_write_that_could_not_begin() {
        let folder = tempfile::tempdir().expect("a folder");
        let address = StoreAddress::Sqlite(folder.path().join("runs.db"));
        overlock_store::open(&address, Access::Make).expect("a store");
        let store = overlock_store::open(&address, Access::Read).expect("a store to look at");
        let recorder = Recorder::start(store, Record::Full, pricing());
        for _ in 0..2 {
            let write = recorder.write(|_| Ok(()));
            assert!(matches!(write.await, Err(RecordError::Closed)));
        }
    }

    #[tokio::test]
    async fn many_runs_at_once_have_names_of_their_own() {
        let recorder = recorder(Record::Off);
        let begun = (0..300).map(|_| Recording::begin(&recorder, about()));
        let begun = futures_util::future::join_all(begun).await;
        assert!(begun.iter().all(Result::is_ok));
        assert_eq!(recorder.store().latest(999).expect("a list").len(), 300);
    }
}
