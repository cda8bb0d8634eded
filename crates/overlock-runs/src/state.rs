//! The state of a pipeline run.
//!
//! All of it is plain data, so that a run can be stored and resumed.

use std::collections::BTreeMap;

use overlock_store::Edge;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The state of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct State {
    /// The user's question.
    #[serde(alias = "user_question_en", deserialize_with = "text_or_null")]
    pub user_question: String,
    /// The session that the question belongs to: a room of the store.
    pub session_id: Option<String>,
    /// The repository that the question is about.
    pub repository: Option<String>,
    /// The earlier turns of the conversation.
    pub history: Vec<Turn>,
    /// The memories of the session.
    pub memories: Vec<Remembered>,
    /// The results of the last search, best first.
    pub search_hits: Vec<SearchHit>,
    /// The nodes reached from there.
    pub graph_nodes: Vec<GraphNode>,
    /// The edges over which they were reached.
    pub graph_edges: Vec<Edge>,
    /// Texts not yet in the context.
    pub node_texts: Vec<NodeText>,
    /// The context, as it is put into prompts.
    pub context_blocks: Vec<String>,
    /// The model's last answer.
    pub last_model_response: Option<String>,
    /// The answer of the run.
    pub answer: Option<String>,
    /// Variables of the pipeline.
    pub variables: Map<String, Value>,
    /// How often each guard has let the run pass.
    pub loop_counters: BTreeMap<String, u64>,
    /// Mail not yet delivered.
    pub inbox: Vec<Mail>,
    /// The mail delivered to the last step.
    pub inbox_last_consumed: Vec<Mail>,
    /// The queries searched for so far.
    pub asked_queries: Vec<String>,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// Its role.
    pub role: Role,
    /// The name of the speaker, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its text.
    pub content: String,
}

/// The role of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions.
    System,
    /// The user.
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

/// A memory of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remembered {
    /// Its text.
    pub text: String,
    /// Its importance, from 0 to 1.
    pub importance: f64,
    /// When it was stored, in milliseconds since 1970.
    pub at: u64,
}

/// A search result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchHit {
    /// Its id.
    pub id: String,
    /// The repository it is in.
    pub repository: String,
    /// The file it is in.
    pub path: String,
    /// Its qualified name.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// How well it matches; only comparable within one search.
    pub score: f64,
}

/// A node reached over edges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphNode {
    /// Its id.
    pub id: String,
    /// The smallest number of edges to it.
    #[serde(default)]
    pub depth: u32,
}

/// A text to be put into the context. Unknown members are preserved.
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
    /// All other members.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A message for a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mail {
    /// The step that it is for.
    pub target_step_id: String,
    /// Its topic.
    pub topic: String,
    /// Its content.
    #[serde(default)]
    pub payload: Value,
}

impl State {
    /// Notes a query; true if it is new.
    pub fn note_query(&mut self, query: &str) -> bool {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        let query = words.join(" ");
        let is_new = !self.asked_queries.contains(&query);
        if is_new {
            self.asked_queries.push(query);
        }
        is_new
    }

    /// Delivers the mail of a step.
    pub fn take_mail(&mut self, step_id: &str) {
        let (mine, others) = std::mem::take(&mut self.inbox)
            .into_iter()
            .partition(|mail| mail.target_step_id == step_id);
        self.inbox = others;
        self.inbox_last_consumed = mine;
    }
}

impl NodeText {
    /// The first of `path`, `repo_relative_path`, `source_file` and `source` that is set, in the
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

/// Our ids are texts, but other programs number their nodes.
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
