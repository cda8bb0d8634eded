//! The ways that a run can take through its steps.

use std::collections::{HashMap, VecDeque};

use super::Step;
use crate::actions::Action;

/// A way from one step to another.
pub(super) struct Way<'a> {
    /// What it is called, if the step has more than one.
    pub(super) label: Option<String>,
    pub(super) to: &'a str,
}

/// The ways that lead out of a step; none if the run can only end there.
pub(super) fn ways(step: &Step) -> Vec<Way<'_>> {
    let targets = step.action.targets().into_iter();
    let chosen = targets.filter(|target| !target.is_mail).map(|target| Way {
        label: Some(target.label),
        to: target.step,
    });
    let mut ways: Vec<Way<'_>> = chosen.collect();
    if let Some(next) = &step.next
        && !step.end
        && !always_chooses(&step.action)
    {
        let label = (!ways.is_empty()).then(|| "next".to_owned());
        ways.push(Way { label, to: next });
    }
    ways
}

/// Whether an action always says itself where to go.
pub(super) fn always_chooses(action: &Action) -> bool {
    match action {
        Action::ManageContextBudget(_) | Action::LoopGuard(_) | Action::RepeatQueryGuard(_) => true,
        Action::Route(route) => route.on_other.is_some(),
        _ => false,
    }
}

/// Steps by their places in the file, and where each of them can lead.
pub(super) struct Flow {
    out: Vec<Vec<usize>>,
    /// The same ways, backwards.
    into: Vec<Vec<usize>>,
}

impl Flow {
    pub(super) fn of(steps: &[Step]) -> Self {
        let places: HashMap<&str, usize> = steps
            .iter()
            .enumerate()
            .map(|(place, step)| (step.id.as_str(), place))
            .collect();
        let out = steps.iter().map(|step| {
            let ways = ways(step).into_iter();
            ways.filter_map(|way| places.get(way.to).copied()).collect()
        });
        let out: Vec<Vec<usize>> = out.collect();
        let mut into = vec![Vec::new(); out.len()];
        for (place, ways) in out.iter().enumerate() {
            for to in ways {
                into[*to].push(place);
            }
        }
        Self { out, into }
    }

    /// Which steps are among these, or come after one of them.
    pub(super) fn reached(&self, from: impl IntoIterator<Item = usize>) -> Vec<bool> {
        let mut reached = vec![false; self.out.len()];
        let mut waiting: Vec<usize> = from.into_iter().collect();
        while let Some(place) = waiting.pop() {
            if !std::mem::replace(&mut reached[place], true) {
                waiting.extend(&self.out[place]);
            }
        }
        reached
    }

    /// Which steps come after one of these; itself only if the run can come back.
    pub(super) fn after(&self, places: impl IntoIterator<Item = usize>) -> Vec<bool> {
        let places = places.into_iter();
        self.reached(places.flat_map(|place| self.out[place].iter().copied()))
    }

    /// A shortest cycle of each knot of steps, over those alone that may be on it.
    pub(super) fn cycles(&self, may: &[bool]) -> Vec<Vec<usize>> {
        let mut seen = vec![false; self.out.len()];
        let mut cycles = Vec::new();
        for place in 0..self.out.len() {
            if !may[place] || seen[place] {
                continue;
            }
            let Some(cycle) = self.cycle(place, may) else {
                continue;
            };
            // One knot is told once, however many ways lead around in it.
            let (ahead, behind) = (walk(&self.out, place, may), walk(&self.into, place, may));
            for (seen, (ahead, behind)) in seen.iter_mut().zip(ahead.iter().zip(behind)) {
                *seen |= *ahead && behind;
            }
            cycles.push(cycle);
        }
        cycles
    }

    /// The shortest way from a step back to it.
    fn cycle(&self, start: usize, may: &[bool]) -> Option<Vec<usize>> {
        let mut came_from = vec![None; self.out.len()];
        let mut waiting = VecDeque::from([start]);
        while let Some(place) = waiting.pop_front() {
            for next in &self.out[place] {
                if *next == start {
                    let mut way = vec![place];
                    while let Some(before) = came_from[way[way.len() - 1]] {
                        way.push(before);
                    }
                    way.reverse();
                    return Some(way);
                }
                if may[*next] && came_from[*next].is_none() {
                    came_from[*next] = Some(place);
                    waiting.push_back(*next);
                }
            }
        }
        None
    }
}

/// The steps that these ways lead to from one of them, over those alone that may be on it.
fn walk(ways: &[Vec<usize>], start: usize, may: &[bool]) -> Vec<bool> {
    let mut found = vec![false; ways.len()];
    let mut waiting = vec![start];
    while let Some(place) = waiting.pop() {
        for next in &ways[place] {
            if may[*next] && !std::mem::replace(&mut found[*next], true) {
                waiting.push(*next);
            }
        }
    }
    found
}
