//! Keeps conversations in `PostgreSQL`.

use super::locks::number as lock_number;
use super::text::{digest, given, kept};
use super::{Postgres, signed, unsigned};
use crate::conversations::{Conversations, Message, NewMessage, RoomSummary};
use crate::error::StoreError;

impl Conversations for Postgres {
    fn post(&self, room: &str, messages: &[NewMessage<'_>]) -> Result<(), StoreError> {
        let times: Vec<i64> = messages.iter().map(|message| signed(message.at)).collect();
        let senders: Vec<_> = messages
            .iter()
            .map(|message| kept(message.sender))
            .collect();
        let roles: Vec<_> = messages.iter().map(|message| kept(message.role)).collect();
        let texts: Vec<_> = messages.iter().map(|message| kept(message.text)).collect();
        self.pool.write(|connection| {
            // Whoever waits here sees what the one before has said.
            let lock = "SELECT pg_advisory_xact_lock($1)";
            connection.execute(lock, &[&lock_number(&self.schema, "room", room)])?;
            connection.execute(
                "INSERT INTO messages (room, digest, number, at, sender, role, text) \
                 SELECT $1, $2, said.number + \
                 (SELECT coalesce(max(number), 0) FROM messages WHERE digest = $2), \
                 at, sender, role, text \
                 FROM unnest($3::bigint[], $4::text[], $5::text[], $6::text[]) \
                 WITH ORDINALITY AS said (at, sender, role, text, number)",
                &[&kept(room), &digest(room), &times, &senders, &roles, &texts],
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
                    sender: given(row.try_get("sender")?),
                    role: given(row.try_get("role")?),
                    text: given(row.try_get("text")?),
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
                    name: given(row.try_get("room")?),
                    messages: unsigned(row.try_get("count")?),
                    last_at: unsigned(row.try_get("at")?),
                })
            });
            rooms.collect()
        })
    }
}
