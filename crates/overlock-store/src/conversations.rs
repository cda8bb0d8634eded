//! What was said in rooms, by whom and when.

use crate::StoreError;

/// What a store keeps of conversations.
pub trait Conversations {
    /// Adds messages to the end of a room, which is made if there is none: all of them or, if that
    /// fails, none. Nobody else's message comes between them.
    fn post(&self, room: &str, messages: &[NewMessage<'_>]) -> Result<(), StoreError>;

    /// The last messages of a room, the oldest first. A room that nobody has said anything in has
    /// none.
    fn messages(&self, room: &str, last: u32) -> Result<Vec<Message>, StoreError>;

    /// The rooms, by name.
    fn rooms(&self) -> Result<Vec<RoomSummary>, StoreError>;
}

/// Something that is said.
#[derive(Clone, Copy, Debug)]
pub struct NewMessage<'a> {
    /// Who says it.
    pub sender: &'a str,
    /// As what: `user`, `assistant` or whatever else a model is told.
    pub role: &'a str,
    /// What is said.
    pub text: &'a str,
    /// When, in milliseconds since 1970.
    pub at: u64,
}

/// Something that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its place in the room, counted from 1.
    pub number: u64,
    /// Who said it.
    pub sender: String,
    /// As what.
    pub role: String,
    /// What was said.
    pub text: String,
    /// When, in milliseconds since 1970.
    pub at: u64,
}

/// What a list shows of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomSummary {
    /// Its name.
    pub name: String,
    /// How many messages it has.
    pub messages: u64,
    /// When the last one was said, in milliseconds since 1970.
    pub last_at: u64,
}
