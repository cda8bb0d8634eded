//! Checks that the store holds the repositories a pipeline searches.
//!
//! A search in an unknown repository finds nothing, and the model would answer without context. So
//! this is checked before a run, and again when a search finds nothing, because a step may have
//! changed the repository.

use overlock_store::{Access, Store, StoreError};

use crate::actions::Action;
use crate::file::{Pipeline, Step};
use crate::suggest::{listed, nearest};
use overlock_runs::State;

/// Why a store cannot be searched.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// The repository is not in the store.
    #[error("there is no repository `{name}` in this store")]
    Unknown {
        /// The repository.
        name: String,
        /// The repositories in the store.
        known: Vec<String>,
    },
    /// The store holds no repository.
    #[error("nothing is indexed in this store")]
    Empty,
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RepositoryError {
    /// What would help, if known.
    pub fn hint(&self) -> Option<String> {
        let Self::Unknown { name, known } = self else {
            let is_empty = matches!(self, Self::Empty);
            return is_empty.then(|| INDEX.to_owned());
        };
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        Some(match known[..] {
            [] => INDEX.to_owned(),
            [only] => format!("the only one is `{only}`"),
            _ => {
                let near = nearest(name, known.iter().copied());
                let near = near.map(|near| format!("did you mean `{near}`? "));
                format!("{}available: {}", near.unwrap_or_default(), listed(&known))
            }
        })
    }
}

const INDEX: &str = "run `overlock index DIR` first";

/// Fails if the store does not hold this repository, or holds none and no name is given.
pub fn check_repository(store: &dyn Store, name: Option<&str>) -> Result<(), RepositoryError> {
    let repositories = store.repositories()?.into_iter();
    let known: Vec<String> = repositories.map(|known| known.name).collect();
    match name {
        None if known.is_empty() => Err(RepositoryError::Empty),
        Some(name) if !known.iter().any(|known| known == name) => Err(RepositoryError::Unknown {
            name: name.to_owned(),
            known,
        }),
        _ => Ok(()),
    }
}

impl Pipeline {
    /// How to open the store of a new run. A missing store is created to record the run, unless a
    /// step reads an index, which a new store does not have.
    pub fn store_access(&self) -> Access {
        let reads_index = |step: &Step| {
            matches!(
                step.action,
                Action::SearchNodes(_)
                    | Action::ExpandDependencyTree(_)
                    | Action::FetchNodeTexts(_)
            )
        };
        if self.steps.iter().any(reads_index) {
            Access::Write
        } else {
            Access::Create
        }
    }

    /// Fails if the store does not hold the repositories that the searches name.
    pub fn check_repositories(
        &self,
        state: &State,
        store: &dyn Store,
    ) -> Result<(), RepositoryError> {
        for step in &self.steps {
            if let Action::SearchNodes(search) = &step.action {
                check_repository(store, search.repository(state))?;
            }
        }
        Ok(())
    }
}
