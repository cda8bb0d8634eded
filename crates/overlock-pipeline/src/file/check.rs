//! Finds all problems of a file at once.
//!
//! Each part is validated against its own schema first, so that errors have exact positions. The
//! valid parts are then read and checked together. Errors that only follow from other errors are
//! not reported.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde_json::{Map, Value};

use super::explain::{Fault, Spot, node_at, validate};
use super::findings::{Findings, Report, clipped, span_of};
use super::schema::{Part, edge_types, part_schema};
use super::tree::{self, Entry, Kind, Node, Span};
use super::warnings::add_warnings;
use super::window::check_windows;
use super::{Checked, Pipeline, Prompts, ReadOptions, Step};
use crate::actions::Action;
use crate::settings::Settings;
use crate::source::Source;
use crate::suggest::{listed, meant, nearest};

/// Reads a file and checks all of it.
///
/// A pipeline without a name gets that of its file, `name`.
pub fn read(name: &str, text: &str, options: &ReadOptions<'_>) -> Checked {
    let mut report = Report::new(text);
    let mut prompts = Prompts::new();
    let root = tree::parse(text, &mut report);
    let pipeline = root.as_ref().and_then(|root| {
        let entry = pipeline_entry(root, &mut report)?;
        let mut checker = Checker {
            key: entry.key_span.clone(),
            body: &entry.value,
            options,
            report: &mut report,
            settings: Map::new(),
            faulty: HashSet::new(),
        };
        checker.pipeline(name, &mut prompts)
    });
    if root.is_none() && !report.has_errors() {
        report.error(0..0, NO_PIPELINE, BEGIN_PIPELINE);
    }
    Checked {
        pipeline: pipeline.filter(|_| !report.has_errors()),
        prompts,
        problems: report.into_problems(),
    }
}

const NO_PIPELINE: &str = "no pipeline in this file";
const BEGIN_PIPELINE: &str = "begin with `pipeline:`, and put `settings:` and `steps:` under it";

/// The value of `pipeline`.
fn pipeline_entry<'n>(root: &'n Node, report: &mut Report<'_>) -> Option<&'n Entry> {
    for entry in root.entries() {
        if entry.key == "pipeline" {
            continue;
        }
        let help = if nearest(&entry.key, ["pipeline"]).is_some() {
            "did you mean `pipeline`?"
        } else {
            "put everything under `pipeline:`, indented by two spaces"
        };
        report.error(
            entry.key_span.clone(),
            format!("unknown key `{}`", clipped(&entry.key)),
            help,
        );
    }
    if root.entries().is_empty() {
        report.error(root.mark(), NO_PIPELINE, BEGIN_PIPELINE);
    }
    let entry = root.entry("pipeline")?;
    if matches!(entry.value.kind, Kind::Map(_)) {
        return Some(entry);
    }
    if !matches!(entry.value.kind, Kind::Broken) {
        report.error(
            entry.key_span.clone(),
            "`pipeline` is empty or not a map",
            "put `settings:` and `steps:` under it, indented by two spaces",
        );
    }
    None
}

/// A step as far as it could be read.
struct Draft<'n> {
    node: &'n Node,
    id: Option<&'n str>,
    action: Option<Action>,
    /// The invalid values that were left out so that the rest could be read.
    left_out: Vec<Vec<String>>,
}

struct Checker<'a, 'n, 't> {
    /// The position of the key `pipeline`.
    key: Span,
    body: &'n Node,
    options: &'a ReadOptions<'a>,
    report: &'a mut Report<'t>,
    /// The settings of the file, overridden by those given for the run.
    settings: Map<String, Value>,
    /// The settings for which an error was already reported.
    faulty: HashSet<String>,
}

impl<'n> Checker<'_, 'n, '_> {
    fn pipeline(&mut self, file_name: &str, prompts: &mut Prompts) -> Option<Pipeline> {
        let key = self.key.clone();
        let envelope = validate(Part::Envelope, &self.body.to_value(), Some(self.body));
        self.report_faults(envelope.faults, self.body, &key);
        let settings = self.read_settings();
        let drafts = self.drafts();
        let ids = self.ids(&drafts);
        for draft in &drafts {
            self.check_targets(draft, &ids);
            self.check_step(draft, prompts);
        }
        self.check_entry(&drafts, &ids);
        self.check_unknown_settings(&drafts);
        let name = self.body.get("name").and_then(Node::text);
        let settings = settings?;
        let nodes: Vec<&Node> = drafts.iter().map(|draft| draft.node).collect();
        let steps: Option<Vec<Step>> = drafts.into_iter().map(Draft::into_step).collect();
        let pipeline = Pipeline {
            name: name.map_or_else(|| stem(file_name), str::to_owned),
            settings,
            steps: steps?,
        };
        // Warnings about the flow are only useful once there are no errors in it.
        let is_sound = !self.report.has_errors();
        check_windows(&pipeline, &nodes, prompts, self.options, self.report);
        if is_sound {
            add_warnings(&pipeline, &nodes, self.report);
        }
        Some(pipeline)
    }

    /// Reports the faults of a part. Errors about missing keys point to `key`.
    fn report_faults(&mut self, faults: Vec<Fault>, node: &Node, key: &Span) {
        for fault in faults {
            let span = span_of_fault(node, key, &fault);
            self.report.error(span, fault.message, fault.help);
        }
    }

    fn settings_node(&self) -> Option<&'n Node> {
        self.body.get("settings")
    }

    fn read_settings(&mut self) -> Option<Settings> {
        let node = self.settings_node();
        let from_file = node.map(Node::to_value).unwrap_or_default();
        let Value::Object(mut settings) = from_file else {
            return None;
        };
        for (name, value) in self.options.settings {
            settings.insert(name.clone(), value.clone());
        }
        self.settings = settings;
        let value = Value::Object(self.settings.clone());
        let validation = validate(Part::Settings, &value, node);
        for fault in validation.faults {
            let name = fault.path.first().cloned();
            self.faulty.extend(name.clone());
            if let Some(name) = name.filter(|name| self.options.settings.contains_key(name)) {
                self.at_setting(&name, &fault.message, &fault.help);
            } else {
                let entry = self.body.entry("settings")?;
                self.report_faults(vec![fault], &entry.value, &entry.key_span);
            }
        }
        if let Some(Value::String(counter)) = self.settings.get("token_counter")
            && !counter.is_empty()
            && !self.options.measures.is_counter(counter)
        {
            let message = format!("unknown token counter `{}`", clipped(counter));
            let help = "remove it to use the model's own, or use one such as `o200k_base` or `approx:chars/4`";
            self.at_setting("token_counter", &message, help);
        }
        if !validation.is_valid {
            return None;
        }
        let span = self.body.entry("settings")?.key_span.clone();
        let unreadable = |error: serde_json::Error| format!("`settings` cannot be read: {error}");
        serde_json::from_value(value)
            .map_err(|error| self.report.error(span, unreadable(error), ""))
            .ok()
    }

    /// Reports an error about a setting at its origin: the file or `--set`.
    fn at_setting(&mut self, name: &str, message: &str, help: &str) {
        if self.options.settings.contains_key(name) {
            self.report
                .error_in_option(format!("`--set {}`: {message}", clipped(name)), help);
            return;
        }
        let Some(node) = self.settings_node() else {
            return;
        };
        self.report.error(span_of(node, &[name]), message, help);
    }

    fn drafts(&mut self) -> Vec<Draft<'n>> {
        let Some(Kind::List(items)) = self.body.get("steps").map(|node| &node.kind) else {
            return Vec::new();
        };
        let drafts = items.iter().filter_map(|node| self.draft(node));
        drafts.collect()
    }

    fn draft(&mut self, node: &'n Node) -> Option<Draft<'n>> {
        match node.kind {
            Kind::Map(_) => {}
            Kind::Broken => return None,
            _ => {
                self.report.error(
                    node.mark(),
                    "a step is a map",
                    "begin with `- id: …`, and put `action: …` under it",
                );
                return None;
            }
        }
        let id = node.get("id").and_then(Node::text);
        let mut left_out = Vec::new();
        let action = self.action(node, &mut left_out);
        Some(Draft {
            node,
            id,
            action,
            left_out,
        })
    }

    fn action(&mut self, node: &Node, left_out: &mut Vec<Vec<String>>) -> Option<Action> {
        let Some(entry) = node.entry("action") else {
            let mut entries = node.entries().iter();
            let misspelt = entries.find(|entry| nearest(&entry.key, ["action"]).is_some());
            let (span, message, help) = match misspelt {
                Some(entry) => (
                    entry.key_span.clone(),
                    format!("a step has no `{}`", clipped(&entry.key)),
                    "did you mean `action`?".to_owned(),
                ),
                None => (
                    node.mark(),
                    "the step has no `action`".to_owned(),
                    format!("add `action: …`: one of {}", listed(Action::NAMES)),
                ),
            };
            self.report.error(span, message, help);
            return None;
        };
        let span = span_of(node, &["action"]);
        if matches!(entry.value.kind, Kind::Broken) {
            return None;
        }
        let Some(written) = entry.value.text() else {
            let help = meant("", Action::NAMES);
            self.report
                .error(span, "`action` must be the name of an action", help);
            return None;
        };
        let Some(name) = Action::NAMES.iter().find(|name| **name == written) else {
            let message = format!("unknown action `{}`", clipped(written));
            self.report
                .error(span, message, meant(written, Action::NAMES));
            return None;
        };
        let value = node.to_value();
        let validation = validate(Part::Step(name), &value, Some(node));
        left_out.extend(validation.faults.iter().map(|fault| fault.path.clone()));
        self.report_faults(validation.faults, node, &span);
        if !validation.is_valid {
            return read_without(name, &value, left_out);
        }
        let unreadable = |error: serde_json::Error| format!("`{name}` cannot be read: {error}");
        Action::read(name, value)?
            .map_err(|error| self.report.error(span, unreadable(error), ""))
            .ok()
    }

    /// The ids of the steps. Reports duplicates.
    fn ids(&mut self, drafts: &[Draft<'n>]) -> Vec<&'n str> {
        let mut first: HashMap<&str, Span> = HashMap::new();
        let mut ids = Vec::new();
        for draft in drafts {
            let Some(id) = draft.id.filter(|id| !id.is_empty()) else {
                continue;
            };
            let span = span_of(draft.node, &["id"]);
            if let Some(other) = first.get(id) {
                let line = self.report.line(other.start);
                self.report.error(
                    span,
                    format!(
                        "duplicate step id `{}` (first defined in line {line})",
                        clipped(id)
                    ),
                    "give each step a different id",
                );
                continue;
            }
            first.insert(id, span);
            ids.push(id);
        }
        ids
    }

    /// Checks that the steps a step names exist. A step that could not be read is checked by its
    /// keys.
    fn check_targets(&mut self, draft: &Draft<'n>, ids: &[&str]) {
        let named_step = |key: &str| Some((vec![key.to_owned()], draft.node.get(key)?.text()?));
        let targets: Vec<(Vec<String>, &str)> = if let Some(action) = &draft.action {
            let targets = action.targets().into_iter();
            let targets = targets.map(|target| (target.path.0, target.step));
            targets.chain(named_step("next")).collect()
        } else {
            let keys = draft.node.entries().iter().map(|entry| entry.key.as_str());
            let is_transition =
                |key: &&str| key.starts_with("on_") || matches!(*key, "next" | "target_step_id");
            keys.filter(is_transition).filter_map(named_step).collect()
        };
        for (path, step) in targets {
            if ids.contains(&step) || step.is_empty() {
                continue;
            }
            let span = span_of(draft.node, &path);
            let message = format!("unknown step `{}`", clipped(step));
            let help = (!self.report.is_full()).then(|| meant(step, ids));
            let help = help.unwrap_or_default();
            self.report.error(span, message, help);
        }
    }

    fn check_step(&mut self, draft: &Draft<'_>, prompts: &mut Prompts) {
        let node = draft.node;
        if ends_run(node) && node.get("next").is_some() {
            self.report.error(
                span_of(node, &["end"]),
                "`end: true` and `next` cannot be combined",
                "remove one of them",
            );
        }
        let Some(action) = &draft.action else { return };
        for (path, source) in action.sources() {
            if let Err(error) = Source::read(source) {
                let span = span_of(node, &path.0);
                self.report.error(span, error.to_string(), error.hint());
            }
        }
        let mut findings = Findings::of(node, &draft.left_out);
        action.check(&mut findings);
        findings.move_to(self.report);
        let Some(Kind::Map(_)) = self.settings_node().map(|node| &node.kind) else {
            return;
        };
        for (path, name) in action.settings() {
            self.check_setting(node, &path.0, name, "a whole number", |value| {
                value.as_u64().map(|_| ()).ok_or(String::new())
            });
        }
        for (path, name) in action.list_settings() {
            self.check_setting(node, &path.0, name, "a list of edge types", are_edge_types);
        }
        self.check_needs(node, action);
        if let Action::CallModel(call) = action
            && let Some(key) = &call.prompt_key
        {
            self.check_prompt(node, key, prompts);
        }
    }

    /// Checks a setting that a step names. The error of `is_valid` is the help text.
    fn check_setting(
        &mut self,
        node: &Node,
        path: &[String],
        name: &str,
        what: &str,
        is_valid: impl Fn(&Value) -> Result<(), String>,
    ) {
        let Some(value) = self.settings.get(name) else {
            let names: Vec<&str> = self.settings.keys().map(String::as_str).collect();
            // A known setting that is missing needs no suggestion.
            let is_known = part_schema(Part::Settings).keys(&[]).contains(&name);
            let help = match nearest(name, names) {
                Some(name) if !is_known => format!("did you mean `{name}`?"),
                _ => format!("add `{}: …` under `settings`", clipped(name)),
            };
            let message = format!("`settings.{}` is missing", clipped(name));
            self.report.error(span_of(node, path), message, help);
            return;
        };
        let Err(help) = is_valid(value) else { return };
        if self.faulty.contains(name) {
            return;
        }
        let message = format!("`settings.{}` must be {what}", clipped(name));
        self.at_setting(name, &message, &help);
    }

    /// Checks the settings that an action requires.
    fn check_needs(&mut self, node: &Node, action: &Action) {
        let has = |name: &str| self.settings.contains_key(name);
        let has_budget = has("max_context_tokens");
        let (message, help) = match action {
            Action::ManageContextBudget(_) if !has_budget => (
                "`manage_context_budget` needs `settings.max_context_tokens`",
                "add `max_context_tokens: …` under `settings`: the maximum tokens of the context",
            ),
            Action::FetchNodeTexts(fetch)
                if !has_budget && fetch.budget_tokens.is_none() && fetch.max_chars.is_none() =>
            {
                (
                    "`fetch_node_texts` has no limit",
                    "add `budget_tokens: …` to the step, or `max_context_tokens: …` to `settings`",
                )
            }
            Action::CallModel(call)
                if call.model.is_none() && !has("model") && self.options.model.is_none() =>
            {
                (
                    "no model is set",
                    "add `model: …` under `settings` or to the step",
                )
            }
            _ => return,
        };
        self.report.error(span_of(node, &["action"]), message, help);
    }

    fn check_prompt(&mut self, node: &Node, key: &str, prompts: &mut Prompts) {
        if prompts.contains_key(key) {
            return;
        }
        let span = span_of(node, &["prompt_key"]);
        if !is_inside_folder(key) {
            self.report.error(
                span,
                format!("`{}` is outside the prompts folder", clipped(key)),
                "name a file in that folder, without `..` and without `.txt`",
            );
            return;
        }
        let folder = self.settings.get("prompts_dir").and_then(Value::as_str);
        let folder = folder.unwrap_or("prompts");
        match (self.options.prompt)(folder, key) {
            Ok(text) => {
                prompts.insert(key.to_owned(), text);
            }
            Err(reason) => self.report.error(
                span,
                format!("the prompt `{}` cannot be read: {reason}", clipped(key)),
                format!("expected in `{}/{}.txt`", clipped(folder), clipped(key)),
            ),
        }
    }

    fn check_entry(&mut self, drafts: &[Draft<'_>], ids: &[&str]) {
        let Some(Value::String(entry)) = self.settings.get("entry_step_id") else {
            return;
        };
        // Without any readable step the entry cannot be checked.
        if ids.contains(&entry.as_str()) || drafts.is_empty() {
            return;
        }
        let message = format!("unknown step `{}`", clipped(entry));
        let help = meant(entry, ids);
        self.at_setting("entry_step_id", &message, &help);
    }

    /// Reports settings that nothing uses.
    fn check_unknown_settings(&mut self, drafts: &[Draft<'_>]) {
        if drafts.is_empty() {
            return;
        }
        let settings = part_schema(Part::Settings);
        let mut names = settings.keys(&[]);
        let keys = drafts.iter().flat_map(|draft| draft.node.entries());
        let uses = keys.filter(|entry| entry.key.ends_with("_from_settings"));
        names.extend(uses.filter_map(|entry| entry.value.text()));
        let unknown: Vec<String> = self
            .settings
            .keys()
            .filter(|name| !names.contains(&name.as_str()))
            .cloned()
            .collect();
        for name in unknown {
            let message = format!("no step uses the setting `{}`", clipped(&name));
            let all = names.iter().copied().filter(|_| !self.report.is_full());
            let help = match nearest(&name, all) {
                Some(name) => format!("did you mean `{name}`?"),
                None => "remove it, or use it in a step with `…_from_settings`".to_owned(),
            };
            if self.options.settings.contains_key(&name) {
                self.at_setting(&name, &message, &help);
                continue;
            }
            let entry = self.settings_node().and_then(|node| node.entry(&name));
            if let Some(entry) = entry {
                self.report.error(entry.key_span.clone(), message, help);
            }
        }
    }
}

impl Draft<'_> {
    fn into_step(self) -> Option<Step> {
        if !self.left_out.is_empty() {
            return None;
        }
        Some(Step {
            id: self.id?.to_owned(),
            action: self.action?,
            next: (self.node.get("next").and_then(Node::text)).map(str::to_owned),
            end: ends_run(self.node),
        })
    }
}

fn ends_run(step: &Node) -> bool {
    step.get("end").map(Node::to_value) == Some(Value::Bool(true))
}

/// Reads an action without its invalid values, or with empty texts in their place.
fn read_without(name: &str, value: &Value, left_out: &[Vec<String>]) -> Option<Action> {
    let without = |replacement: Option<&Value>| {
        let mut value = value.clone();
        for path in left_out {
            let (last, parent) = path.split_last()?;
            let parent = parent
                .iter()
                .try_fold(&mut value, |value, key| match value {
                    Value::Object(members) => members.get_mut(key),
                    Value::Array(items) => items.get_mut(key.parse::<usize>().ok()?),
                    _ => None,
                });
            if let Some(Value::Object(members)) = parent {
                match replacement {
                    Some(replacement) => members.insert(last.clone(), replacement.clone()),
                    None => members.remove(last),
                };
            }
        }
        Action::read(name, value)?.ok()
    };
    without(None).or_else(|| without(Some(&Value::String(String::new()))))
}

/// The position of a fault. `key` is the position of the part's own key.
fn span_of_fault(node: &Node, key: &Span, fault: &Fault) -> Span {
    match fault.spot {
        Spot::Missing if fault.path.is_empty() => key.clone(),
        Spot::Value | Spot::Missing => span_of(node, &fault.path),
        Spot::Key => {
            let path = fault.path.split_last();
            let entry = path.and_then(|(key, parent)| node_at(node, parent)?.entry(key));
            entry.map_or_else(|| node.mark(), |entry| entry.key_span.clone())
        }
    }
}

/// Checks that a value is a list of edge types; the error is the help text.
fn are_edge_types(value: &Value) -> Result<(), String> {
    let kinds = edge_types();
    let Some(items) = value.as_array().filter(|items| !items.is_empty()) else {
        return Err(format!("such as `[{}]`", kinds[..2].join(", ")));
    };
    let mut names = items.iter().map(|item| item.as_str().unwrap_or_default());
    let unknown = names.find(|name| !kinds.contains(name));
    unknown.map_or(Ok(()), |name| Err(meant(name, &kinds)))
}

/// Whether a prompt key names a file inside the prompts folder.
fn is_inside_folder(key: &str) -> bool {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    let is_strange = |character: char| character.is_control() || character == ':';
    key.split(['/', '\\']).all(is_plain) && !key.contains(is_strange)
}

/// The name of a file without folder and extension.
fn stem(file_name: &str) -> String {
    let stem = Path::new(file_name).file_stem();
    let stem = stem.and_then(|stem| stem.to_str());
    stem.unwrap_or("pipeline").to_owned()
}
