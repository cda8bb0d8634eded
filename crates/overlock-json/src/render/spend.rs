//! Decides which values fit the budget, from the cut to the root.

use super::outline::{Outline, ScalarSpan};
use super::token::{self, Stop};
use super::{CutValue, LEAST_LIMIT, RenderOptions, SummaryMode};

/// A smaller rest of the budget is not spent.
const LEAST_LEFT: usize = 50;

/// The decisions. Values that are not mentioned are written in full.
pub(super) struct Spending {
    /// The total cost of the values written in full, without a kept cut value.
    #[cfg_attr(not(test), expect(dead_code, reason = "the law that tests hold it to"))]
    pub(super) spent: usize,
    /// The starts of the values that did not fit, in document order.
    pub(super) oversized: Vec<usize>,
    /// How the value at the cut is written.
    pub(super) cut_value: Shown,
    /// Where the budget ran out, if it did.
    pub(super) summary: Option<Summary>,
    /// What is shown above that level.
    pub(super) summary_mode: SummaryMode,
}

impl Spending {
    /// Whether everything is written in full.
    pub(super) fn is_all(&self) -> bool {
        self.summary.is_none()
            && self.oversized.is_empty()
            && matches!(self.cut_value, Shown::Whole)
    }
}

/// How much of a value is written.
pub(super) enum Shown {
    /// All of it.
    Whole,
    /// Its type.
    Hint,
    /// Its opening quote, a mark, and its text from this offset on.
    Tail(usize),
}

/// The point at which summary mode began.
pub(super) struct Summary {
    /// The bracket of the level where it began: above it only structure is written.
    pub(super) level: usize,
    /// The start of the item where it began: in its level, the items before it are hints.
    pub(super) item: usize,
    /// The offset where it began: in its item, the values after it are hints.
    pub(super) at: usize,
}

/// Spends a budget on the values of a document.
pub(super) fn spend(
    outline: &Outline<'_>,
    options: &RenderOptions,
    measure: &dyn Fn(&str) -> usize,
) -> Spending {
    let mut purse = Purse::new(options.budget);
    let cut_value = match &outline.cut_value {
        Some(value) => spend_on_cut_value(outline, value, options, measure, &mut purse),
        None => Shown::Whole,
    };
    let mut oversized = Vec::new();
    // A level takes at least one character, so no more levels can be written.
    let most_levels = options
        .limit
        .map_or(usize::MAX, |limit| limit.max(LEAST_LIMIT));
    let summary = spend_on_siblings(outline, most_levels, measure, &mut purse, &mut oversized);
    oversized.sort_unstable();
    Spending {
        spent: options.budget - purse.left - purse.forfeited,
        oversized,
        cut_value,
        summary,
        summary_mode: options.summary,
    }
}

fn spend_on_cut_value(
    outline: &Outline<'_>,
    value: &ScalarSpan,
    options: &RenderOptions,
    measure: &dyn Fn(&str) -> usize,
    purse: &mut Purse,
) -> Shown {
    let content = &outline.text[value.content.clone()];
    let near = token::end_within(content, outline.look_back);
    let is_near = near.len() == content.len();
    if options.cut_value == CutValue::Keep {
        return if is_near {
            Shown::Whole
        } else {
            Shown::Tail(value.content.end - near.len())
        };
    }
    if purse.is_empty() {
        return Shown::Hint;
    }
    if is_near && purse.pay(measure(content)) {
        return Shown::Whole;
    }
    if options.cut_value == CutValue::Hint {
        return Shown::Hint;
    }
    let left = purse.left;
    let tail = token::longest_tail(near, &|tail| measure(tail) <= left);
    if tail.is_empty() || !purse.pay(measure(tail)) {
        return Shown::Hint;
    }
    Shown::Tail(value.content.end - tail.len())
}

/// Spends the rest on the siblings of the path, the nearest first; returns where it ran out.
fn spend_on_siblings(
    outline: &Outline<'_>,
    most_levels: usize,
    measure: &dyn Fn(&str) -> usize,
    purse: &mut Purse,
    oversized: &mut Vec<usize>,
) -> Option<Summary> {
    let innermost = outline.levels().next()?;
    if purse.is_empty() {
        return Some(Summary {
            level: innermost.open,
            item: innermost.end,
            at: 0,
        });
    }
    let bytes = outline.text.as_bytes();
    let levels = outline.levels().take(most_levels);
    for level in levels.filter(|level| outline.has_items(level)) {
        for item in outline.siblings_backwards(&level) {
            let mut rest = item.value;
            while let Some(span) = token::next_value(bytes, rest.clone(), Stop::Leaf) {
                rest.start = span.end;
                let leaf = ScalarSpan::at_span(outline.text, span);
                if !purse.pay(measure(&outline.text[leaf.content])) {
                    oversized.push(leaf.span.start);
                }
                if purse.is_empty() {
                    return Some(Summary {
                        level: level.open,
                        item: item.start,
                        at: rest.start,
                    });
                }
            }
        }
    }
    None
}

/// The rest of the budget.
struct Purse {
    left: usize,
    /// The rest that was too small to be spent.
    forfeited: usize,
}

impl Purse {
    fn new(budget: usize) -> Self {
        let mut purse = Self {
            left: budget,
            forfeited: 0,
        };
        purse.settle();
        purse
    }

    /// Pays for a value if it fits; returns whether it did.
    fn pay(&mut self, size: usize) -> bool {
        let Some(left) = self.left.checked_sub(size) else {
            return false;
        };
        self.left = left;
        self.settle();
        true
    }

    fn settle(&mut self) {
        if self.left < LEAST_LEFT {
            self.forfeited += self.left;
            self.left = 0;
        }
    }

    /// Whether summary mode has begun.
    fn is_empty(&self) -> bool {
        self.left == 0
    }
}
