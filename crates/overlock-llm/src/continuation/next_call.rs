//! Chooses the next call of a run: its strategy and its overlap.

use overlock_json::PartialDocument;

use super::Continuation;
use super::blank::split_blank;
use crate::marker::Marker;
use crate::progress::Kpi;
use crate::strategy::Strategy;

/// The next call of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextCall {
    /// The number of the call, from 1.
    pub iteration: u32,
    /// How to ask for the rest; `None` for the caller's own prompt and for the question which KPIs
    /// to count.
    pub strategy: Option<Strategy>,
    /// The end of the document that the answer should repeat, the prefill, or the excerpt that the
    /// prompt shows. Empty unless the call asks for the rest.
    ///
    /// A prefill ends with white space only where the answer is
    /// [known](Continuation::set_at_cut) to start after it.
    pub overlap: String,
    /// What the answer should contain.
    pub wants: Wants,
    /// The marker around the parts of the prompt. An answer that contains it is rejected.
    pub marker: Marker,
}

/// What an answer should contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// The document, or the missing part of it.
    Document,
    /// The same, after a line with the progress in percent.
    ProgressAndDocument,
    /// The KPIs that can be counted in the document, and nothing of the document itself.
    Kpis,
    /// The rest of a text that is not JSON.
    Text,
}

/// By how many characters an overlap grows after an ambiguous join.
const LONGER_OVERLAP: usize = 400;

/// An overlap of fewer characters may be found in the wrong place.
const SHORTEST_OVERLAP: usize = 40;

impl Continuation {
    /// The next call; `None` once the run has ended. Only [`answered`](Self::answered) and
    /// [`refused`](Self::refused) advance the run.
    pub fn next(&self) -> Option<NextCall> {
        if self.outcome.is_some() {
            return None;
        }
        let wants_kpis = self.document.is_some() && self.wants_kpis();
        let document = self.document.as_ref().filter(|_| !wants_kpis);
        let rest = document.map(|document| self.way_and_overlap(document.base()));
        let strategy = rest.map(|(strategy, _)| strategy);
        let overlap = rest.map_or("", |(_, overlap)| overlap).to_owned();
        Some(NextCall {
            iteration: self.tally.iterations + 1,
            strategy,
            overlap,
            wants: match strategy {
                None if wants_kpis => Wants::Kpis,
                Some(Strategy::Overlap) if self.options.kpi == Kpi::Ask => {
                    Wants::ProgressAndDocument
                }
                _ => Wants::Document,
            },
            marker: self.marker.clone(),
        })
    }

    /// The strategy and the overlap of the next call. After a failure, one of them or the answer
    /// limit changes, because a model at temperature 0 would fail the same way again.
    fn way_and_overlap<'a>(&self, base: &'a PartialDocument<'_>) -> (Strategy, &'a str) {
        let tally = &self.tally;
        let strategies = self.options.strategies.as_slice();
        let strategies = if strategies.is_empty() {
            &[Strategy::Overlap]
        } else {
            strategies
        };
        let in_turn = strategies
            .iter()
            .cycle()
            .skip(tally.strategy % strategies.len());
        let in_turn = in_turn.take(strategies.len()).copied();
        // If the only allowed strategy has just one overlap, another strategy is better than
        // repeating the call.
        let fallbacks = [Strategy::Overlap, Strategy::Remainder];
        let fallbacks = fallbacks
            .into_iter()
            .filter(|strategy| !strategies.contains(strategy));
        let order = in_turn.chain(fallbacks);
        let order: Vec<Strategy> = order
            .filter(|strategy| !tally.refused.contains(strategy))
            .collect();
        let mut failed_strategies = tally.failed_strategies.as_slice();
        // The same call may have a longer answer.
        if tally.is_repeatable {
            failed_strategies = &failed_strategies[..failed_strategies.len() - 1];
        }
        let failed = |strategy: Strategy| {
            failed_strategies
                .iter()
                .filter(|it| **it == strategy)
                .count()
        };
        let untried = order.iter().find_map(|strategy| {
            let overlaps = self.overlaps(base, *strategy, failed(*strategy));
            Some((*strategy, *overlaps.get(failed(*strategy))?))
        });
        untried.unwrap_or_else(|| {
            let last = failed_strategies.last();
            let other = order.iter().find(|strategy| Some(*strategy) != last);
            let strategy = *other.or(order.first()).unwrap_or(&strategies[0]);
            let overlaps = self.overlaps(base, strategy, failed(strategy));
            (strategy, overlaps[failed(strategy) % overlaps.len()])
        })
    }

    /// Whether the next call asks which KPIs to count, which happens once.
    fn wants_kpis(&self) -> bool {
        let is_measured = matches!(&self.options.kpi, Kpi::Measured(kpis) if kpis.is_empty());
        is_measured && self.tally.kpis.is_none()
    }

    /// The overlaps to try, at least `retries` + 1 if there are so many: the usual one, longer
    /// ones, then shorter ones. The prefill is the whole document.
    fn overlaps<'a>(
        &self,
        base: &'a PartialDocument<'_>,
        strategy: Strategy,
        retries: usize,
    ) -> Vec<&'a str> {
        if strategy == Strategy::Prefill {
            let text = base.text();
            return vec![if self.is_at_cut {
                text
            } else {
                split_blank(text).0
            }];
        }
        let answer_chars = self.options.answer_chars.or(self.tally.answer_chars);
        let usual = base.overlap_context(answer_chars);
        let mut overlaps = vec![usual];
        let chars = usual.chars().count();
        let room = answer_chars.map_or(usize::MAX, |most| (most / 4).saturating_sub(chars));
        let mut longest = usual;
        while overlaps.len() <= retries {
            let by = LONGER_OVERLAP.saturating_mul(overlaps.len());
            let longer = base.longer_overlap_context(answer_chars, by.min(room));
            if longer.len() <= longest.len() {
                break;
            }
            overlaps.push(longer);
            longest = longer;
        }
        let mut shorter = chars / 2;
        while overlaps.len() <= retries && shorter >= SHORTEST_OVERLAP {
            let start = usual.char_indices().nth(chars - shorter);
            overlaps.push(&usual[start.map_or(0, |(at, _)| at)..]);
            shorter /= 2;
        }
        overlaps
    }
}
