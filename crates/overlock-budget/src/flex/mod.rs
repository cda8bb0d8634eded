//! Divides a window among items, like a flexbox.
//!
//! Every part of a prompt is an item with a preferred size and bounds. Three rules decide, in this
//! order:
//!
//! 1. Dropping: if even the smallest sizes do not fit, droppable items are dropped, lowest priority
//!    first.
//! 2. Shrinking: if the preferred sizes do not fit, the items of the lowest priority shrink to their
//!    floors, then the next; items of one priority shrink in proportion to their weights.
//! 3. Growing: the remaining tokens are divided by weight, regardless of priority.
//!
//! All arithmetic is exact: the shares add up to the window, and equal inputs give equal results. Of
//! two items that are equal in everything, the earlier one is preferred.

mod explain;
mod refuse;
mod share;

#[cfg(test)]
mod tests;

pub use explain::{Blocker, Change};
pub use refuse::{FlexError, Help};

use share::{Claim, hand_out};

/// An item that gets a share of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// Its name in explanations.
    pub name: &'a str,
    /// Its preferred size, limited to its bounds.
    pub basis: u64,
    /// The weight with which it gets remaining tokens; 0 gets none.
    pub grow: u32,
    /// The weight with which it shrinks; with 0 it does not, so its basis is its floor.
    pub shrink: u32,
    /// Its minimum size.
    pub min: u64,
    /// Its maximum size; `None` is unlimited.
    pub max: Option<u64>,
    /// An item with a higher priority shrinks later.
    pub priority: i32,
    /// Whether it may be dropped.
    pub droppable: bool,
}

impl<'a> Item<'a> {
    /// A required item of exactly this size; change the fields for other bounds.
    pub fn required(name: &'a str, basis: u64) -> Self {
        Self {
            name,
            basis,
            grow: 0,
            shrink: 0,
            min: 0,
            max: None,
            priority: 100,
            droppable: false,
        }
    }

    /// A droppable item of exactly this size; change the fields for other bounds.
    pub fn droppable(name: &'a str, basis: u64) -> Self {
        Self {
            droppable: true,
            ..Self::required(name, basis)
        }
    }

    /// Its preferred size, within its bounds.
    pub fn wanted(&self) -> u64 {
        self.basis.min(self.ceiling()).max(self.min)
    }

    /// Its smallest size: its `min`, or its preferred size if it does not shrink.
    pub fn floor(&self) -> u64 {
        if self.shrink == 0 {
            self.wanted()
        } else {
            self.min
        }
    }

    fn ceiling(&self) -> u64 {
        self.max.unwrap_or(u64::MAX)
    }
}

/// Options of [`flex`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlexOptions {
    /// The tokens of the window.
    pub window: u64,
    /// The safety margin, which stays free.
    pub gap: u64,
}

/// The share of one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The tokens it has; 0 if it was dropped.
    pub given: u64,
    /// How it was determined.
    pub change: Change,
}

impl Share {
    /// Whether the item was dropped.
    pub fn is_dropped(&self) -> bool {
        matches!(self.change, Change::Dropped { .. })
    }
}

/// A window divided among its items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solution {
    /// One for every item, in the order of the items.
    pub shares: Vec<Share>,
    /// The tokens that no item could use.
    pub unused: u64,
    /// What limited the items, if any of them could use more.
    pub blocker: Option<Blocker>,
}

/// Divides a window among items.
///
/// For every solution: the shares and the gap are within the window; every share is within the
/// bounds of its item; no item is below its preferred size while an item of lower priority is above
/// its floor; no item is dropped while a droppable item of lower priority stays; a larger window
/// drops nothing that a smaller one keeps. An error is returned only if the required items do not fit
/// at their smallest.
///
/// ```
/// use overlock_budget::{FlexOptions, Item, flex};
///
/// let items = [
///     Item { shrink: 3, ..Item::required("history", 600) },
///     Item { shrink: 1, ..Item::required("context", 600) },
/// ];
/// let solution = flex(&items, &FlexOptions { window: 1000, gap: 100 })?;
/// assert_eq!(solution.shares[0].given, 375);
/// assert_eq!(solution.shares[1].given, 525);
/// assert_eq!(
///     solution.shares[0].change.to_string(),
///     "shrank by 225 (weight 3 of 4)"
/// );
/// # Ok::<(), overlock_budget::FlexError>(())
/// ```
pub fn flex(items: &[Item], options: &FlexOptions) -> Result<Solution, FlexError> {
    if let Some(item) = items.iter().find(|item| item.min > item.ceiling()) {
        return Err(FlexError::contradiction(item));
    }
    let Some(room) = options.window.checked_sub(options.gap) else {
        return Err(FlexError::too_large(items, options));
    };

    let order = by_priority(items);
    let Some(kept) = choose_kept(items, &order, room) else {
        return Err(FlexError::too_large(items, options));
    };
    let mut shares: Vec<Share> = items
        .iter()
        .zip(&kept)
        .map(|(item, kept)| Share::at_basis(item, *kept))
        .collect();

    let wanted: u128 = shares.iter().map(|share| u128::from(share.given)).sum();
    let room = u128::from(room);
    let unused = if wanted > room {
        shrink(items, &order, &mut shares, wanted - room);
        0
    } else {
        grow(items, &mut shares, room - wanted)
    };
    let blocker = explain::blocker(items, &shares, unused);
    Ok(Solution {
        shares,
        // The rest of a `u64` is a `u64`.
        unused: u64::try_from(unused).unwrap_or(u64::MAX),
        blocker,
    })
}

impl Share {
    fn at_basis(item: &Item, kept: bool) -> Self {
        let (given, change) = if kept {
            (item.wanted(), Change::Basis)
        } else {
            let floor = item.floor();
            (0, Change::Dropped { floor })
        };
        Self { given, change }
    }
}

/// The items in the order in which they shrink: lowest priority first, then the later one.
fn by_priority(items: &[Item]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..items.len()).rev().collect();
    order.sort_by_key(|&index| items[index].priority);
    order
}

/// Whether each item stays; none if the required items do not fit.
fn choose_kept(items: &[Item], order: &[usize], room: u64) -> Option<Vec<bool>> {
    let mut needed: u128 = items.iter().map(|item| u128::from(item.floor())).sum();
    let mut kept = vec![true; items.len()];
    for &index in order {
        if needed <= u128::from(room) {
            break;
        }
        if items[index].droppable {
            // An item of size zero is dropped, too, so that it does not outlive more important ones.
            kept[index] = false;
            needed -= u128::from(items[index].floor());
        }
    }
    (needed <= u128::from(room)).then_some(kept)
}

/// Shrinks the items that stay by the missing tokens. This succeeds, because their floors fit.
fn shrink(items: &[Item], order: &[usize], shares: &mut [Share], mut missing: u128) {
    let mut claims = Vec::new();
    for peers in order.chunk_by(|&one, &other| items[one].priority == items[other].priority) {
        claims.clear();
        claims.extend(peers.iter().filter_map(|&index| {
            let limit = shares[index].given.checked_sub(items[index].floor())?;
            Claim::new(index, items[index].shrink, limit)
        }));
        let (weights, left) = hand_out(&mut claims, missing);
        for claim in claims.iter().filter(|claim| claim.amount > 0) {
            let share = &mut shares[claim.index];
            share.given -= claim.amount;
            share.change = Change::Shrank {
                by: claim.amount,
                weight: claim.weight,
                weights,
                to_floor: claim.amount == claim.limit,
            };
        }
        missing = left;
        if missing == 0 {
            break;
        }
    }
}

/// Divides the remaining tokens; returns those that no item could use.
fn grow(items: &[Item], shares: &mut [Share], left_over: u128) -> u128 {
    let mut claims: Vec<Claim> = items
        .iter()
        .zip(&*shares)
        .enumerate()
        .filter(|(_, (_, share))| !share.is_dropped())
        .filter_map(|(index, (item, share))| {
            Claim::new(index, item.grow, item.ceiling() - share.given)
        })
        .collect();
    let (weights, left) = hand_out(&mut claims, left_over);
    for claim in claims.iter().filter(|claim| claim.amount > 0) {
        let share = &mut shares[claim.index];
        share.given += claim.amount;
        share.change = Change::Grew {
            by: claim.amount,
            weight: claim.weight,
            weights,
            to_max: claim.amount == claim.limit,
        };
    }
    left
}
