//! Says why an item has what it has, and what stands in the way of more.

use std::fmt;

use super::{Item, Share};

/// How an item came to its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It has what it wanted.
    Basis,
    /// It took room that was left over.
    Grew {
        /// How much it took.
        by: u64,
        /// Its weight.
        weight: u32,
        /// The weights of all who took some.
        weights: u64,
        /// Whether its maximum stopped it.
        to_max: bool,
    },
    /// It gave way.
    Shrank {
        /// How much it gave.
        by: u64,
        /// Its weight.
        weight: u32,
        /// The weights of all of its priority who could give.
        weights: u64,
        /// Whether it has nothing left to give.
        to_floor: bool,
    },
    /// It was left out, since those that matter more left less than its floor.
    Dropped {
        /// What it would have needed to stay.
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
    /// Room is short, and of those that can give no more this item holds the most.
    Floor {
        /// The place of the item in the list.
        index: usize,
        /// What it holds.
        tokens: u64,
    },
    /// Room is short, and this item holds the most although it could give: others, of lower
    /// priority, have to give first.
    Priority {
        /// The place of the item in the list.
        index: usize,
        /// What it holds.
        tokens: u64,
    },
    /// Room is short, and all that hold anything have given what they could: only a larger window
    /// helps.
    Window,
    /// Room is left over, and of those that would take it this item, at its maximum, has the
    /// greatest weight.
    Ceiling {
        /// The place of the item in the list.
        index: usize,
        /// Its maximum.
        tokens: u64,
    },
}

/// What stands in the way, once all shares are known.
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
            // Of equals the last is found, which should be the earliest.
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
