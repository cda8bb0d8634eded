//! Stores runs, source code, conversations and memories in SQLite or PostgreSQL.
//!
//! A run is recorded after every step, so that another process can resume it after a crash. Requests,
//! options, conditions and steps are opaque texts: the callers define their formats.
//!
//! Source code is stored as [`Nodes`] with keyword search, vector search and edges between nodes;
//! chat messages as [`Conversations`], and what personas remember as [`Memories`].
//!
//! ```
//! use overlock_store::{NewRun, RunId};
//!
//! let store = overlock_store::in_memory()?;
//! let id = RunId::new(1_763_251_200_000, 42);
//! let claim = store.begin(&NewRun {
//!     id: &id,
//!     at: 1_763_251_200_000,
//!     model: "gpt-4o",
//!     request: "{}",
//!     options: "{}",
//!     conditions: "{}",
//! })?;
//! store.add_step(&claim, 1, r#"{"tokens": 12}"#)?;
//! assert_eq!(store.run(&id)?.expect("a recorded run").steps.len(), 1);
//! # Ok::<(), overlock_store::StoreError>(())
//! ```

mod address;
mod conversations;
mod error;
mod fusion;
mod memories;
mod naming;
mod nodes;
mod paths;
mod postgres;
mod runs;
mod sqlite;
mod store;
mod strategies;
mod vectors;
mod words;

pub use address::{AddressError, Encryption, Password, PostgresAddress, StoreAddress};
pub use conversations::{Conversations, Message, NewMessage, RoomSummary};
pub use error::{Cause, StoreError};
pub use memories::{Importance, ImportanceError, Memories, Memory, NewMemory, Recall};
pub use nodes::{
    Direction, Edge, EdgeKind, Filter, Hit, Mention, NewFile, NewNode, Node, NodeId, NodeKind,
    Nodes, Query, Reached, RepositorySummary, Resolved, Scope, Search, StoredFile, UnknownName,
    Vector, Walk,
};
pub use paths::PathPattern;
pub use runs::{
    Begun, Claim, EndedRun, NewRun, Run, RunId, RunIdError, RunSummary, Runs, Since, Work, Writes,
};
pub use store::{Access, Store, in_memory, open};
pub use strategies::{Strategies, StrategyResult};
