//! What a run knows at any moment.
//!
//! All of it is plain data that can be stored and read again: a run that died goes on from it.

use std::collections::BTreeMap;

use overlock_store::Edge;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The state of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct State {
    /// What the user asks.
    #[serde(alias = "user_question_en", deserialize_with = "text_or_null")]
    pub user_question: String,
    /// The conversation that the question is part of: a room of the store.
    pub session_id: Option<String>,
    /// The repository that is asked about.
    pub repository: Option<String>,
    /// What was said before.
    pub history: Vec<Turn>,
    /// What is remembered.
    pub memories: Vec<Remembered>,
    /// What the last search found, the best first.
    pub search_hits: Vec<SearchHit>,
    /// What was reached from there.
    pub graph_nodes: Vec<GraphNode>,
    /// How.
    pub graph_edges: Vec<Edge>,
    /// Texts that are not in the context yet.
    pub node_texts: Vec<NodeText>,
    /// The context, as it goes into prompts.
    pub context_blocks: Vec<String>,
    /// What the model said last.
    pub last_model_response: Option<String>,
    /// The answer of the run.
    pub answer: Option<String>,
    /// What the pipeline keeps for itself.
    pub variables: Map<String, Value>,
    /// How often each guard has let the run pass.
    pub loop_counters: BTreeMap<String, u64>,
    /// Mail that nobody has taken yet.
    pub inbox: Vec<Mail>,
    /// The mail that the last step took when it was entered.
    pub inbox_last_consumed: Vec<Mail>,
    /// What has been looked for.
    pub asked_queries: Vec<String>,
}

/// Something that was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// As what.
    pub role: Role,
    /// What.
    pub content: String,
}

/// Who says something to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Whoever runs the conversation.
    System,
    /// Whoever asks.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The name in requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// Something that is remembered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remembered {
    /// What.
    pub text: String,
    /// How important it is, from 0 to 1.
    pub importance: f64,
    /// Since when, in milliseconds since 1970.
    pub at: u64,
}

/// A node that was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchHit {
    /// Its id.
    pub id: String,
    /// The repository it is in.
    pub repository: String,
    /// The file it is in.
    pub path: String,
    /// What it is called in full.
    pub name: String,
    /// What it is.
    pub kind: String,
    /// How well it answers; only hits of one search can be compared.
    pub score: f64,
}

/// A node that was reached over edges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphNode {
    /// Its id.
    pub id: String,
    /// Over how many edges, at least.
    #[serde(default)]
    pub depth: u32,
}

/// A text that is to go into the context. Members that nobody here knows stay with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeText {
    /// The id of its node.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "number_or_text"
    )]
    pub id: Option<String>,
    /// The file it is from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The text.
    #[serde(default)]
    pub text: String,
    /// What else came with it.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A message for a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mail {
    /// Who it is for.
    pub target_step_id: String,
    /// What it is about.
    pub topic: String,
    /// What else it says.
    #[serde(default)]
    pub payload: Value,
}

impl State {
    /// Notes that something is looked for, and says whether it is for the first time.
    pub fn note_query(&mut self, query: &str) -> bool {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        let query = words.join(" ");
        let is_new = !self.asked_queries.contains(&query);
        if is_new {
            self.asked_queries.push(query);
        }
        is_new
    }

    /// Hands a step its mail.
    pub fn take_mail(&mut self, step_id: &str) {
        let (mine, others) = std::mem::take(&mut self.inbox)
            .into_iter()
            .partition(|mail| mail.target_step_id == step_id);
        self.inbox = others;
        self.inbox_last_consumed = mine;
    }
}

impl NodeText {
    /// The first that is there of `path`, `repo_relative_path`, `source_file` and `source`, in the
    /// text's own members or in its `metadata`.
    pub fn any_path(&self) -> Option<&str> {
        let metadata = self.rest.get("metadata").and_then(Value::as_object);
        let path = self.path.as_deref().filter(|path| !path.is_empty());
        let named = |key: &str| {
            let places = [Some(&self.rest), metadata].into_iter().flatten();
            let mut found = places.filter_map(|members| members.get(key)?.as_str());
            found.find(|path| !path.is_empty())
        };
        path.or_else(|| named("path"))
            .or_else(|| named("repo_relative_path"))
            .or_else(|| named("source_file"))
            .or_else(|| named("source"))
    }
}

fn text_or_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Ids are texts to us, but others number their nodes.
fn number_or_text<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        Value::Number(number) => Ok(Some(number.to_string())),
        other => Err(serde::de::Error::custom(format!(
            "an id is a text or a number, not {other}"
        ))),
    }
}
