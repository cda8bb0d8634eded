//! A scripted model that knows one document and whose answers are cut off.
//!
//! It is a [`Backend`](crate::Backend) that imitates the behaviours of real models, needs no key
//! and no network, and is deterministic: the same seed gives the same answers. It serves for tests,
//! trials and the demo.

mod behaviour;
mod dialect;
mod document_search;
mod fault;
mod manner;
mod messages;
mod random;
mod responses;
mod script;
mod server;
mod state;
mod waiting;

pub use behaviour::Behaviour;
pub use fault::Fault;
pub use manner::Manner;
pub use script::{Script, ScriptedModel};
pub use server::ScriptedServer;
pub use waiting::{PATIENCE, eventually, eventually_blocking, within_patience};
