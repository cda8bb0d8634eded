//! Draws the steps of a pipeline, for a page and for a terminal.
//!
//! Names come from the file and are untrusted: special characters are escaped in a graph, and
//! control characters in a drawing.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use super::findings::{clipped, visible};
use super::{Pipeline, Step};
use crate::actions::Action;

/// The steps as a Mermaid graph. Transitions have their names, and mail dotted lines.
pub fn graph(pipeline: &Pipeline) -> String {
    let indices: HashMap<&str, usize> = pipeline
        .steps
        .iter()
        .enumerate()
        .map(|(index, step)| (step.id.as_str(), index))
        .collect();
    let mut graph = "flowchart TD\n".to_owned();
    let mut line = |text: String| {
        graph.push_str("    ");
        graph.push_str(&text);
        graph.push('\n');
    };
    line("start([\"start\"])".to_owned());
    for (index, step) in pipeline.steps.iter().enumerate() {
        let (open, close) = if chooses(step) {
            ("{{", "}}")
        } else {
            ("[", "]")
        };
        let (id, action) = (escaped(&step.id), escaped(step.action.name()));
        line(format!(
            "s{index}{open}\"{id}<br/><small>{action}</small>\"{close}"
        ));
    }
    line("finish([\"end\"])".to_owned());
    if let Some(index) = indices.get(pipeline.settings.entry_step_id.as_str()) {
        line(format!("start --> s{index}"));
    }
    for (index, step) in pipeline.steps.iter().enumerate() {
        let transitions = step.transitions();
        if transitions.is_empty() {
            line(format!("s{index} --> finish"));
        }
        for (name, to) in transitions {
            let Some(to) = indices.get(to) else { continue };
            if chooses(step) && !name.trim().is_empty() {
                line(format!("s{index} -->|\"{}\"| s{to}", escaped(&name)));
            } else {
                line(format!("s{index} --> s{to}"));
            }
        }
        if let Action::Send(send) = &step.action
            && let Some(to) = indices.get(send.target_step_id.as_str())
        {
            line(format!("s{index} -.->|\"{}\"| s{to}", escaped(&send.topic)));
        }
    }
    graph
}

/// The steps as lines of text, in the order in which a run reaches them.
///
/// ```text
/// search (search_nodes) → fetch
/// fetch (fetch_node_texts) → budget
/// budget (manage_context_budget)
///   on_ok → answer
///   on_over → shorten
/// answer (call_model) → end
/// shorten (call_model) → budget ↺
/// ```
///
/// `↺` marks a transition to a step above.
pub fn drawing(pipeline: &Pipeline) -> String {
    let steps: HashMap<&str, &Step> = pipeline
        .steps
        .iter()
        .map(|step| (step.id.as_str(), step))
        .collect();
    let mut drawing = String::new();
    let mut drawn = HashSet::new();
    let mut waiting = vec![pipeline.settings.entry_step_id.as_str()];
    while let Some(id) = waiting.pop() {
        let Some(step) = steps.get(id) else { continue };
        if !drawn.insert(id) {
            continue;
        }
        draw(step, &drawn, &mut drawing);
        // Reversed, because the last one is taken first.
        waiting.extend(step.transitions().into_iter().rev().map(|(_, to)| to));
    }
    let left = pipeline.steps.iter();
    let left: Vec<&Step> = left
        .filter(|step| !drawn.contains(step.id.as_str()))
        .collect();
    if !left.is_empty() {
        drawing.push_str("\nnever reached:\n");
        for step in left {
            draw(step, &drawn, &mut drawing);
        }
    }
    drawing
}

fn draw(step: &Step, drawn: &HashSet<&str>, drawing: &mut String) {
    let name = |id: &str| visible(&clipped(id));
    let to = |id: &str| {
        let back = if drawn.contains(id) { " ↺" } else { "" };
        format!("→ {}{back}", name(id))
    };
    let _ = write!(drawing, "{} ({})", name(&step.id), step.action.name());
    match step.transitions().as_slice() {
        [] => drawing.push_str(" → end\n"),
        transitions if chooses(step) => {
            drawing.push('\n');
            for (label, id) in transitions {
                let _ = writeln!(drawing, "  {} {}", name(label), to(id));
            }
        }
        transitions => {
            for (_, id) in transitions {
                let _ = writeln!(drawing, " {}", to(id));
            }
        }
    }
    if let Action::Send(send) = &step.action {
        let (topic, target) = (name(&send.topic), name(&send.target_step_id));
        let _ = writeln!(drawing, "  mail `{topic}` for {target}");
    }
}

/// Whether the action of a step can choose the next step.
fn chooses(step: &Step) -> bool {
    let targets = step.action.targets();
    targets.iter().any(|target| !target.is_mail)
}

/// A text with everything escaped that has a meaning in Mermaid.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in clipped(text).chars() {
        match character {
            _ if character.is_alphanumeric() => escaped.push(character),
            ' ' | '_' | '-' | '.' => escaped.push(character),
            _ if character.is_control() => escaped.push(' '),
            _ => {
                let _ = write!(escaped, "#{};", u32::from(character));
            }
        }
    }
    escaped
}
