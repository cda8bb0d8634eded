//! Warnings about pipelines that can run, but probably not as intended.

use super::explain::thousands;
use super::findings::{Report, clipped, span_of};
use super::flow::{Flow, always_chooses};
use super::tree::Node;
use super::{Pipeline, Step};
use crate::actions::{Action, ManageContextBudget};

/// Adds warnings about a pipeline without errors.
pub(super) fn add_warnings(pipeline: &Pipeline, nodes: &[&Node], report: &mut Report<'_>) {
    let steps = &pipeline.steps;
    let flow = Flow::of(steps);
    let entry = &pipeline.settings.entry_step_id;
    let entry = steps.iter().position(|step| step.id == *entry);
    let reached = flow.reached(entry);
    let fetching = steps.iter().enumerate();
    let fetching = fetching.filter(|(_, step)| matches!(step.action, Action::FetchNodeTexts(_)));
    let fetched = flow.after(fetching.map(|(index, _)| index));
    let mut warnings = Warnings {
        pipeline,
        nodes,
        flow,
        reached,
        fetched,
        report,
    };
    warnings.never_reached();
    warnings.endless();
    for (index, step) in steps.iter().enumerate() {
        warnings.next_never_taken(index);
        match &step.action {
            Action::FetchNodeTexts(fetch) => warnings.fetches_too_much(index, fetch.budget_tokens),
            Action::ManageContextBudget(manage) => warnings.guards_nothing(index, manage),
            Action::Send(send) => warnings.never_delivered(index, &send.target_step_id),
            _ => {}
        }
    }
}

struct Warnings<'a, 't> {
    pipeline: &'a Pipeline,
    nodes: &'a [&'a Node],
    flow: Flow,
    /// Which steps a run can reach.
    reached: Vec<bool>,
    /// Which steps can follow a step that fetches texts.
    fetched: Vec<bool>,
    report: &'a mut Report<'t>,
}

impl Warnings<'_, '_> {
    fn steps(&self) -> &[Step] {
        &self.pipeline.steps
    }

    fn warn(&mut self, index: usize, path: &[&str], message: &str, help: &str) {
        let span = span_of(self.nodes[index], path);
        self.report.warning(span, message, help);
    }

    fn id(&self, index: usize) -> String {
        clipped(&self.steps()[index].id)
    }

    fn never_reached(&mut self) {
        for index in 0..self.steps().len() {
            if !self.reached[index] {
                let message = format!("step `{}` is never reached", self.id(index));
                let help = "name it in a step that is reached, or remove it";
                self.warn(index, &["id"], &message, help);
            }
        }
    }

    /// Every loop needs a `loop_guard`, the only action that ends one.
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
                .map(|index| self.id(*index))
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

    fn next_never_taken(&mut self, index: usize) {
        let step = &self.steps()[index];
        let name = step.action.name();
        let is_route = matches!(step.action, Action::Route(_));
        if step.next.is_some() && always_chooses(&step.action) {
            let message = format!("`next` is never used: `{name}` always chooses the next step");
            self.warn(index, &["next"], &message, "remove it");
        } else if step.end && (is_route || always_chooses(&step.action)) {
            let message = format!("`end` is ignored: `{name}` always chooses the next step");
            self.warn(index, &["end"], &message, "remove it");
        }
    }

    fn fetches_too_much(&mut self, index: usize, budget: Option<u64>) {
        let Some((budget, max)) = budget.zip(self.pipeline.settings.max_context_tokens) else {
            return;
        };
        if budget > max {
            let message = format!(
                "{} tokens are fetched, but the context holds {} (`settings.max_context_tokens`)",
                thousands(budget),
                thousands(max)
            );
            let help = "lower it: `manage_context_budget` refuses what cannot fit";
            self.warn(index, &["budget_tokens"], &message, help);
        }
    }

    fn guards_nothing(&mut self, index: usize, manage: &ManageContextBudget) {
        let id = self.id(index);
        if !self.fetched[index] {
            let message =
                format!("no `fetch_node_texts` runs before `{id}`, so it has no texts to add");
            let help = "add a `fetch_node_texts` before it";
            self.warn(index, &["action"], &message, help);
        }
        let after = self.flow.after([index]);
        let mut steps = self.steps().iter().zip(after);
        if !steps.any(|(step, is_after)| is_after && matches!(step.action, Action::CallModel(_))) {
            let message =
                format!("no `call_model` runs after `{id}`, so its context is never used");
            self.warn(index, &["action"], &message, "add a `call_model` after it");
        }
        let rules = manage.compact_code.iter().flat_map(|code| &code.rules);
        for (rule_index, rule) in rules.enumerate() {
            let Some(key) = &rule.inbox_key else { continue };
            let sends = |step: &Step| match &step.action {
                Action::Send(send) => {
                    send.topic == *key && send.target_step_id == self.steps()[index].id
                }
                _ => false,
            };
            if self.steps().iter().any(sends) {
                continue;
            }
            let key = clipped(key);
            let message = format!("no step sends `{key}` to `{id}`, so this rule never applies");
            let help = format!("add a `send` with `target_step_id: {id}` and `topic: {key}`");
            let path = [
                "compact_code",
                "rules",
                &rule_index.to_string(),
                "inbox_key",
            ];
            self.warn(index, &path, &message, &help);
        }
    }

    fn never_delivered(&mut self, index: usize, target: &str) {
        let after = self.flow.after([index]);
        let mut steps = self.steps().iter().zip(after);
        if !steps.any(|(step, is_after)| is_after && step.id == target) {
            let target = clipped(target);
            let message =
                format!("`{target}` never runs after this step, so the mail is never delivered");
            let help = "send it earlier, or route the run to that step";
            self.warn(index, &["target_step_id"], &message, help);
        }
    }
}
