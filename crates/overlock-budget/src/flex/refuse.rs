//! Reports what is too large, by how much, and what would help.

use std::fmt;

use super::{FlexOptions, Item};

/// Why a window cannot be divided among items.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlexError {
    /// The required items do not fit even at their smallest.
    #[error(
        "what must be in the window needs {needed} tokens and a margin of {gap}, which is {over} \
         more than the window of {window}{}",
        largest.as_ref().map(|name| format!("; the largest part is `{name}`")).unwrap_or_default()
    )]
    TooLarge {
        /// The sum of the smallest sizes of the required items.
        needed: u64,
        /// The window.
        window: u64,
        /// The safety margin.
        gap: u64,
        /// By how many tokens it is exceeded.
        over: u64,
        /// The required item with the largest minimum.
        largest: Option<String>,
        /// Changes that would each help alone; items first, the largest first.
        help: Vec<Help>,
    },
    /// The bounds of an item contradict each other.
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

/// A change that alone makes everything fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Help {
    /// Make this item smaller, or let it shrink further.
    Shorten {
        /// The item.
        name: String,
        /// Its current size.
        from: u64,
        /// The size that would fit.
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

/// How many changes are suggested at most.
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
