//! The actions of steps, one file each. They do not depend on each other.

mod call_model;
mod expand_dependency_tree;
mod fetch_node_texts;
mod finalize;
mod load_history;
mod load_memories;
mod loop_guard;
mod manage_context_budget;
mod repeat_query_guard;
mod route;
mod search_nodes;
mod send;
mod set_variables;

#[cfg(test)]
mod tests;

use overlock_budget::PlanError;
use overlock_llm::{BackendError, Usage};
use overlock_store::StoreError;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::engine::Environment;
use crate::file::Findings;
use crate::record::Answers;
use crate::repository::RepositoryError;
use crate::settings::Settings;
use crate::source::UnknownSource;
use overlock_runs::State;

pub use call_model::{CallModel, ResponseKind, UserPart};
pub use expand_dependency_tree::{EdgeType, ExpandDependencyTree, WalkDirection};
pub use fetch_node_texts::{FetchNodeTexts, Prioritization};
pub use finalize::Finalize;
pub use load_history::LoadHistory;
pub use load_memories::LoadMemories;
pub use loop_guard::LoopGuard;
pub use manage_context_budget::{
    CompactCode, CompactLevel, ManageContextBudget, Matching, Policy, Rule, RuleLanguage,
};
pub use repeat_query_guard::RepeatQueryGuard;
pub use route::Route;
pub use search_nodes::{FilterLanguage, Filters, SearchNodes, SearchType};
pub use send::Send;
pub use set_variables::{SetRule, SetVariables, Transform};

/// A kind of step: its configuration, checks and execution.
pub(crate) trait Perform {
    /// The steps that it can lead to or sends mail to.
    fn targets(&self) -> Vec<Target<'_>>;

    /// The state fields that it reads.
    fn sources(&self) -> Vec<(KeyPath, &str)> {
        Vec::new()
    }

    /// The settings from which it takes a whole number.
    fn settings(&self) -> Vec<(KeyPath, &str)> {
        Vec::new()
    }

    /// The settings from which it takes a list of edge types.
    fn list_settings(&self) -> Vec<(KeyPath, &str)> {
        Vec::new()
    }

    /// Reports problems that a schema cannot detect.
    fn check(&self, findings: &mut Findings<'_>) {
        let _ = findings;
    }

    /// Executes the step. After an error its changes of the state are discarded.
    async fn perform(&self, work: &mut Work<'_>) -> Result<Next, ActionError>;
}

/// The path of a value in a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyPath(pub(crate) Vec<String>);

impl KeyPath {
    pub(crate) fn of(key: &str) -> Self {
        Self(vec![key.to_owned()])
    }

    pub(crate) fn within(key: &str, inner: &str) -> Self {
        Self(vec![key.to_owned(), inner.to_owned()])
    }

    pub(crate) fn item(list: &str, index: usize, key: &str) -> Self {
        Self(vec![list.to_owned(), index.to_string(), key.to_owned()])
    }
}

/// A step that another step names.
#[derive(Clone, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) path: KeyPath,
    pub(crate) step: &'a str,
    /// The name of the transition.
    pub(crate) label: String,
    /// Whether it is only sent mail.
    pub(crate) is_mail: bool,
}

impl<'a> Target<'a> {
    pub(crate) fn new(key: &str, step: &'a str) -> Self {
        Self {
            path: KeyPath::of(key),
            step,
            label: key.to_owned(),
            is_mail: false,
        }
    }

    pub(crate) fn mail(key: &str, step: &'a str) -> Self {
        Self {
            is_mail: true,
            ..Self::new(key, step)
        }
    }
}

/// Which step follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The step chosen by the action.
    To(String),
    /// The step's `next`; without one the run ends.
    Onward,
}

/// The context of a step's execution.
pub(crate) struct Work<'a> {
    pub(crate) step_id: &'a str,
    /// Whether the step has a `next`.
    pub(crate) has_next: bool,
    pub(crate) pipeline_name: &'a str,
    pub(crate) settings: &'a Settings,
    pub(crate) world: &'a Environment<'a>,
    pub(crate) state: &'a mut State,
    /// The model answers of this step, which are recorded here.
    pub(crate) answers: Answers<'a>,
    /// What the action adds to the trace event.
    pub(crate) notes: Map<String, Value>,
}

impl Work<'_> {
    /// Adds a value to the trace event.
    pub(crate) fn note(&mut self, key: &str, value: impl Serialize) {
        let value = serde_json::to_value(value).unwrap_or_default();
        self.notes.insert(key.to_owned(), value);
    }

    /// All notes, with the usage of model calls.
    pub(crate) fn into_notes(mut self) -> Map<String, Value> {
        if let Some(retried) = self.answers.retried.take() {
            self.warn(&retried.to_string());
        }
        let (mut notes, usage) = (self.notes, self.answers.usage());
        if !self.answers.is_empty() {
            notes.extend(self.answers.calls());
        }
        if usage != Usage::default() {
            notes.insert("usage".to_owned(), json!(usage));
            if let Some(peak) = self.answers.peak_tokens() {
                notes.insert("peak_tokens".to_owned(), peak.into());
            }
            let counted_by = self.answers.counted_by();
            notes.insert("counted_by".to_owned(), json!(counted_by));
        }
        notes
    }

    /// Notes which transition was chosen.
    pub(crate) fn decide(&mut self, decision: &str) {
        self.note("decision", decision);
    }

    /// Notes a warning.
    pub(crate) fn warn(&mut self, warning: &str) {
        let warnings = self.notes.entry("warnings").or_insert_with(|| json!([]));
        if let Some(warnings) = warnings.as_array_mut() {
            warnings.push(warning.into());
        }
    }
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    /// The new texts alone exceed the context budget.
    #[error(
        "PIPELINE_BUDGET_MISCONFIG: fetch_node_texts produced retrieval texts that cannot fit \
         into settings.max_context_tokens (incoming_tokens={incoming_tokens} max={max})"
    )]
    BudgetMisconfig {
        /// The tokens of the new texts.
        incoming_tokens: u64,
        /// The budget.
        max: u64,
    },
    /// A required setting is missing.
    #[error("`settings.{name}` is missing")]
    MissingSetting {
        /// The setting.
        name: String,
    },
    /// The field that a step reads does not exist.
    #[error(transparent)]
    Source(#[from] UnknownSource),
    /// There is no query to search for.
    #[error("no query: the run has neither a response nor a question")]
    NoQuery,
    /// Semantic search without an embedding model.
    #[error("semantic search needs an embedding model, and none is set")]
    NoEmbedder,
    /// A value has the wrong type for its field.
    #[error("`{field}` cannot be set to this value: {reason}")]
    CannotSet {
        /// The field.
        field: String,
        /// The expected type.
        reason: String,
    },
    /// The response matches no route.
    #[error("the response matches none of the routes {routes}")]
    NoRoute {
        /// The names of the routes.
        routes: String,
    },
    /// The prompt does not fit the window.
    #[error("the prompt does not fit the window of `{model}`")]
    Window {
        /// The model.
        model: String,
        /// Why.
        source: PlanError,
    },
    /// The program that runs the pipeline cannot call the model.
    #[error("cannot call the model `{model}`: {reason}")]
    NoModel {
        /// The model.
        model: String,
        /// Why.
        reason: String,
    },
    /// The request is not valid.
    #[error("the prompt does not make a valid request: {0}")]
    Request(String),
    /// The model call failed.
    #[error("the model call failed")]
    Model(#[source] BackendError),
    /// The document is incomplete.
    #[error("the model's JSON could not be completed: {0}")]
    Incomplete(String),
    /// The answer could not be stored.
    #[error("the model's answer could not be recorded")]
    Unrecorded(#[source] Box<dyn std::error::Error + std::marker::Send + Sync>),
    /// The store does not hold the repository.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ActionError {
    /// What would help, if known.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::BudgetMisconfig { .. } => {
                "give fetch_node_texts a smaller budget, or raise settings.max_context_tokens"
                    .to_owned()
            }
            Self::Source(error) => error.hint(),
            Self::NoEmbedder => {
                "set one with `--embed MODEL`, or use `search_type: keyword`".to_owned()
            }
            Self::NoQuery => "give the run a question".to_owned(),
            Self::Repository(error) => return error.hint(),
            Self::NoRoute { .. } => "give the step an `on_other`".to_owned(),
            Self::Window { source, .. } => {
                let help: Vec<String> = source.help().iter().map(ToString::to_string).collect();
                return (!help.is_empty()).then(|| help.join("; "));
            }
            _ => return None,
        })
    }
}

fn exclusive(findings: &mut Findings<'_>, one: &str, other: &str) {
    findings.error(
        &KeyPath::of(other),
        &format!("`{one}` and `{other}` cannot be combined"),
        "remove one of them",
    );
}

fn optional_source<'a>(key: &str, source: Option<&'a str>) -> Vec<(KeyPath, &'a str)> {
    source
        .map(|source| (KeyPath::of(key), source))
        .into_iter()
        .collect()
}

/// Defines [`Action`] from the list of actions.
macro_rules! actions {
    ($($name:literal = $action:ident,)+) => {
        /// The action of a step.
        #[derive(Clone, Debug)]
        #[expect(missing_docs, reason = "each is documented where it is defined")]
        pub enum Action {
            $($action($action),)+
        }

        impl Action {
            /// The names of all actions.
            pub const NAMES: &[&str] = &[$($name),+];

            /// Its name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$action(_) => $name,)+
                }
            }

            /// Reads the configuration of an action; nothing if there is no action of this name.
            pub(crate) fn read(name: &str, config: Value) -> Option<Result<Self, serde_json::Error>> {
                match name {
                    $($name => Some(serde_json::from_value(config).map(Self::$action)),)+
                    _ => None,
                }
            }

            /// The schema of the configuration of this action.
            pub(crate) fn schema(name: &str, generator: &mut SchemaGenerator) -> Option<Schema> {
                match name {
                    $($name => Some($action::json_schema(generator)),)+
                    _ => None,
                }
            }

            pub(crate) fn targets(&self) -> Vec<Target<'_>> {
                match self {
                    $(Self::$action(action) => action.targets(),)+
                }
            }

            pub(crate) fn sources(&self) -> Vec<(KeyPath, &str)> {
                match self {
                    $(Self::$action(action) => action.sources(),)+
                }
            }

            pub(crate) fn settings(&self) -> Vec<(KeyPath, &str)> {
                match self {
                    $(Self::$action(action) => action.settings(),)+
                }
            }

            pub(crate) fn list_settings(&self) -> Vec<(KeyPath, &str)> {
                match self {
                    $(Self::$action(action) => action.list_settings(),)+
                }
            }

            pub(crate) fn check(&self, findings: &mut Findings<'_>) {
                match self {
                    $(Self::$action(action) => action.check(findings),)+
                }
            }

            pub(crate) async fn perform(&self, work: &mut Work<'_>) -> Result<Next, ActionError> {
                match self {
                    $(Self::$action(action) => action.perform(work).await,)+
                }
            }
        }
    };
}

actions! {
    "search_nodes" = SearchNodes,
    "expand_dependency_tree" = ExpandDependencyTree,
    "fetch_node_texts" = FetchNodeTexts,
    "manage_context_budget" = ManageContextBudget,
    "call_model" = CallModel,
    "loop_guard" = LoopGuard,
    "set_variables" = SetVariables,
    "load_history" = LoadHistory,
    "load_memories" = LoadMemories,
    "route" = Route,
    "send" = Send,
    "repeat_query_guard" = RepeatQueryGuard,
    "finalize" = Finalize,
}
