//! What is kept of runs, and who may write to them.

use std::collections::HashSet;
use std::fmt::{self, Debug, Display, Formatter};
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::error::StoreError;
use crate::strategies::StrategyResult;

/// Keeps runs.
///
/// Every write is there for good before it returns: what was acknowledged survives whatever happens
/// to this process. Only the last one that claimed a run can write to it, so that two that go on
/// with the same run, one of which was thought to be dead, cannot mix their answers.
pub trait Runs {
    /// Does work in one transaction, once, and commits it.
    fn transact(&self, work: &mut dyn FnMut(&mut dyn Writes)) -> Result<(), StoreError>;

    /// The right to work on a run, which nobody else has meanwhile; nothing if somebody has it.
    /// Whoever dies has it no more.
    fn work_on(&self, id: &RunId) -> Result<Option<Work>, StoreError>;

    /// All that is kept of a run.
    fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError>;

    /// What is kept of a run beyond its first so many steps.
    fn since(&self, id: &RunId, steps: u32) -> Result<Option<Since>, StoreError>;

    /// The last runs before one of this name, or of all, the last one first: names sort by time.
    fn before(&self, id: Option<&RunId>, count: u32) -> Result<Vec<RunSummary>, StoreError>;

    /// The latest runs, the last one first.
    fn latest(&self, count: u32) -> Result<Vec<RunSummary>, StoreError> {
        self.before(None, count)
    }

    /// Which of these runs somebody works on, here or in another process, as far as the right to do
    /// so was asked for: see [`work_on`](Self::work_on).
    fn worked_on(&self, ids: &[RunId]) -> Result<HashSet<RunId>, StoreError>;

    /// Records that a run begins.
    fn begin(&self, run: &NewRun<'_>) -> Result<Claim, StoreError> {
        transact(self, |writes| writes.begin(run))?
    }

    /// Claims a run, to go on with it: from now on nobody who claimed it before can write to it.
    fn take_up(&self, id: &RunId) -> Result<Option<(Run, Claim)>, StoreError> {
        transact(self, |writes| writes.take_up(id))?
    }

    /// Records a step of a run, counted from 1.
    fn add_step(&self, claim: &Claim, step: u32, body: &str) -> Result<(), StoreError> {
        transact(self, |writes| writes.add_step(claim, step, body))?
    }

    /// Records how a run ended; one that is taken up again ends again.
    fn end(&self, claim: &Claim, at: u64, outcome: &str) -> Result<(), StoreError> {
        transact(self, |writes| writes.end(claim, at, outcome))?
    }
}

/// Writes that are made together.
pub trait Writes {
    /// Records that a run begins.
    fn begin(&mut self, run: &NewRun<'_>) -> Result<Claim, StoreError>;

    /// Records that a run begins, unless one has under the same key. The digest tells whether that
    /// one was asked the same.
    fn begin_once(
        &mut self,
        key: &str,
        digest: &str,
        run: &NewRun<'_>,
    ) -> Result<Begun, StoreError>;

    /// Claims a run, to go on with it: from now on nobody who claimed it before can write to it.
    fn take_up(&mut self, id: &RunId) -> Result<Option<(Run, Claim)>, StoreError>;

    /// Records a step of a run, counted from 1.
    fn add_step(&mut self, claim: &Claim, step: u32, body: &str) -> Result<(), StoreError>;

    /// Records how a run ended; one that is taken up again ends again.
    fn end(&mut self, claim: &Claim, at: u64, outcome: &str) -> Result<(), StoreError>;

    /// Records a run that is over, with all its steps, in as few writes as there can be.
    fn tell(&mut self, run: &EndedRun<'_>) -> Result<(), StoreError>;

    /// Keeps what was answered in the end, for whoever asks the same again.
    fn keep_answer(&mut self, claim: &Claim, answer: &str) -> Result<(), StoreError>;

    /// Adds what a run has shown about strategies. The oldest results of a model and of all are
    /// dropped where there are too many, and results under long names are not kept.
    fn add_strategy_result(
        &mut self,
        server: &str,
        result: &StrategyResult,
    ) -> Result<(), StoreError>;
}

/// Does work in one transaction, and gives back what came of it.
pub(crate) fn transact<T>(
    runs: &(impl Runs + ?Sized),
    work: impl FnOnce(&mut dyn Writes) -> T,
) -> Result<T, StoreError> {
    let (mut work, mut done) = (Some(work), None);
    runs.transact(&mut |writes| done = work.take().map(|work| work(writes)))?;
    Ok(done.expect("a transaction that was committed did its work once"))
}

/// The right to work on a run, until this is dropped. No other process has it meanwhile.
#[derive(Debug)]
pub struct Work {
    held: Box<dyn Hold>,
}

/// What whoever works on a run holds; whoever drops it lets go.
pub(crate) trait Hold: Debug + Send + Sync {
    /// Whether it is, which it may not be any more although nobody let go.
    fn is_held(&self) -> bool;
}

impl Work {
    pub(crate) fn holding(held: impl Hold + 'static) -> Self {
        Self {
            held: Box::new(held),
        }
    }

    /// Whether this still is the right to work on it: a server that was started again has given it
    /// away.
    pub fn is_held(&self) -> bool {
        self.held.is_held()
    }
}

/// Whether a run began under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It did now.
    Now(Claim),
    /// This one did before, and was asked the same.
    Before(RunId),
    /// One did before that was asked something else.
    Otherwise,
    /// Somebody else is just about to begin one.
    Meanwhile,
}

/// The name of a run: thirteen letters and digits, of which the first ten tell when it began, so
/// that names sort by time.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId([u8; LEN]);

/// A text that is the name of no run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the name of a run, such as `0ka3dv8mgq7zt`")]
pub struct RunIdError(pub String);

/// Digits and letters without those that look like others.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const TIME_LEN: usize = 10;

/// Comes after every name.
pub(crate) const AFTER_ALL: &str = "~";

const LEN: usize = 13;

impl RunId {
    /// A name for a run that began so many milliseconds after 1970; of two that began together
    /// the number drawn at random tells them apart.
    pub fn new(at: u64, random: u64) -> Self {
        // Five bits each, the last of a number in its last place.
        let digits = |places: &mut [u8], mut number: u64| {
            for place in places.iter_mut().rev() {
                *place = ALPHABET[usize::try_from(number & 31).unwrap_or_default()];
                number >>= 5;
            }
        };
        let mut id = [0; LEN];
        let (time, chance) = id.split_at_mut(TIME_LEN);
        digits(time, at);
        digits(chance, random);
        Self(id)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl Display for RunId {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Debug for RunId {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        Debug::fmt(self.as_str(), formatter)
    }
}

impl Serialize for RunId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl FromStr for RunId {
    type Err = RunIdError;

    fn from_str(text: &str) -> Result<Self, RunIdError> {
        let id = text.trim().to_ascii_lowercase();
        let id = <[u8; LEN]>::try_from(id.as_bytes()).ok();
        id.filter(|id| id.iter().all(|byte| ALPHABET.contains(byte)))
            .map(Self)
            .ok_or_else(|| RunIdError(text.to_owned()))
    }
}

/// A run that begins.
#[derive(Clone, Copy, Debug)]
pub struct NewRun<'a> {
    /// Its name.
    pub id: &'a RunId,
    /// When it begins, in milliseconds since 1970.
    pub at: u64,
    /// The model that is asked.
    pub model: &'a str,
    /// What is asked of it.
    pub request: &'a str,
    /// What the run may do.
    pub options: &'a str,
    /// What else whoever takes it up has to know.
    pub conditions: &'a str,
}

/// A run of which nothing is recorded before it is over.
#[derive(Clone, Copy, Debug)]
pub struct EndedRun<'a> {
    /// How it began.
    pub begun: NewRun<'a>,
    /// Its steps, in order.
    pub steps: &'a [String],
    /// When it ended, in milliseconds since 1970.
    pub at: u64,
    /// How it ended.
    pub outcome: &'a str,
}

/// The right to write to a run: of all who claimed it, the last one has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub(crate) id: RunId,
    pub(crate) number: i64,
}

impl Claim {
    /// The run.
    pub fn id(&self) -> &RunId {
        &self.id
    }
}

/// A run as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// What a list shows of it.
    pub summary: RunSummary,
    /// What is asked of the model.
    pub request: String,
    /// What else whoever takes it up has to know.
    pub conditions: String,
    /// What was answered in the end, if that was kept.
    pub answer: Option<String>,
    /// Its steps, in order.
    pub steps: Vec<String>,
}

/// What came to a run since somebody looked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Since {
    /// What a list shows of it now.
    pub summary: RunSummary,
    /// The steps that came, in order.
    pub steps: Vec<String>,
}

/// What a list shows of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// Its name.
    pub id: RunId,
    /// When it began, in milliseconds since 1970.
    pub began_at: u64,
    /// When it ended, if it has.
    pub ended_at: Option<u64>,
    /// The model that is asked.
    pub model: String,
    /// What the run may do.
    pub options: String,
    /// How it ended, in the words of whoever ended it.
    pub outcome: Option<String>,
    /// What else whoever takes it up has to know, if it has not ended.
    pub open_conditions: Option<String>,
    /// How many steps it has.
    pub steps: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_by_time_and_can_be_read_again() {
        let [one, two] = [1_763_251_200_000, 1_763_251_200_001].map(|at| RunId::new(at, 7));
        assert!(one < two, "{one} {two}");
        assert_eq!(one.to_string().parse(), Ok(one.clone()));
        assert_eq!(one.to_string().to_uppercase().parse(), Ok(one));
    }

    #[test]
    fn refuses_what_is_no_name() {
        for text in ["", "latest", "0ka3dv8mgq7z!", "0ka3dv8mgq7zt0"] {
            assert_eq!(text.parse::<RunId>(), Err(RunIdError(text.to_owned())));
        }
    }
}
