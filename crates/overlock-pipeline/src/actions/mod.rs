//! What a step can do: one file for each action. No action knows another.

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

use overlock_budget::{CountTokens, PlanError, Provenance};
use overlock_llm::{BackendError, Usage};
use overlock_store::StoreError;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::engine::World;
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

/// One kind of step: its configuration, what can be wrong with it, and what it does.
pub(crate) trait Perform {
    /// The steps that it names.
    fn targets(&self) -> Vec<Target<'_>>;

    /// The fields of the state that it names.
    fn sources(&self) -> Vec<(Place, &str)> {
        Vec::new()
    }

    /// The settings that it takes a whole number from.
    fn settings(&self) -> Vec<(Place, &str)> {
        Vec::new()
    }

    /// The settings that it takes a list of kinds of edges from.
    fn list_settings(&self) -> Vec<(Place, &str)> {
        Vec::new()
    }

    /// Says what is wrong that a schema cannot tell.
    fn check(&self, findings: &mut Findings<'_>) {
        let _ = findings;
    }

    /// Does it. An error changes nothing of what matters: the state of a step that failed is
    /// thrown away.
    async fn perform(&self, work: &mut Work<'_>) -> Result<Next, ActionError>;
}

/// Where something stands in a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place(pub(crate) Vec<String>);

impl Place {
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

/// A step that another one names.
#[derive(Clone, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) place: Place,
    pub(crate) step: &'a str,
    /// What it is called where it begins.
    pub(crate) label: String,
    /// Whether only mail goes there.
    pub(crate) is_mail: bool,
}

impl<'a> Target<'a> {
    pub(crate) fn new(key: &str, step: &'a str) -> Self {
        Self {
            place: Place::of(key),
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

/// Where a run goes after a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// To the step that the action chose.
    To(String),
    /// To the step's own `next`, or to the end.
    Onward,
}

/// What a step works with.
pub(crate) struct Work<'a> {
    pub(crate) step_id: &'a str,
    /// Whether the step says where to go on.
    pub(crate) has_next: bool,
    pub(crate) pipeline_name: &'a str,
    pub(crate) settings: &'a Settings,
    pub(crate) world: &'a World<'a>,
    /// Who counts, by what name, and what the figures are worth.
    pub(crate) counter: &'a dyn CountTokens,
    pub(crate) counter_name: &'a str,
    pub(crate) provenance: Provenance,
    pub(crate) state: &'a mut State,
    /// What models have answered in this step, and where more of it is kept.
    pub(crate) answers: Answers<'a>,
    /// What the trace tells of it.
    pub(crate) told: Map<String, Value>,
}

impl Work<'_> {
    /// Tells something in the trace.
    pub(crate) fn note(&mut self, key: &str, value: impl Serialize) {
        let value = serde_json::to_value(value).unwrap_or_default();
        self.told.insert(key.to_owned(), value);
    }

    /// All that was told, with what the answers of models took.
    pub(crate) fn into_told(mut self) -> Map<String, Value> {
        if let Some(retried) = self.answers.retried.take() {
            self.warn(&retried.to_string());
        }
        let (mut told, usage) = (self.told, self.answers.usage());
        if !self.answers.is_empty() {
            told.extend(self.answers.calls());
        }
        if usage != Usage::default() {
            told.insert("usage".to_owned(), json!(usage));
            if let Some(peak) = self.answers.peak_tokens() {
                told.insert("peak_tokens".to_owned(), peak.into());
            }
            let by = self.answers.counted_by();
            told.insert("counted_by".to_owned(), json!(by));
        }
        told
    }

    /// Tells which way was chosen.
    pub(crate) fn decide(&mut self, decision: &str) {
        self.note("decision", decision);
    }

    /// Tells what somebody should look at.
    pub(crate) fn warn(&mut self, warning: &str) {
        let warnings = self.told.entry("warnings").or_insert_with(|| json!([]));
        if let Some(warnings) = warnings.as_array_mut() {
            warnings.push(warning.into());
        }
    }
}

/// Why a step could not be done.
#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    /// The texts alone are more than the context may hold.
    #[error(
        "PIPELINE_BUDGET_MISCONFIG: fetch_node_texts produced retrieval texts that cannot fit \
         into settings.max_context_tokens (incoming_tokens={incoming_tokens} max={max})"
    )]
    BudgetMisconfig {
        /// What they take.
        incoming_tokens: u64,
        /// What there is.
        max: u64,
    },
    /// A step that needs a setting has none.
    #[error("`settings.{name}` is missing")]
    MissingSetting {
        /// Which.
        name: String,
    },
    /// What a step reads from is not there.
    #[error(transparent)]
    Source(#[from] UnknownSource),
    /// There is nothing to look for.
    #[error("there is nothing to look for: neither a response nor a question")]
    NoQuery,
    /// Nobody makes vectors.
    #[error("a search by meaning needs an embedding model, and none is named")]
    NoEmbedder,
    /// A value does not fit where it is to go.
    #[error("`{field}` cannot be set to that: {reason}")]
    CannotSet {
        /// Where.
        field: String,
        /// Why not.
        reason: String,
    },
    /// No route leads on.
    #[error("no route is called what the response says; there are {routes}")]
    NoRoute {
        /// The routes there are.
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
    /// The model is not known to whoever runs the pipeline.
    #[error("`{model}` cannot be asked: {reason}")]
    NoModel {
        /// Which.
        model: String,
        /// Why.
        reason: String,
    },
    /// The request is none.
    #[error("the prompt is no request: {0}")]
    Request(String),
    /// The model failed.
    #[error("the model could not be asked")]
    Model(#[source] BackendError),
    /// The document could not be made whole.
    #[error("the model's JSON could not be made whole: {0}")]
    NotWhole(String),
    /// What happened could not be kept.
    #[error("what the model answered could not be recorded")]
    Unrecorded(#[source] Box<dyn std::error::Error + std::marker::Send + Sync>),
    /// The store does not hold what is searched.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ActionError {
    /// What would help, if that is known.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::BudgetMisconfig { .. } => {
                "give fetch_node_texts a smaller budget, or raise settings.max_context_tokens"
                    .to_owned()
            }
            Self::Source(error) => error.hint(),
            Self::NoEmbedder => {
                "name one (`--embed MODEL`), or search by `search_type: keyword`".to_owned()
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
        &Place::of(other),
        &format!("`{one}` and `{other}` are both there, but only one of them may be"),
        "leave one of them out",
    );
}

fn optional_source<'a>(key: &str, source: Option<&'a str>) -> Vec<(Place, &'a str)> {
    source
        .map(|source| (Place::of(key), source))
        .into_iter()
        .collect()
}

/// Writes the list of actions once.
macro_rules! actions {
    ($($name:literal = $action:ident,)+) => {
        /// What a step does.
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

            /// The action of this name with this configuration, if there is one.
            pub(crate) fn read(name: &str, config: Value) -> Option<Result<Self, serde_json::Error>> {
                match name {
                    $($name => Some(serde_json::from_value(config).map(Self::$action)),)+
                    _ => None,
                }
            }

            /// What the configuration of the action of this name looks like.
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

            pub(crate) fn sources(&self) -> Vec<(Place, &str)> {
                match self {
                    $(Self::$action(action) => action.sources(),)+
                }
            }

            pub(crate) fn settings(&self) -> Vec<(Place, &str)> {
                match self {
                    $(Self::$action(action) => action.settings(),)+
                }
            }

            pub(crate) fn list_settings(&self) -> Vec<(Place, &str)> {
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
