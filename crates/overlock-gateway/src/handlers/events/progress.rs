//! Reports to one subscriber how far answers in progress are.
//!
//! Progress changes too often for the event log, and must not slow down the answer. So each
//! subscriber polls it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use overlock_runs::{RunCost, to_json};
use overlock_store::RunId;
use serde::Serialize;
use tokio::time::Instant;

use super::sse::SseText;
use crate::gateway::Gateway;
use crate::record::{AnswerProgress, LiveProgress, Recorder};

/// The interval of polling.
const INTERVAL: Duration = Duration::from_millis(500);

/// The most runs that are reported in one interval.
const MOST_RUNS: usize = 64;

pub(super) struct ProgressReporter {
    pub(super) gateway: Arc<Gateway>,
    /// The time of the next poll.
    pub(super) at: Instant,
    /// The last report of each run.
    reports: HashMap<RunId, Report>,
    /// The number of polls.
    turn: u64,
}

/// The progress of an answer when it was reported.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Report {
    turn: u64,
    number: u32,
    bytes: u64,
}

impl ProgressReporter {
    pub(super) fn new(gateway: &Arc<Gateway>) -> Self {
        Self {
            gateway: Arc::clone(gateway),
            at: Instant::now() + INTERVAL,
            reports: HashMap::new(),
            turn: 0,
        }
    }

    /// The changes among all answers in progress. Those whose last report is oldest come first.
    pub(super) fn changes(
        &mut self,
        recorder: &Recorder,
        running: Vec<(RunId, Arc<LiveProgress>)>,
    ) -> SseText {
        self.at = Instant::now() + INTERVAL;
        self.turn += 1;
        let before = std::mem::take(&mut self.reports);
        let mut changed = Vec::new();
        for (id, live) in running {
            let answer = live.now();
            let last = before.get(&id).copied();
            if let Some(last) = last {
                self.reports.insert(id.clone(), last);
            }
            let is_same = |it: Report| (it.number, it.bytes) == (answer.number, answer.bytes);
            if answer.number > 0 && !last.is_some_and(is_same) {
                changed.push((last.map_or(0, |it| it.turn), id, live, answer));
            }
        }
        changed.sort_unstable_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
        let mut text = SseText::default();
        for (_, id, live, answer) in changed.into_iter().take(MOST_RUNS) {
            text.event(None, "growing", &self.data(recorder, &id, &live, &answer));
            let report = Report {
                turn: self.turn,
                number: answer.number,
                bytes: answer.bytes,
            };
            self.reports.insert(id, report);
        }
        text
    }

    /// The payload of an event. The tokens are extrapolated from the end of the answer.
    fn data(
        &self,
        recorder: &Recorder,
        id: &RunId,
        live: &LiveProgress,
        answer: &AnswerProgress,
    ) -> String {
        #[derive(Serialize)]
        struct ProgressData<'a> {
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
        let model = &live.about.model;
        let cached = self.gateway.model_cache.get(&self.gateway.settings, model);
        let end_tokens = cached.counter.tokens().count(&answer.end);
        let tokens = match answer.end.len() as u64 {
            0 => 0,
            end => u128::from(end_tokens) * u128::from(answer.bytes) / u128::from(end),
        };
        let tokens = u64::try_from(tokens).unwrap_or(u64::MAX);
        let mut tally = answer.tally;
        tally.call(0, tokens);
        to_json(&ProgressData {
            run: id,
            number: answer.number,
            bytes: answer.bytes,
            tokens,
            input_tokens: tally.input_tokens,
            output_tokens: tally.output_tokens,
            cost: recorder.pricing.of([(model.as_str(), tally.usage())]),
            text: recorder.events.shows_text().then_some(&*answer.end),
        })
    }
}
