//! A model that knows one document by heart and is cut off every time it recites it.
//!
//! It is a [`Backend`](crate::Backend) like any other, answers in the ways of real models, and
//! needs no key, no network and no luck: the same seed gives the same answers. With it a program
//! can be tried, tested and shown.

mod behaviour;
mod dialect;
mod manner;
mod place;
mod random;
mod script;
mod server;
mod turn;
mod waiting;

pub use behaviour::Behaviour;
pub use manner::Manner;
pub use script::{Script, ScriptedModel};
pub use server::{Fault, ScriptedServer};
pub use waiting::{PATIENCE, eventually, eventually_blocking, within_patience};
