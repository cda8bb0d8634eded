//! Explains the share of an item, and what limits it.

use std::fmt;

use super::{Item, Share};

/// How the share of an item was determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It has its preferred size.
    Basis,
    /// It got remaining tokens.
    Grew {
        /// How many it got.
        by: u64,
        /// Its weight.
        weight: u32,
        /// The weights of all items that got some.
        weights: u64,
        /// Whether its maximum stopped it.
        to_max: bool,
    },
    /// It shrank.
    Shrank {
        /// By how many tokens.
        by: u64,
        /// Its weight.
        weight: u32,
        /// The weights of all items of its priority that could shrink.
        weights: u64,
        /// Whether it is at its floor.
        to_floor: bool,
    },
    /// It was dropped, because more important items left less than its floor.
    Dropped {
        /// The tokens it needed to stay.
        floor: u64,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Basis => write!(formatter, "as wanted"),
            Self::Grew {
                by,
                weight,
                weights,
                to_max,
            } => {
                let end = if to_max { ", to its maximum" } else { "" };
                write!(
                    formatter,
                    "grew by {by} (weight {weight} of {weights}){end}"
                )
            }
            Self::Shrank {
                by,
                weight,
                weights,
                to_floor,
            } => {
                let end = if to_floor { ", to its minimum" } else { "" };
                write!(
                    formatter,
                    "shrank by {by} (weight {weight} of {weights}){end}"
                )
            }
            Self::Dropped { floor } => {
                write!(formatter, "dropped: it needs at least {floor}")
            }
        }
    }
}

/// The constraint whose relaxation would help most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocker {
    /// Tokens are short, and of the items at their floor, this one is the largest.
    Floor {
        /// The place of the item in the list.
        index: usize,
        /// What it holds.
        tokens: u64,
    },
    /// Tokens are short, and this item is the largest that could shrink, but only after items of
    /// lower priority.
    Priority {
        /// The place of the item in the list.
        index: usize,
        /// What it holds.
        tokens: u64,
    },
    /// Tokens are short, and all items have shrunk as far as they can: only a larger window helps.
    Window,
    /// Tokens remain, and of the items at their maximum, this one has the greatest weight.
    Ceiling {
        /// The place of the item in the list.
        index: usize,
        /// Its maximum.
        tokens: u64,
    },
}

/// What limits the items, for the final shares.
pub(super) fn blocker(items: &[Item], shares: &[Share], unused: u128) -> Option<Blocker> {
    let entries = || items.iter().zip(shares).enumerate();
    let short = shares
        .iter()
        .any(|share| matches!(share.change, Change::Shrank { .. } | Change::Dropped { .. }));
    if short {
        let holding = entries()
            .filter(|(_, (item, share))| {
                let gave = matches!(share.change, Change::Shrank { .. });
                !share.is_dropped() && share.given > 0 && (!gave || share.given == item.floor())
            })
            // Reversed, because the last of equals is found and the earliest is preferred.
            .rev()
            .max_by_key(|(_, (_, share))| share.given);
        return Some(match holding {
            Some((index, (item, share))) if share.given == item.floor() => Blocker::Floor {
                index,
                tokens: share.given,
            },
            Some((index, (_, share))) => Blocker::Priority {
                index,
                tokens: share.given,
            },
            None => Blocker::Window,
        });
    }
    if unused == 0 {
        return None;
    }
    entries()
        .filter(|(_, (item, share))| item.grow > 0 && item.max == Some(share.given))
        .rev()
        .max_by_key(|(_, (item, _))| item.grow)
        .map(|(index, (_, share))| Blocker::Ceiling {
            index,
            tokens: share.given,
        })
}
