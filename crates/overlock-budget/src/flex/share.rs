//! Divides an amount by weight among claims with limits.
//!
//! No claim exceeds its limit, nothing is lost to rounding, and a claim below its limit gets its exact
//! proportion of what the claims at their limits leave, rounded by largest remainder.

use std::cmp::{Ordering, Reverse};

/// A participant in a division.
#[derive(Debug)]
pub(super) struct Claim {
    /// Which item it is for.
    pub(super) index: usize,
    /// Its weight, at least 1.
    pub(super) weight: u32,
    /// The most it can take, at least 1.
    pub(super) limit: u64,
    /// What it gets.
    pub(super) amount: u64,
}

impl Claim {
    /// A claim, unless it could take nothing.
    pub(super) fn new(index: usize, weight: u32, limit: u64) -> Option<Self> {
        (weight > 0 && limit > 0).then_some(Self {
            index,
            weight,
            limit,
            amount: 0,
        })
    }

    /// Compares how soon two claims are at their limits as the amount rises.
    fn fills_before(&self, other: &Self) -> Ordering {
        let one = u128::from(self.limit) * u128::from(other.weight);
        one.cmp(&(u128::from(other.limit) * u128::from(self.weight)))
    }
}

/// Sets every claim's amount; returns the sum of all weights and the amount that no claim could take.
///
/// The order of the claims is arbitrary afterwards.
pub(super) fn hand_out(claims: &mut [Claim], amount: u128) -> (u64, u128) {
    let all_weights: u128 = claims.iter().map(|claim| u128::from(claim.weight)).sum();
    let mut weights = all_weights;
    let mut left = amount;

    // Once claims are sorted by how soon they are full, those that are full come first.
    claims.sort_by(|one, other| one.fills_before(other).then(one.index.cmp(&other.index)));
    let mut full = 0;
    for claim in &mut *claims {
        let (weight, limit) = (u128::from(claim.weight), u128::from(claim.limit));
        if !fills(limit, weight, left, weights) {
            break;
        }
        claim.amount = claim.limit;
        left -= limit;
        weights -= weight;
        full += 1;
    }
    let open = &mut claims[full..];
    if !open.is_empty() {
        divide(open, left, weights);
        left = 0;
    }
    // Weights are 32 bits wide, so their sum is beyond 64 only in a list that no memory holds.
    (u64::try_from(all_weights).unwrap_or(u64::MAX), left)
}

/// Whether the proportion `left * weight / weights` is at least the limit.
fn fills(limit: u128, weight: u128, left: u128, weights: u128) -> bool {
    // An amount is the sum of at most as many 64-bit numbers as there are items, so it leaves
    // the 32 bits of a weight free, or is so large that it fills everything.
    left.checked_mul(weight)
        .is_none_or(|proportion| proportion >= limit * weights)
}

/// Divides all of `left` among claims of which none will be full before the last unit.
fn divide(open: &mut [Claim], left: u128, weights: u128) {
    let mut handed_out = 0;
    let mut remainders = Vec::with_capacity(open.len());
    for (place, claim) in open.iter_mut().enumerate() {
        let product = left * u128::from(claim.weight);
        // Less than the limit, which is 64 bits wide.
        claim.amount = u64::try_from(product / weights).unwrap_or(claim.limit);
        handed_out += u128::from(claim.amount);
        remainders.push((Reverse(product % weights), claim.index, place));
    }
    remainders.sort_unstable();
    let rest = usize::try_from(left - handed_out).unwrap_or(remainders.len());
    // Fewer units are left than there are nonzero remainders, so no claim exceeds its limit.
    for &(_, _, place) in remainders.iter().take(rest) {
        open[place].amount += 1;
    }
}
