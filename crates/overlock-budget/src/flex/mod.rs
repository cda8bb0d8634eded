//! Who gets how much of a window when not everything fits?
//!
//! Every part of a prompt is an item with a size it would like and bounds it can live with, as in
//! a flexbox. Three rules decide, in this order:
//!
//! 1. Who stays. If even the smallest sizes do not fit, droppable items go, lowest priority first.
//! 2. Who shrinks. If the wanted sizes do not fit, the lowest priority gives way until all of it
//!    is at its floor, then the next; within one priority everybody gives by weight.
//! 3. Who grows. What is left over is handed out by weight, regardless of priority.
//!
//! Everything is exact integer arithmetic: what is handed out adds up to what there is, and equal
//! inputs give equal results. Where two items are equal in everything, the earlier one is better
//! off, so a list should name first what matters more.

mod explain;
mod refuse;
mod share;

#[cfg(test)]
mod tests;

pub use explain::{Blocker, Change};
pub use refuse::{FlexError, Help};

use share::{Claim, hand_out};

/// A part of the window that wants some tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// What explanations call it.
    pub name: &'a str,
    /// What it would like; taken to the nearer bound where it lies outside of them.
    pub basis: u64,
    /// The weight with which it takes room that is left over; 0 takes none.
    pub grow: u32,
    /// The weight with which it gives way; 0 gives nothing, so that its basis is its floor.
    pub shrink: u32,
    /// What it can live with.
    pub min: u64,
    /// What it can use; `None` is as much as there is.
    pub max: Option<u64>,
    /// A higher one gives way later.
    pub priority: i32,
    /// Whether it may be left out altogether.
    pub droppable: bool,
}

impl<'a> Item<'a> {
    /// An item that is always there: it has exactly this size until the fields say otherwise.
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

    /// An item that may be left out: it has exactly this size, or none, until the fields say
    /// otherwise.
    pub fn droppable(name: &'a str, basis: u64) -> Self {
        Self {
            droppable: true,
            ..Self::required(name, basis)
        }
    }

    /// What it would like, within its bounds.
    pub fn wanted(&self) -> u64 {
        self.basis.min(self.ceiling()).max(self.min)
    }

    /// What it has at least while it stays: its `min`, or all it wants if it does not shrink.
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

/// What is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlexOptions {
    /// All the tokens there are.
    pub window: u64,
    /// What nobody gets: the safety margin.
    pub gap: u64,
}

/// What became of one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The tokens it has; 0 if it was dropped.
    pub given: u64,
    /// How that came about.
    pub change: Change,
}

impl Share {
    /// Whether the item was left out.
    pub fn is_dropped(&self) -> bool {
        matches!(self.change, Change::Dropped { .. })
    }
}

/// A window divided among its items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solution {
    /// One for every item, in the order of the items.
    pub shares: Vec<Share>,
    /// What nobody could use.
    pub unused: u64,
    /// What stood in the way of more, if anybody has less than it could use.
    pub blocker: Option<Blocker>,
}

/// Divides a window among items.
///
/// For every solution: the shares and the gap are within the window; every share is within the
/// bounds of its item; nobody is below what it wants while an item of lower priority is above its
/// floor; nobody is dropped while a droppable item of lower priority stays; a larger window drops
/// nothing that a smaller one kept. It is refused only if what must stay does not fit even at its
/// smallest.
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
        // What is left of a `u64` is one.
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

/// The items in the order in which they give way: lowest priority first, then the later one.
fn by_priority(items: &[Item]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..items.len()).rev().collect();
    order.sort_by_key(|&index| items[index].priority);
    order
}

/// Who stays, or nothing if those who must do not fit.
fn choose_kept(items: &[Item], order: &[usize], room: u64) -> Option<Vec<bool>> {
    let mut needed: u128 = items.iter().map(|item| u128::from(item.floor())).sum();
    let mut kept = vec![true; items.len()];
    for &index in order {
        if needed <= u128::from(room) {
            break;
        }
        if items[index].droppable {
            // One that needs nothing goes as well, lest it outlive what matters more.
            kept[index] = false;
            needed -= u128::from(items[index].floor());
        }
    }
    (needed <= u128::from(room)).then_some(kept)
}

/// Takes what is missing from those who stay. Their floors fit, so it is found.
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

/// Hands out what is left over; what comes back nobody could use.
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
