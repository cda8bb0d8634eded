//! Does the store hold what a pipeline searches?
//!
//! A search in a repository that does not exist finds nothing, and the model would answer without
//! context. So this is checked before a run begins, and again when a search finds nothing: a step
//! may have changed the repository by then.

use overlock_store::{Access, Store, StoreError};

use crate::actions::Action;
use crate::file::{Pipeline, Step};
use crate::suggest::{listed, nearest};
use overlock_runs::State;

/// Why a store cannot be searched.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// It does not hold the repository.
    #[error("there is no repository `{name}` in this store")]
    Unknown {
        /// The repository.
        name: String,
        /// The repositories that it holds.
        known: Vec<String>,
    },
    /// It holds no repository at all.
    #[error("nothing is indexed in this store")]
    Empty,
    /// It cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RepositoryError {
    /// What would help, if that is known.
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
                format!("{}there are {}", near.unwrap_or_default(), listed(&known))
            }
        })
    }
}

const INDEX: &str = "`overlock index DIR` keeps what is searched";

/// Refuses a store that does not hold this repository, or any if none is named.
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
    /// How the store of a new run is opened. It is created to record the run, unless a step reads
    /// an index, which a new store does not hold.
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
            Access::Make
        }
    }

    /// Refuses a store that does not hold the repositories that its searches name.
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
