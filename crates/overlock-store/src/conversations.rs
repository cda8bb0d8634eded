//! Messages in rooms.

use crate::StoreError;

/// Stores conversations.
pub trait Conversations {
    /// Appends messages to a room, which is created if it is missing. Either all of them are added,
    /// one directly after the other, or none.
    fn post(&self, room: &str, messages: &[NewMessage<'_>]) -> Result<(), StoreError>;

    /// The last messages of a room, the oldest first. An unknown room has none.
    fn messages(&self, room: &str, last: u32) -> Result<Vec<Message>, StoreError>;

    /// The rooms, by name.
    fn rooms(&self) -> Result<Vec<RoomSummary>, StoreError>;
}

/// A message to add.
#[derive(Clone, Copy, Debug)]
pub struct NewMessage<'a> {
    /// The sender.
    pub sender: &'a str,
    /// The role of the message for a model, such as `user` or `assistant`.
    pub role: &'a str,
    /// The text.
    pub text: &'a str,
    /// When it was sent, in milliseconds since 1970.
    pub at: u64,
}

/// A stored message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its number in the room, counted from 1.
    pub number: u64,
    /// The sender.
    pub sender: String,
    /// The role of the message for a model.
    pub role: String,
    /// The text.
    pub text: String,
    /// When it was sent, in milliseconds since 1970.
    pub at: u64,
}

/// What a list shows of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomSummary {
    /// Its name.
    pub name: String,
    /// How many messages it has.
    pub messages: u64,
    /// When the last one was sent, in milliseconds since 1970.
    pub last_at: u64,
}
