//! What is kept of runs, of source text, of rooms and of memories.
//!
//! A run is recorded after every step, so that another process can go on where one was killed. The
//! store keeps what it is given and does not look into it: requests, options, conditions and steps
//! are texts to it, written and read by those who know them.
//!
//! Source text is kept as [`Nodes`], which are found by words and by vectors, and walked over by
//! their edges; what was said as [`Conversations`], what personas know as [`Memories`].
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
//! assert_eq!(store.run(&id)?.expect("it was begun").steps.len(), 1);
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
    Direction, Edge, EdgeKind, Filter, Hit, KeptFile, Mention, NewFile, NewNode, Node, NodeId,
    NodeKind, Nodes, Query, Reached, RepositorySummary, Resolved, Scope, Search, UnknownName,
    Vector, Walk,
};
pub use paths::PathPattern;
pub use runs::{
    Begun, Claim, EndedRun, NewRun, Run, RunId, RunIdError, RunSummary, Runs, Since, Work, Writes,
};
pub use store::{Access, Store, in_memory, open};
pub use strategies::{Strategies, StrategyResult};
