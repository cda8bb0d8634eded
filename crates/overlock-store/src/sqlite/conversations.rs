//! Stores conversations in SQLite.

use rusqlite::params;

use super::Sqlite;
use crate::conversations::{Conversations, Message, NewMessage, RoomSummary};
use crate::error::StoreError;
use crate::store::{signed, unsigned};

impl Conversations for Sqlite {
    fn post(&self, room: &str, messages: &[NewMessage<'_>]) -> Result<(), StoreError> {
        self.write(|transaction| {
            let mut insert = transaction.prepare_cached(
                "INSERT INTO messages (room, number, sender, role, at, text) VALUES \
                 (?1, 1 + (SELECT coalesce(max(number), 0) FROM messages WHERE room = ?1), \
                 ?2, ?3, ?4, ?5)",
            )?;
            for message in messages {
                let at = signed(message.at);
                insert.execute(params![
                    room,
                    message.sender,
                    message.role,
                    at,
                    message.text
                ])?;
            }
            Ok(())
        })
    }

    fn messages(&self, room: &str, last: u32) -> Result<Vec<Message>, StoreError> {
        self.read(|transaction| {
            let mut select = transaction.prepare_cached(
                "SELECT number, sender, role, text, at FROM messages WHERE room = ?1 \
                 ORDER BY number DESC LIMIT ?2",
            )?;
            let messages = select.query_map(params![room, last], |row| {
                Ok(Message {
                    number: unsigned(row.get(0)?),
                    sender: row.get(1)?,
                    role: row.get(2)?,
                    text: row.get(3)?,
                    at: unsigned(row.get(4)?),
                })
            })?;
            let mut messages: Vec<Message> = messages.collect::<Result<_, _>>()?;
            messages.reverse();
            Ok(messages)
        })
    }

    fn rooms(&self) -> Result<Vec<RoomSummary>, StoreError> {
        self.read(|transaction| {
            // With `max`, SQLite takes the other columns from the row with the maximum.
            let mut select = transaction.prepare_cached(
                "SELECT room, count(*), max(number), at FROM messages GROUP BY room ORDER BY room",
            )?;
            let rooms = select.query_map([], |row| {
                Ok(RoomSummary {
                    name: row.get(0)?,
                    messages: unsigned(row.get(1)?),
                    last_at: unsigned(row.get(3)?),
                })
            })?;
            Ok(rooms.collect::<Result<_, _>>()?)
        })
    }
}
