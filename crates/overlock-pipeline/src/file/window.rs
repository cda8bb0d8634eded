//! Checks that the fixed parts of a call can fit the window of its model.

use overlock_budget::TOKENS_PER_MESSAGE;

use super::explain::thousands;
use super::findings::{Report, clipped, span_of};
use super::flow::Flow;
use super::tree::Node;
use super::{Pipeline, Prompts, ReadOptions};
use crate::actions::{Action, CallModel};

/// Adds up the known maximum sizes of each call and reports those that cannot fit.
pub(super) fn check_windows(
    pipeline: &Pipeline,
    nodes: &[&Node],
    prompts: &Prompts,
    options: &ReadOptions<'_>,
    report: &mut Report<'_>,
) {
    let flow = Flow::of(&pipeline.steps);
    let history = history(pipeline, &flow);
    let steps = pipeline.steps.iter().zip(nodes).zip(history);
    for ((step, node), messages) in steps {
        let Action::CallModel(call) = &step.action else {
            continue;
        };
        let settings = &pipeline.settings;
        let model = call.model.as_deref().or(settings.model.as_deref());
        let Some(model) = model.or(options.model) else {
            continue;
        };
        let Some(measure) = options.measures.measure(model, &fixed_text(call, prompts)) else {
            continue;
        };
        let context = settings
            .max_context_tokens
            .filter(|_| call.shows("context_blocks"));
        let answer = call.max_output_tokens.filter(|_| measure.is_shared);
        let parts = [
            (measure.tokens, "prompt"),
            (messages.saturating_mul(TOKENS_PER_MESSAGE), "history"),
            (context.unwrap_or_default(), "context"),
            (answer.unwrap_or_default(), "answer"),
            (measure.margin, "margin"),
        ];
        let sum = parts
            .iter()
            .fold(0_u64, |sum, (tokens, _)| sum.saturating_add(*tokens));
        if sum <= measure.window {
            continue;
        }
        let parts = parts.iter().filter(|(tokens, _)| *tokens > 0);
        let parts: Vec<String> = parts
            .map(|(tokens, name)| format!("{} ({name})", thousands(*tokens)))
            .collect();
        report.error(
            span_of(node, &["action"]),
            format!(
                "{} = {} tokens, but the window of `{}` has {}",
                parts.join(" + "),
                thousands(sum),
                clipped(model),
                thousands(measure.window),
            ),
            "reduce one of them, or use a model with a larger window",
        );
    }
}

/// The maximum number of messages of history at each step.
fn history(pipeline: &Pipeline, flow: &Flow) -> Vec<u64> {
    let mut messages = vec![0; pipeline.steps.len()];
    for (index, step) in pipeline.steps.iter().enumerate() {
        let Action::LoadHistory(load) = &step.action else {
            continue;
        };
        for (messages, is_after) in messages.iter_mut().zip(flow.after([index])) {
            if is_after {
                *messages = u64::from(load.limit).max(*messages);
            }
        }
    }
    messages
}

/// The text that a call always contains.
fn fixed_text(call: &CallModel, prompts: &Prompts) -> String {
    let mut text = call.fixed(prompts).unwrap_or_default().to_owned();
    for part in call.user_parts.iter().flat_map(|parts| parts.values()) {
        text.push_str(&part.template.replace("{}", ""));
    }
    text
}
