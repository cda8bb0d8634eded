//! Finds everything that is wrong with a file, in one go.
//!
//! Each part is held against its own schema first, so that a mistake is told where it stands; what
//! is right is then read, and looked at together. What follows from a mistake that was told is not
//! told again.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::doubts::doubts;
use super::explain::{Fault, Spot, hold, within};
use super::findings::{Findings, Report, clipped, span_of};
use super::schema::{Part, edge_types, judge};
use super::tree::{self, Entry, Kind, Node, Span};
use super::window::check_windows;
use super::{Checked, Pipeline, Prompts, ReadOptions, Step};
use crate::actions::Action;
use crate::settings::Settings;
use crate::source::Source;
use crate::suggest::{meant, nearest};

/// Reads a file and checks all of it.
///
/// The name is that of the file; a pipeline without a name of its own is called by it.
pub fn read(name: &str, text: &str, options: &ReadOptions<'_>) -> Checked {
    let mut report = Report::new(text);
    let mut prompts = Prompts::new();
    let root = tree::parse(text, &mut report);
    let pipeline = root.as_ref().and_then(|root| {
        let entry = body(root, &mut report)?;
        let mut check = Check {
            key: entry.key_span.clone(),
            body: &entry.value,
            options,
            report: &mut report,
            settings: Map::new(),
            settings_node: None,
            faulty: HashSet::new(),
        };
        check.pipeline(name, &mut prompts)
    });
    if root.is_none() && !report.has_errors() {
        no_pipeline(0..0, &mut report);
    }
    Checked {
        pipeline: pipeline.filter(|_| !report.has_errors()),
        prompts,
        problems: report.into_problems(),
    }
}

fn no_pipeline(span: Span, report: &mut Report<'_>) {
    report.error(
        span,
        "there is no pipeline in this file",
        "begin with `pipeline:`, and put `settings:` and `steps:` under it",
    );
}

/// What stands under `pipeline`.
fn body<'n>(root: &'n Node, report: &mut Report<'_>) -> Option<&'n Entry> {
    for entry in root.entries() {
        if entry.key == "pipeline" {
            continue;
        }
        let help = if nearest(&entry.key, ["pipeline"]).is_some() {
            "did you mean `pipeline`?"
        } else {
            "everything stands under `pipeline:`, with two spaces before it"
        };
        report.error(
            entry.key_span.clone(),
            format!("`{}` is not `pipeline`", clipped(&entry.key)),
            help,
        );
    }
    if root.entries().is_empty() {
        no_pipeline(root.mark(), report);
    }
    let entry = root.entry("pipeline")?;
    if matches!(entry.value.kind, Kind::Map(_)) {
        return Some(entry);
    }
    if !matches!(entry.value.kind, Kind::Broken) {
        report.error(
            entry.key_span.clone(),
            "`pipeline` is empty, or no map",
            "put `settings:` and `steps:` under it, with two spaces before them",
        );
    }
    None
}

/// A step as far as it could be read.
struct Draft<'n> {
    node: &'n Node,
    id: Option<&'n str>,
    action: Option<Action>,
    /// What had to be left out of it so that the rest could be read.
    left_out: Vec<Vec<String>>,
}

struct Check<'a, 'n, 't> {
    /// Where `pipeline` stands.
    key: Span,
    body: &'n Node,
    options: &'a ReadOptions<'a>,
    report: &'a mut Report<'t>,
    /// The settings of the file, with those from outside over them.
    settings: Map<String, Value>,
    settings_node: Option<&'n Node>,
    /// The settings that were complained about already.
    faulty: HashSet<String>,
}

impl<'n> Check<'_, 'n, '_> {
    fn pipeline(&mut self, file_name: &str, prompts: &mut Prompts) -> Option<Pipeline> {
        let key = self.key.clone();
        self.hold(Part::Envelope, &self.body.to_value(), self.body, &key);
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
        let steps: Option<Vec<Step>> = drafts.into_iter().map(Draft::finished).collect();
        let pipeline = Pipeline {
            name: name.map_or_else(|| stem(file_name), str::to_owned),
            settings,
            steps: steps?,
        };
        // Ways that lead nowhere say nothing about what is meant.
        let is_sound = !self.report.has_errors();
        check_windows(&pipeline, &nodes, prompts, self.options, self.report);
        if is_sound {
            doubts(&pipeline, &nodes, self.report);
        }
        Some(pipeline)
    }

    /// Holds a part against its schema; whether it is as it must be. What it lacks is told at `key`.
    fn hold(&mut self, part: Part, value: &Value, node: &Node, key: &Span) -> bool {
        let verdict = hold(part, value, Some(node));
        for fault in verdict.faults {
            let span = spot(node, key, &fault);
            self.report.error(span, fault.message, fault.help);
        }
        verdict.is_right
    }

    fn read_settings(&mut self) -> Option<Settings> {
        let node = self.body.get("settings");
        self.settings_node = node;
        let from_file = node.map(Node::to_value).unwrap_or_default();
        let Value::Object(mut settings) = from_file else {
            return None;
        };
        for (name, value) in self.options.settings {
            settings.insert(name.clone(), value.clone());
        }
        self.settings = settings;
        let value = Value::Object(self.settings.clone());
        let verdict = hold(Part::Settings, &value, node);
        for fault in verdict.faults {
            let (Spot::Key(path) | Spot::Value(path) | Spot::Missing(path)) = &fault.spot;
            self.faulty.extend(path.first().cloned());
            match path.first() {
                Some(name) if self.options.settings.contains_key(name) => {
                    self.at_setting(name, &fault.message, &fault.help);
                }
                _ => {
                    let entry = self.body.entry("settings")?;
                    let span = spot(&entry.value, &entry.key_span, &fault);
                    self.report.error(span, fault.message, fault.help);
                }
            }
        }
        if let Some(Value::String(counter)) = self.settings.get("token_counter")
            && !counter.is_empty()
            && !self.options.measures.is_counter(counter)
        {
            let message = format!("no counter is called `{}`", clipped(counter));
            let help = "leave it out for the model's own, or name one such as `o200k_base` or `approx:chars/4`";
            self.at_setting("token_counter", &message, help);
        }
        if !verdict.is_right {
            return None;
        }
        match serde_json::from_value(value) {
            Ok(settings) => Some(settings),
            Err(error) => {
                let span = self.body.entry("settings")?.key_span.clone();
                self.report
                    .error(span, format!("`settings` cannot be read: {error}"), "");
                None
            }
        }
    }

    /// Tells of a setting where it was set: in the file, or from outside.
    fn at_setting(&mut self, name: &str, message: &str, help: &str) {
        if self.options.settings.contains_key(name) {
            self.report
                .error_outside(format!("`--set {}`: {message}", clipped(name)), help);
            return;
        }
        let Some(node) = self.settings_node else {
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
                    "begin with `- id: …`, and put `action: …` under the `id`",
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
            let mut keys = node.entries().iter().map(|entry| entry.key.as_str());
            let misspelt = keys.find(|key| nearest(key, ["action"]).is_some());
            let (span, message) = match misspelt.and_then(|key| node.entry(key)) {
                Some(entry) => (
                    entry.key_span.clone(),
                    format!("a step has no `{}`", clipped(&entry.key)),
                ),
                None => (node.mark(), "the step has no `action`".to_owned()),
            };
            let help = match misspelt {
                Some(_) => "did you mean `action`?".to_owned(),
                None => meant("", Action::NAMES).replace("there are", "write `action: …`: one of"),
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
            let message = format!("no action is called `{}`", clipped(written));
            self.report
                .error(span, message, meant(written, Action::NAMES));
            return None;
        };
        let value = node.to_value();
        let verdict = hold(Part::Step(name), &value, Some(node));
        for fault in &verdict.faults {
            let (Spot::Key(path) | Spot::Value(path) | Spot::Missing(path)) = &fault.spot;
            left_out.push(path.clone());
            let place = spot(node, &span, fault);
            self.report
                .error(place, fault.message.clone(), fault.help.clone());
        }
        if !verdict.is_right {
            return salvaged(name, &value, left_out);
        }
        match Action::read(name, value)? {
            Ok(action) => Some(action),
            Err(error) => {
                self.report
                    .error(span, format!("`{name}` cannot be read: {error}"), "");
                None
            }
        }
    }

    /// The ids there are; each is told that was there before.
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
                    format!("a step in line {line} is called `{}` already", clipped(id)),
                    "give each step a name of its own",
                );
                continue;
            }
            first.insert(id, span);
            ids.push(id);
        }
        ids
    }

    /// Whether there is a step wherever this one leads. A step that could not be read is looked at
    /// as far as its keys tell.
    fn check_targets(&mut self, draft: &Draft<'n>, ids: &[&str]) {
        let mut targets: Vec<(Vec<String>, &str)> = Vec::new();
        if let Some(action) = &draft.action {
            let named = action.targets().into_iter();
            targets.extend(named.map(|target| (target.place.0, target.step)));
            targets.extend(named_step(draft.node, "next"));
        } else {
            let keys = draft.node.entries().iter().map(|entry| entry.key.as_str());
            let leads =
                |key: &&str| key.starts_with("on_") || matches!(*key, "next" | "target_step_id");
            targets.extend(
                keys.filter(leads)
                    .filter_map(|key| named_step(draft.node, key)),
            );
        }
        for (place, step) in targets {
            if ids.contains(&step) || step.is_empty() {
                continue;
            }
            let span = span_of(draft.node, &place);
            let message = format!("no step is called `{}`", clipped(step));
            let help = if self.report.is_full() {
                String::new()
            } else {
                meant(step, ids)
            };
            self.report.error(span, message, help);
        }
    }

    fn check_step(&mut self, draft: &Draft<'_>, prompts: &mut Prompts) {
        let node = draft.node;
        let ends = node.get("end").map(Node::to_value) == Some(Value::Bool(true));
        if ends && node.get("next").is_some() {
            self.report.error(
                span_of(node, &["end"]),
                "`end: true` and `next` are both there, but a run does one or the other",
                "leave one of them out",
            );
        }
        let Some(action) = &draft.action else { return };
        for (place, source) in action.sources() {
            if let Err(error) = Source::read(source) {
                let span = span_of(node, &place.0);
                self.report.error(span, error.to_string(), error.hint());
            }
        }
        let mut findings = Findings::of(node, &draft.left_out);
        action.check(&mut findings);
        findings.tell(self.report);
        let Some(Kind::Map(_)) = self.settings_node.map(|node| &node.kind) else {
            return;
        };
        for (place, name) in action.settings() {
            self.check_setting(node, &place.0, name, "a whole number", |value| {
                value.as_u64().map(|_| ()).ok_or(String::new())
            });
        }
        for (place, name) in action.list_settings() {
            self.check_setting(node, &place.0, name, "a list of kinds of edges", |value| {
                are_edge_types(value)
            });
        }
        self.check_needs(node, action);
        if let Action::CallModel(call) = action
            && let Some(key) = &call.prompt_key
        {
            self.check_prompt(node, key, prompts);
        }
    }

    /// Whether a setting that a step names is there, and what it must be; the error of `is_right`
    /// says more.
    fn check_setting(
        &mut self,
        node: &Node,
        place: &[String],
        name: &str,
        what: &str,
        is_right: impl Fn(&Value) -> Result<(), String>,
    ) {
        let Some(value) = self.settings.get(name) else {
            let names: Vec<&str> = self.settings.keys().map(String::as_str).collect();
            // The name of a setting that every pipeline may have is right as it is.
            let is_known = judge(Part::Settings).keys(&[]).contains(&name);
            let help = match nearest(name, names) {
                Some(name) if !is_known => format!("did you mean `{name}`?"),
                _ => format!("add `{}: …` under `settings`", clipped(name)),
            };
            let message = format!("`settings.{}` is missing", clipped(name));
            self.report.error(span_of(node, place), message, help);
            return;
        };
        let Err(help) = is_right(value) else { return };
        if self.faulty.contains(name) {
            return;
        }
        let message = format!("`settings.{}` must be {what}", clipped(name));
        self.at_setting(name, &message, &help);
    }

    /// What an action cannot do without.
    fn check_needs(&mut self, node: &Node, action: &Action) {
        let span = span_of(node, &["action"]);
        let has = |name: &str| self.settings.contains_key(name);
        let has_budget = has("max_context_tokens");
        match action {
            Action::ManageContextBudget(_) if !has_budget => self.report.error(
                span,
                "`manage_context_budget` needs `settings.max_context_tokens`",
                "add `max_context_tokens: …` under `settings`: the tokens that the context may take",
            ),
            Action::FetchNodeTexts(fetch)
                if !has_budget && fetch.budget_tokens.is_none() && fetch.max_chars.is_none() =>
            {
                self.report.error(
                    span,
                    "nothing says how much `fetch_node_texts` may fetch",
                    "give the step `budget_tokens: …`, or add `max_context_tokens: …` under `settings`",
                );
            }
            Action::CallModel(call)
                if call.model.is_none() && !has("model") && self.options.model.is_none() =>
            {
                self.report.error(
                    span,
                    "nothing says which model is asked",
                    "add `model: …` under `settings`, or give the step one",
                );
            }
            _ => {}
        }
    }

    fn check_prompt(&mut self, node: &Node, key: &str, prompts: &mut Prompts) {
        if prompts.contains_key(key) {
            return;
        }
        let span = span_of(node, &["prompt_key"]);
        if !stays_inside(key) {
            self.report.error(
                span,
                format!("`{}` leads out of the folder of prompts", clipped(key)),
                "name a file in that folder, without `..`, and without its `.txt`",
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
                format!(
                    "it is looked for in `{}/{}.txt`",
                    clipped(folder),
                    clipped(key)
                ),
            ),
        }
    }

    fn check_entry(&mut self, drafts: &[Draft<'_>], ids: &[&str]) {
        let Some(Value::String(entry)) = self.settings.get("entry_step_id") else {
            return;
        };
        // A step that is no step at all may be the one.
        if ids.contains(&entry.as_str()) || drafts.is_empty() {
            return;
        }
        let message = format!("no step is called `{}`", clipped(entry));
        let help = meant(entry, ids);
        self.at_setting("entry_step_id", &message, &help);
    }

    /// A setting that nobody names is a mistake.
    fn check_unknown_settings(&mut self, drafts: &[Draft<'_>]) {
        if drafts.is_empty() {
            return;
        }
        let own = judge(Part::Settings);
        let mut names = own.keys(&[]);
        let keys = drafts.iter().flat_map(|draft| draft.node.entries());
        let naming = keys.filter(|entry| entry.key.ends_with("_from_settings"));
        names.extend(naming.filter_map(|entry| entry.value.text()));
        let unknown: Vec<String> = self
            .settings
            .keys()
            .filter(|name| !names.contains(&name.as_str()))
            .cloned()
            .collect();
        for name in unknown {
            let message = format!("no step names the setting `{}`", clipped(&name));
            let all = names.iter().copied().filter(|_| !self.report.is_full());
            let help = match nearest(&name, all) {
                Some(name) => format!("did you mean `{name}`?"),
                None => "take it out, or name it in a step by `…_from_settings`".to_owned(),
            };
            if self.options.settings.contains_key(&name) {
                self.at_setting(&name, &message, &help);
                continue;
            }
            let entry = self.settings_node.and_then(|node| node.entry(&name));
            if let Some(entry) = entry {
                self.report.error(entry.key_span.clone(), message, help);
            }
        }
    }
}

impl Draft<'_> {
    fn finished(self) -> Option<Step> {
        if !self.left_out.is_empty() {
            return None;
        }
        Some(Step {
            id: self.id?.to_owned(),
            action: self.action?,
            next: self
                .node
                .get("next")
                .and_then(Node::text)
                .map(str::to_owned),
            end: self.node.get("end").map(Node::to_value) == Some(Value::Bool(true)),
        })
    }
}

/// An action as far as it can be read: without what is wrong with it, or with nothing said there.
fn salvaged(name: &str, value: &Value, left_out: &[Vec<String>]) -> Option<Action> {
    let without = |stand_in: Option<&Value>| {
        let mut value = value.clone();
        for path in left_out {
            replace(&mut value, path, stand_in);
        }
        Action::read(name, value)?.ok()
    };
    without(None).or_else(|| without(Some(&Value::String(String::new()))))
}

/// Puts something else at a place, or takes out what is there.
fn replace(value: &mut Value, path: &[String], stand_in: Option<&Value>) {
    let Some((last, way)) = path.split_last() else {
        return;
    };
    let place = way.iter().try_fold(value, |value, key| match value {
        Value::Object(members) => members.get_mut(key),
        Value::Array(items) => items.get_mut(key.parse::<usize>().ok()?),
        _ => None,
    });
    match (place, stand_in) {
        (Some(Value::Object(members)), Some(stand_in)) => {
            members.insert(last.clone(), stand_in.clone());
        }
        (Some(Value::Object(members)), None) => {
            members.remove(last);
        }
        _ => {}
    }
}

/// The step that a key names.
fn named_step<'n>(node: &'n Node, key: &str) -> Option<(Vec<String>, &'n str)> {
    let step = node.get(key)?.text()?;
    Some((vec![key.to_owned()], step))
}

/// Where a fault is told; `key` is where the whole part is named.
fn spot(node: &Node, key: &Span, fault: &Fault) -> Span {
    match &fault.spot {
        Spot::Missing(path) if path.is_empty() => key.clone(),
        Spot::Value(path) | Spot::Missing(path) => span_of(node, path),
        Spot::Key(path) => {
            let (key, holder) = path
                .split_last()
                .map_or(("", path.as_slice()), |(key, rest)| (key.as_str(), rest));
            let holder = within(node, holder);
            match holder.and_then(|holder| holder.entry(key)) {
                Some(entry) => entry.key_span.clone(),
                None => node.mark(),
            }
        }
    }
}

/// Whether a value is a list of kinds of edges; the error says what is not.
fn are_edge_types(value: &Value) -> Result<(), String> {
    let kinds = edge_types();
    let Some(items) = value.as_array().filter(|items| !items.is_empty()) else {
        return Err(format!("such as `[{}]`", kinds[..2].join(", ")));
    };
    for item in items {
        let text = item.as_str().unwrap_or_default();
        if !kinds.contains(&text) {
            return Err(meant(text, &kinds));
        }
    }
    Ok(())
}

/// Whether the name of a prompt is that of a file in its folder.
fn stays_inside(key: &str) -> bool {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    let is_strange = |character: char| character.is_control() || character == ':';
    key.split(['/', '\\']).all(is_plain) && !key.contains(is_strange)
}

/// The name of a file without its folder and ending.
fn stem(file_name: &str) -> String {
    let path = std::path::Path::new(file_name);
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    stem.filter(|stem| !stem.is_empty())
        .unwrap_or("pipeline")
        .to_owned()
}
