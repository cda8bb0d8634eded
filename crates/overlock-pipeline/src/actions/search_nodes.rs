//! `search_nodes`: searches the store.

use overlock_store::{Filter, Hit, PathPattern, Query, Search, Vector};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{ActionError, KeyPath, Next, Perform, Target, Work};
use crate::repository::check_repository;
use crate::source::Source;
use overlock_runs::{SearchHit, State};

/// Searches nodes by keywords, by vectors or both. The context is unchanged.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct SearchNodes {
    /// The kind of search.
    #[serde(default)]
    pub search_type: SearchType,
    /// The maximum number of results.
    #[serde(default = "top_k")]
    #[schemars(range(min = 1, max = 1000))]
    pub top_k: u32,
    /// Restrictions of the search.
    #[serde(default)]
    pub filters: Filters,
    /// The field with the query; by default `last_model_response` if it is set, else `user_question`.
    pub query_from: Option<String>,
}

/// The kind of search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchType {
    /// By keywords.
    #[default]
    Keyword,
    /// By vectors.
    Semantic,
    /// By both; ranks the nodes that come early in either.
    Hybrid,
}

/// Restrictions of a search.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub struct Filters {
    /// The repository; by default that of the run.
    #[schemars(length(min = 1))]
    pub repository: Option<String>,
    /// The language.
    pub language: Option<FilterLanguage>,
    /// The path: a file, a folder, or a pattern such as `src/**/*.cs`.
    #[schemars(length(min = 1))]
    pub path: Option<String>,
}

/// A language to search in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FilterLanguage {
    /// SQL.
    Sql,
    /// .NET.
    Dotnet,
    /// Any other.
    Unknown,
}

impl FilterLanguage {
    fn name(self) -> &'static str {
        match self {
            Self::Sql => "sql",
            Self::Dotnet => "dotnet",
            Self::Unknown => "unknown",
        }
    }
}

fn top_k() -> u32 {
    10
}

impl SearchNodes {
    /// The repository to search; nothing for all.
    pub(crate) fn repository<'a>(&'a self, state: &'a State) -> Option<&'a str> {
        let own = self.filters.repository.as_deref();
        own.or(state.repository.as_deref())
    }
}

impl Perform for SearchNodes {
    fn targets(&self) -> Vec<Target<'_>> {
        Vec::new()
    }

    fn sources(&self) -> Vec<(KeyPath, &str)> {
        super::optional_source("query_from", self.query_from.as_deref())
    }

    async fn perform(&self, work: &mut Work<'_>) -> Result<Next, ActionError> {
        let query = query(self.query_from.as_deref(), work)?;
        work.state.note_query(&query);
        let numbers = match (self.search_type, work.world.embedder) {
            (SearchType::Keyword, _) => None,
            (_, Some(embedder)) => {
                let numbers = embedder.embed(&query).await.map_err(ActionError::Model)?;
                Some((embedder.model(), numbers))
            }
            (_, None) => return Err(ActionError::NoEmbedder),
        };
        let vector = numbers
            .as_ref()
            .map(|(model, numbers)| Vector { model, numbers });
        let path = self.filters.path.as_deref().map(PathPattern::new);
        let repository = self.repository(work.state);
        let hits = work.world.store.search(&Query {
            search: match (self.search_type, vector) {
                (SearchType::Semantic, Some(vector)) => Search::Semantic(vector),
                (SearchType::Hybrid, Some(vector)) => Search::Hybrid(&query, vector),
                _ => Search::Keyword(&query),
            },
            filter: Filter {
                repository,
                language: self.filters.language.map(FilterLanguage::name),
                path: path.as_ref(),
            },
            limit: self.top_k,
        })?;
        if hits.is_empty() {
            check_repository(work.world.store, repository)?;
        }
        work.note("query", &query);
        work.note("hits", hits.len());
        work.note(
            "found",
            hits.iter()
                .map(|hit| json!({ "id": hit.node.id, "path": hit.node.path, "name": hit.node.qualified, "score": hit.score }))
                .collect::<Vec<_>>(),
        );
        work.state.search_hits = hits.into_iter().map(search_hit).collect();
        Ok(Next::Onward)
    }
}

fn search_hit(hit: Hit) -> SearchHit {
    SearchHit {
        id: hit.node.id.as_str().to_owned(),
        repository: hit.node.repository,
        path: hit.node.path,
        name: hit.node.qualified,
        kind: hit.node.kind.as_str().to_owned(),
        score: hit.score,
    }
}

/// The query of a search.
pub(super) fn query(from: Option<&str>, work: &Work<'_>) -> Result<String, ActionError> {
    let text = match from {
        Some(source) => Source::read(source)?.text(work.state)?,
        None => match work.state.last_model_response.as_deref().map(str::trim) {
            Some(response) if !response.is_empty() => response.to_owned(),
            _ => work.state.user_question.clone(),
        },
    };
    let text = text.trim();
    if text.is_empty() {
        return Err(ActionError::NoQuery);
    }
    Ok(text.to_owned())
}
