//! Trims a conversation to its newest messages.
//!
//! System prompts and the open turn always stay: the last user message, and the tool calls and
//! results after it. Older turns are dropped as a whole, oldest first, so that roles still alternate
//! and a tool call is never separated from its result. The order is kept.
//!
//! Counting is the expensive part. It begins at the newest message and stops at the limit, so the
//! cost depends on the messages that stay.

mod summary;
mod units;

#[cfg(test)]
mod tests;

pub use summary::{Summary, summarise};
pub use units::Units;

/// The role of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The application: system prompts and the like.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool that the model called.
    Tool,
}

/// The properties of a message that decide whether it stays.
pub trait Message {
    /// Its role.
    fn role(&self) -> Role;

    /// The identifiers of its tool calls.
    fn calls(&self) -> Vec<&str>;

    /// The identifiers of the tool calls whose results it contains.
    fn answers(&self) -> Vec<&str>;
}

/// Counts messages in the form in which they are sent.
pub trait CountMessages<M> {
    /// The tokens of one message in a conversation, or any number above `limit` if there are more.
    fn message(&self, message: &M, limit: u64) -> u64;

    /// The tokens of these messages sent together, which may differ from their sum.
    fn conversation(&self, messages: &[&M]) -> u64;
}

/// A trimmed conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trimmed {
    /// The indices of the messages that stay, in order.
    pub kept: Vec<usize>,
    /// The indices of the dropped messages, in order.
    pub dropped: Vec<usize>,
    /// The tokens of those that stay, counted together.
    pub tokens: u64,
}

/// Why a conversation cannot be trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrimError {
    /// The messages that always stay do not fit.
    #[error(
        "the system prompt ({system} tokens) and the open turn ({open_turn} tokens) are {over} \
         tokens more than the limit of {limit}"
    )]
    TooLarge {
        /// The tokens of all system prompts.
        system: u64,
        /// The tokens of the last user message and the messages after it.
        open_turn: u64,
        /// The limit.
        limit: u64,
        /// By how much both together exceed the limit.
        over: u64,
    },
}

/// Keeps the newest messages that count at most `limit` together.
///
/// ```
/// use overlock_budget::{CountMessages, Message, Role, trim};
///
/// struct Line(Role, &'static str);
///
/// impl Message for Line {
///     fn role(&self) -> Role { self.0 }
///     fn calls(&self) -> Vec<&str> { vec![] }
///     fn answers(&self) -> Vec<&str> { vec![] }
/// }
///
/// struct Words;
///
/// impl CountMessages<Line> for Words {
///     fn message(&self, line: &Line, _limit: u64) -> u64 {
///         line.1.split(' ').count() as u64
///     }
///     fn conversation(&self, lines: &[&Line]) -> u64 {
///         lines.iter().map(|line| self.message(line, u64::MAX)).sum()
///     }
/// }
///
/// let conversation = [
///     Line(Role::System, "Be brief."),
///     Line(Role::User, "What is the longest river in the world?"),
///     Line(Role::Assistant, "The Nile."),
///     Line(Role::User, "And the second?"),
/// ];
/// let trimmed = trim(&conversation, 10, &Words)?;
/// assert_eq!(trimmed.kept, [0, 3]);
/// assert_eq!(trimmed.tokens, 5);
/// # Ok::<(), overlock_budget::TrimError>(())
/// ```
pub fn trim<M: Message>(
    messages: &[M],
    limit: u64,
    counter: &dyn CountMessages<M>,
) -> Result<Trimmed, TrimError> {
    let units = Units::of(messages);
    let required = required_tokens(messages, &units, limit, counter)?;

    // The newest units that fit, as far as messages can be counted one by one.
    let mut room = limit.saturating_sub(required);
    let mut kept_units = Vec::new();
    for unit in units.newest_first() {
        let Some(tokens) = unit_tokens(messages, units.free(unit.clone()), room, counter) else {
            break;
        };
        room -= tokens;
        kept_units.push((unit.start, tokens));
    }

    // Counts the messages together, and drops the oldest as long as they exceed the limit.
    loop {
        let start = kept_units
            .last()
            .map_or(units.open_start(), |(start, _)| *start);
        let kept: Vec<usize> = units.kept_from(start).collect();
        let tokens = counter.conversation(&select(messages, &kept));
        if tokens <= limit || kept_units.is_empty() {
            let dropped = units.dropped_before(start).collect();
            return Ok(Trimmed {
                kept,
                dropped,
                tokens,
            });
        }
        let mut over = tokens - limit;
        while let Some((_, tokens)) = kept_units.pop() {
            over = over.saturating_sub(tokens);
            if over == 0 {
                break;
            }
        }
    }
}

/// The tokens of the messages that always stay, if they fit.
fn required_tokens<M: Message>(
    messages: &[M],
    units: &Units,
    limit: u64,
    counter: &dyn CountMessages<M>,
) -> Result<u64, TrimError> {
    let required: Vec<usize> = units.kept_from(units.open_start()).collect();
    let tokens = counter.conversation(&select(messages, &required));
    if tokens <= limit {
        return Ok(tokens);
    }
    let alone = |is_system: bool| {
        let places = required.iter().copied();
        let places: Vec<usize> = places
            .filter(|&place| (messages[place].role() == Role::System) == is_system)
            .collect();
        if places.is_empty() {
            return 0;
        }
        counter.conversation(&select(messages, &places))
    };
    Err(TrimError::TooLarge {
        system: alone(true),
        open_turn: alone(false),
        limit,
        over: tokens - limit,
    })
}

/// The tokens of some messages, unless they exceed the limit.
fn unit_tokens<M>(
    messages: &[M],
    places: impl Iterator<Item = usize>,
    room: u64,
    counter: &dyn CountMessages<M>,
) -> Option<u64> {
    let mut left = room;
    for place in places {
        left = left.checked_sub(counter.message(&messages[place], left))?;
    }
    Some(room - left)
}

fn select<'a, M>(messages: &'a [M], places: &[usize]) -> Vec<&'a M> {
    places.iter().map(|&place| &messages[place]).collect()
}
