//! Stores conversations in `PostgreSQL`.

use super::Postgres;
use super::locks::lock_key;
use super::text::{digest, escaped, unescaped};
use crate::conversations::{Conversations, Message, NewMessage, RoomSummary};
use crate::error::StoreError;
use crate::store::{signed, unsigned};

impl Conversations for Postgres {
    fn post(&self, room: &str, messages: &[NewMessage<'_>]) -> Result<(), StoreError> {
        let times: Vec<i64> = messages.iter().map(|message| signed(message.at)).collect();
        let senders: Vec<_> = messages
            .iter()
            .map(|message| escaped(message.sender))
            .collect();
        let roles: Vec<_> = messages
            .iter()
            .map(|message| escaped(message.role))
            .collect();
        let texts: Vec<_> = messages
            .iter()
            .map(|message| escaped(message.text))
            .collect();
        self.pool.write(|connection| {
            // The lock makes concurrent writers number their messages one after the other.
            let lock = "SELECT pg_advisory_xact_lock($1)";
            connection.execute(lock, &[&lock_key(&self.schema, "room", room)])?;
            connection.execute(
                "INSERT INTO messages (room, digest, number, at, sender, role, text) \
                 SELECT $1, $2, message.number + \
                 (SELECT coalesce(max(number), 0) FROM messages WHERE digest = $2), \
                 at, sender, role, text \
                 FROM unnest($3::bigint[], $4::text[], $5::text[], $6::text[]) \
                 WITH ORDINALITY AS message (at, sender, role, text, number)",
                &[
                    &escaped(room),
                    &digest(room),
                    &times,
                    &senders,
                    &roles,
                    &texts,
                ],
            )?;
            Ok(())
        })
    }

    fn messages(&self, room: &str, last: u32) -> Result<Vec<Message>, StoreError> {
        self.pool.read(|connection| {
            let rows = connection.query(
                "SELECT number, sender, role, text, at FROM messages WHERE digest = $1 \
                 ORDER BY number DESC LIMIT $2",
                &[&digest(room), &i64::from(last)],
            )?;
            let messages = rows.iter().rev().map(|row| {
                Ok(Message {
                    number: unsigned(row.try_get("number")?),
                    sender: unescaped(row.try_get("sender")?),
                    role: unescaped(row.try_get("role")?),
                    text: unescaped(row.try_get("text")?),
                    at: unsigned(row.try_get("at")?),
                })
            });
            messages.collect()
        })
    }

    fn rooms(&self) -> Result<Vec<RoomSummary>, StoreError> {
        self.pool.read(|connection| {
            let rows = connection.query(
                "SELECT DISTINCT ON (room) room, at, count(*) OVER (PARTITION BY room) AS count \
                 FROM messages ORDER BY room, number DESC",
                &[],
            )?;
            let rooms = rows.iter().map(|row| {
                Ok(RoomSummary {
                    name: unescaped(row.try_get("room")?),
                    messages: unsigned(row.try_get("count")?),
                    last_at: unsigned(row.try_get("at")?),
                })
            });
            rooms.collect()
        })
    }
}
