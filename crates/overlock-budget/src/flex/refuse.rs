//! Says what is too large, by how much, and what would help.

use std::fmt;

use super::{FlexOptions, Item};

/// Why a window cannot be divided among items.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlexError {
    /// What must stay does not fit even at its smallest.
    #[error(
        "what must be in the window needs {needed} tokens and a margin of {gap}, which is {over} \
         more than the window of {window}{}",
        largest.as_ref().map(|name| format!("; the largest part is `{name}`")).unwrap_or_default()
    )]
    TooLarge {
        /// The smallest sizes of all that must stay.
        needed: u64,
        /// The window.
        window: u64,
        /// The safety margin.
        gap: u64,
        /// By how much it is too much.
        over: u64,
        /// Which of the items that must stay is the largest at its smallest.
        largest: Option<String>,
        /// What would help, each on its own; parts first, the largest first.
        help: Vec<Help>,
    },
    /// An item asks for more than it can use.
    #[error("`{name}` has a minimum of {min} above its maximum of {max}")]
    Contradiction {
        /// The item.
        name: String,
        /// Its minimum.
        min: u64,
        /// Its maximum.
        max: u64,
    },
}

/// Something that, done alone, makes everything fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Help {
    /// Make this item smaller, or let it shrink further.
    Shorten {
        /// The item.
        name: String,
        /// What it needs now.
        from: u64,
        /// What it may need at most.
        to: u64,
    },
    /// Take a model with at least this window.
    Window {
        /// The tokens it must have.
        at_least: u64,
    },
}

impl fmt::Display for Help {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shorten { name, from, to } => {
                write!(formatter, "shorten `{name}` from {from} to {to} tokens")
            }
            Self::Window { at_least } => {
                write!(
                    formatter,
                    "use a model with a window of at least {at_least} tokens"
                )
            }
        }
    }
}

/// More advice than this helps nobody.
const ADVICE: usize = 3;

impl FlexError {
    pub(super) fn contradiction(item: &Item) -> Self {
        Self::Contradiction {
            name: item.name.to_owned(),
            min: item.min,
            max: item.ceiling(),
        }
    }

    pub(super) fn too_large(items: &[Item], options: &FlexOptions) -> Self {
        let mut required: Vec<&Item> = items.iter().filter(|item| !item.droppable).collect();
        required.sort_by_key(|item| std::cmp::Reverse(item.floor()));
        let needed: u128 = required.iter().map(|item| u128::from(item.floor())).sum();
        let at_least = needed + u128::from(options.gap);
        let over = at_least.saturating_sub(u128::from(options.window));

        let mut help: Vec<Help> = required
            .iter()
            .take(ADVICE)
            .filter_map(|item| {
                let to = u128::from(item.floor()).checked_sub(over)?;
                Some(Help::Shorten {
                    name: item.name.to_owned(),
                    from: item.floor(),
                    to: narrow(to),
                })
            })
            .collect();
        help.push(Help::Window {
            at_least: narrow(at_least),
        });
        Self::TooLarge {
            needed: narrow(needed),
            window: options.window,
            gap: options.gap,
            over: narrow(over),
            largest: required
                .first()
                .filter(|item| item.floor() > 0)
                .map(|item| item.name.to_owned()),
            help,
        }
    }
}

fn narrow(tokens: u128) -> u64 {
    u64::try_from(tokens).unwrap_or(u64::MAX)
}
