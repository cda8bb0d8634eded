//! What can be run, but hardly was meant so.

use super::explain::thousands;
use super::findings::{Report, clipped, span_of};
use super::flow::{Flow, always_chooses};
use super::tree::Node;
use super::{Pipeline, Step};
use crate::actions::{Action, ManageContextBudget};

/// Tells what is doubtful about a pipeline without errors.
pub(super) fn doubts(pipeline: &Pipeline, nodes: &[&Node], report: &mut Report<'_>) {
    let steps = &pipeline.steps;
    let flow = Flow::of(steps);
    let entry = &pipeline.settings.entry_step_id;
    let entry = steps.iter().position(|step| step.id == *entry);
    let reached = flow.reached(entry);
    let fetching = steps.iter().enumerate();
    let fetching = fetching.filter(|(_, step)| matches!(step.action, Action::FetchNodeTexts(_)));
    let fetched = flow.after(fetching.map(|(place, _)| place));
    let mut doubts = Doubts {
        pipeline,
        nodes,
        flow,
        reached,
        fetched,
        report,
    };
    doubts.never_reached();
    doubts.endless();
    for (place, step) in steps.iter().enumerate() {
        doubts.next_never_taken(place);
        match &step.action {
            Action::FetchNodeTexts(fetch) => doubts.fetches_too_much(place, fetch.budget_tokens),
            Action::ManageContextBudget(manage) => doubts.guards_nothing(place, manage),
            Action::Send(send) => doubts.never_taken(place, &send.target_step_id),
            _ => {}
        }
    }
}

struct Doubts<'a, 't> {
    pipeline: &'a Pipeline,
    nodes: &'a [&'a Node],
    flow: Flow,
    /// Which steps a run can come to.
    reached: Vec<bool>,
    /// Which steps come after one that fetches texts.
    fetched: Vec<bool>,
    report: &'a mut Report<'t>,
}

impl Doubts<'_, '_> {
    fn steps(&self) -> &[Step] {
        &self.pipeline.steps
    }

    fn warn(&mut self, place: usize, path: &[&str], message: &str, help: &str) {
        let span = span_of(self.nodes[place], path);
        self.report.warning(span, message, help);
    }

    fn id(&self, place: usize) -> String {
        clipped(&self.steps()[place].id)
    }

    fn never_reached(&mut self) {
        for place in 0..self.steps().len() {
            if !self.reached[place] {
                let message = format!("no run comes to `{}`", self.id(place));
                let help = "name it in a step that runs come to, or take it out";
                self.warn(place, &["id"], &message, help);
            }
        }
    }

    /// Only a `loop_guard` ends a loop, so every loop needs one.
    fn endless(&mut self) {
        let steps = self.steps().iter().zip(&self.reached);
        let may: Vec<bool> = steps
            .map(|(step, reached)| *reached && !matches!(step.action, Action::LoopGuard(_)))
            .collect();
        for cycle in self.flow.cycles(&may) {
            const MOST: usize = 8;
            let mut names: Vec<String> = cycle
                .iter()
                .take(MOST)
                .map(|place| self.id(*place))
                .collect();
            if cycle.len() > MOST {
                names.push("…".to_owned());
            }
            names.push(self.id(cycle[0]));
            let message = format!("nothing ends the loop {}", names.join(" → "));
            let help = "put a `loop_guard` into it";
            self.warn(cycle[0], &["id"], &message, help);
        }
    }

    fn next_never_taken(&mut self, place: usize) {
        let step = &self.steps()[place];
        let name = step.action.name();
        let is_route = matches!(step.action, Action::Route(_));
        if step.next.is_some() && always_chooses(&step.action) {
            let message = format!("`next` is never taken: `{name}` always chooses itself");
            self.warn(place, &["next"], &message, "leave it out");
        } else if step.end && (is_route || always_chooses(&step.action)) {
            let message = format!("`end` is never heeded: `{name}` always chooses itself");
            self.warn(place, &["end"], &message, "leave it out");
        }
    }

    fn fetches_too_much(&mut self, place: usize, budget: Option<u64>) {
        let Some((budget, max)) = budget.zip(self.pipeline.settings.max_context_tokens) else {
            return;
        };
        if budget > max {
            let message = format!(
                "{} tokens are fetched, but the context holds {} (`settings.max_context_tokens`)",
                thousands(budget),
                thousands(max)
            );
            let help = "make it smaller: `manage_context_budget` refuses what cannot fit";
            self.warn(place, &["budget_tokens"], &message, help);
        }
    }

    fn guards_nothing(&mut self, place: usize, manage: &ManageContextBudget) {
        let id = self.id(place);
        if !self.fetched[place] {
            let message =
                format!("no `fetch_node_texts` leads to `{id}`, so nothing comes in there");
            let help = "put a `fetch_node_texts` before it";
            self.warn(place, &["action"], &message, help);
        }
        let after = self.flow.after([place]);
        let mut steps = self.steps().iter().zip(after);
        if !steps.any(|(step, is_after)| is_after && matches!(step.action, Action::CallModel(_))) {
            let message = format!("`{id}` leads to no `call_model`, so nobody reads its context");
            self.warn(place, &["action"], &message, "lead it to one");
        }
        let rules = manage.compact_code.iter().flat_map(|code| &code.rules);
        for (index, rule) in rules.enumerate() {
            let Some(key) = &rule.inbox_key else { continue };
            let sends = |step: &Step| match &step.action {
                Action::Send(send) => {
                    send.topic == *key && send.target_step_id == self.steps()[place].id
                }
                _ => false,
            };
            if self.steps().iter().any(sends) {
                continue;
            }
            let key = clipped(key);
            let message = format!("no step sends `{key}` to `{id}`, so this rule never applies");
            let help = format!("add a `send` with `target_step_id: {id}` and `topic: {key}`");
            let path = ["compact_code", "rules", &index.to_string(), "inbox_key"];
            self.warn(place, &path, &message, &help);
        }
    }

    fn never_taken(&mut self, place: usize, target: &str) {
        let after = self.flow.after([place]);
        let mut steps = self.steps().iter().zip(after);
        if !steps.any(|(step, is_after)| is_after && step.id == target) {
            let target = clipped(target);
            let message =
                format!("no run comes to `{target}` after this, so the mail is never taken");
            let help = "send it before, or lead the run there";
            self.warn(place, &["target_step_id"], &message, help);
        }
    }
}
