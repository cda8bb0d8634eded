//! Draws the steps of a pipeline, for a page and for a terminal.
//!
//! Names come from the file and are not to be believed: in a graph every character that could mean
//! something is written as its number, in a drawing every one that would move the cursor.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use super::findings::{clipped, visible};
use super::flow::{Way, ways};
use super::{Pipeline, Step};
use crate::actions::Action;

/// The steps as a Mermaid graph.
///
/// Ways that an action chooses carry its word for them, mail goes along dotted lines.
pub fn graph(pipeline: &Pipeline) -> String {
    let places: HashMap<&str, usize> = pipeline
        .steps
        .iter()
        .enumerate()
        .map(|(place, step)| (step.id.as_str(), place))
        .collect();
    let mut graph = "flowchart TD\n".to_owned();
    let mut line = |text: String| {
        graph.push_str("    ");
        graph.push_str(&text);
        graph.push('\n');
    };
    line("start([\"start\"])".to_owned());
    for (place, step) in pipeline.steps.iter().enumerate() {
        let (open, close) = if step.action.targets().iter().any(|target| !target.is_mail) {
            ("{{", "}}")
        } else {
            ("[", "]")
        };
        let (id, action) = (escaped(&step.id), escaped(step.action.name()));
        line(format!(
            "s{place}{open}\"{id}<br/><small>{action}</small>\"{close}"
        ));
    }
    line("finish([\"end\"])".to_owned());
    if let Some(place) = places.get(pipeline.settings.entry_step_id.as_str()) {
        line(format!("start --> s{place}"));
    }
    for (place, step) in pipeline.steps.iter().enumerate() {
        let ways = ways(step);
        if ways.is_empty() {
            line(format!("s{place} --> finish"));
        }
        for Way { label, to } in ways {
            let Some(to) = places.get(to) else { continue };
            match label {
                Some(label) if !label.trim().is_empty() => {
                    line(format!("s{place} -->|\"{}\"| s{to}", escaped(&label)));
                }
                _ => line(format!("s{place} --> s{to}")),
            }
        }
        if let Action::Send(send) = &step.action
            && let Some(to) = places.get(send.target_step_id.as_str())
        {
            line(format!("s{place} -.->|\"{}\"| s{to}", escaped(&send.topic)));
        }
    }
    graph
}

/// The steps as lines of text, in the order in which a run comes to them.
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
/// `↺` marks the way back to a step that stands above.
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
        // The first way is followed first, so it goes on top.
        waiting.extend(ways(step).iter().rev().map(|way| way.to));
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
    let ways = ways(step);
    match ways.as_slice() {
        [
            Way {
                label: None,
                to: id,
            },
        ] => {
            let _ = write!(drawing, " {}", to(id));
        }
        [] => drawing.push_str(" → end"),
        _ => {}
    }
    drawing.push('\n');
    for Way { label, to: id } in &ways {
        if let Some(label) = label {
            let _ = writeln!(drawing, "  {} {}", name(label), to(id));
        }
    }
    if let Action::Send(send) = &step.action {
        let (topic, target) = (name(&send.topic), name(&send.target_step_id));
        let _ = writeln!(drawing, "  mail `{topic}` for {target}");
    }
}

/// A text in which Mermaid finds nothing but the text.
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
