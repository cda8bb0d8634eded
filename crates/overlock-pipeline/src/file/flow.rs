//! The transitions between the steps of a pipeline.

use std::collections::{HashMap, VecDeque};

use super::Step;
use crate::actions::Action;

/// Whether an action always chooses the next step itself.
pub(super) fn always_chooses(action: &Action) -> bool {
    match action {
        Action::ManageContextBudget(_) | Action::LoopGuard(_) | Action::RepeatQueryGuard(_) => true,
        Action::Route(route) => route.on_other.is_some(),
        _ => false,
    }
}

/// The graph of steps, by their index in the file.
pub(super) struct Flow {
    out: Vec<Vec<usize>>,
    /// The transitions in reverse.
    into: Vec<Vec<usize>>,
}

impl Flow {
    pub(super) fn of(steps: &[Step]) -> Self {
        let indices: HashMap<&str, usize> = steps
            .iter()
            .enumerate()
            .map(|(index, step)| (step.id.as_str(), index))
            .collect();
        let out = steps.iter().map(|step| {
            let targets = step.transitions().into_iter();
            targets
                .filter_map(|(_, id)| indices.get(id).copied())
                .collect()
        });
        let out: Vec<Vec<usize>> = out.collect();
        let mut into = vec![Vec::new(); out.len()];
        for (index, targets) in out.iter().enumerate() {
            for to in targets {
                into[*to].push(index);
            }
        }
        Self { out, into }
    }

    /// Which steps are among these or can follow one of them.
    pub(super) fn reached(&self, from: impl IntoIterator<Item = usize>) -> Vec<bool> {
        let mut reached = vec![false; self.out.len()];
        let mut waiting: Vec<usize> = from.into_iter().collect();
        while let Some(index) = waiting.pop() {
            if !std::mem::replace(&mut reached[index], true) {
                waiting.extend(&self.out[index]);
            }
        }
        reached
    }

    /// Which steps can follow one of these, including a step itself if a loop leads back to it.
    pub(super) fn after(&self, indices: impl IntoIterator<Item = usize>) -> Vec<bool> {
        let indices = indices.into_iter();
        self.reached(indices.flat_map(|index| self.out[index].iter().copied()))
    }

    /// A shortest cycle of each strongly connected set of steps, through allowed steps only.
    pub(super) fn cycles(&self, allowed: &[bool]) -> Vec<Vec<usize>> {
        let mut seen = vec![false; self.out.len()];
        let mut cycles = Vec::new();
        for index in 0..self.out.len() {
            if !allowed[index] || seen[index] {
                continue;
            }
            let Some(cycle) = self.cycle(index, allowed) else {
                continue;
            };
            // Reports one cycle of each set.
            let (ahead, behind) = (
                walk(&self.out, index, allowed),
                walk(&self.into, index, allowed),
            );
            for (seen, (ahead, behind)) in seen.iter_mut().zip(ahead.iter().zip(behind)) {
                *seen |= *ahead && behind;
            }
            cycles.push(cycle);
        }
        cycles
    }

    /// The shortest cycle through a step.
    fn cycle(&self, start: usize, allowed: &[bool]) -> Option<Vec<usize>> {
        let mut came_from = vec![None; self.out.len()];
        let mut waiting = VecDeque::from([start]);
        while let Some(index) = waiting.pop_front() {
            for next in &self.out[index] {
                if *next == start {
                    let mut cycle = vec![index];
                    while let Some(before) = came_from[cycle[cycle.len() - 1]] {
                        cycle.push(before);
                    }
                    cycle.reverse();
                    return Some(cycle);
                }
                if allowed[*next] && came_from[*next].is_none() {
                    came_from[*next] = Some(index);
                    waiting.push_back(*next);
                }
            }
        }
        None
    }
}

/// The steps reachable from one of them, through allowed steps only.
fn walk(edges: &[Vec<usize>], start: usize, allowed: &[bool]) -> Vec<bool> {
    let mut reached = vec![false; edges.len()];
    let mut waiting = vec![start];
    while let Some(index) = waiting.pop() {
        for next in &edges[index] {
            if allowed[*next] && !std::mem::replace(&mut reached[*next], true) {
                waiting.push(*next);
            }
        }
    }
    reached
}
