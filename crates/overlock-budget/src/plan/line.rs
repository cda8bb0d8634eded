//! Orders the pieces of a prompt by when they would be dropped.
//!
//! Messages, tools, memories and context blocks cannot be split to the token, so the division of the
//! window is used as an order: the piece that would be dropped last comes first. The order does not
//! depend on the window, and a plan keeps a prefix of it. So a larger window keeps everything that a
//! smaller one keeps, and fewer tokens are unused than the next piece needs.

use super::options::PartOptions;

/// The parts that are made of pieces, in the order of the arrays here.
pub(super) const TOOLS: usize = 0;
pub(super) const HISTORY: usize = 1;
pub(super) const CONTEXT: usize = 2;
pub(super) const MEMORIES: usize = 3;
/// Batches of old tool results without marks, which come last.
pub(super) const RESULTS: usize = 4;
pub(super) const PARTS: usize = 5;

/// The number of pieces of each part that stay.
pub(super) type Kept = [usize; PARTS];

/// The pieces of a part, the one that is dropped last first.
#[derive(Clone, Debug)]
pub(super) struct Pieces {
    /// The tokens of none, one, two … of them; never empty.
    cumulative: Vec<u64>,
    /// Whether all were counted. If not, the last figure is too small.
    pub(super) complete: bool,
}

impl Pieces {
    /// Counts pieces until they exceed the limit.
    pub(super) fn gather(
        pieces: usize,
        limit: u64,
        count: impl Fn(usize, u64) -> Option<u64>,
    ) -> Self {
        let mut cumulative = vec![0];
        let mut sum: u64 = 0;
        for piece in 0..pieces {
            let left = limit - sum;
            let Some(tokens) = count(piece, left).filter(|tokens| *tokens <= left) else {
                cumulative.push(limit.saturating_add(1));
                return Self {
                    cumulative,
                    complete: false,
                };
            };
            sum += tokens;
            cumulative.push(sum);
        }
        Self {
            cumulative,
            complete: true,
        }
    }

    /// Pieces with known sums.
    pub(super) fn from_sums(sums: impl Iterator<Item = u64>) -> Self {
        Self {
            cumulative: std::iter::once(0).chain(sums).collect(),
            complete: true,
        }
    }

    /// The tokens of the first pieces.
    pub(super) fn tokens(&self, pieces: usize) -> u64 {
        self.cumulative.get(pieces).copied().unwrap_or(u64::MAX)
    }

    /// How many were counted.
    pub(super) fn len(&self) -> usize {
        self.cumulative.len() - 1
    }

    /// The tokens of all of them, or at least that many.
    pub(super) fn all(&self) -> u64 {
        self.tokens(self.len())
    }
}

/// One step of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// This many pieces of this part stay.
    Keep { part: usize, pieces: usize },
    /// The answer takes its tokens beyond the minimum.
    Answer,
}

/// The order of all optional pieces, with the answer where it precedes some of them.
pub(super) fn line(
    parts: &[Pieces; PARTS],
    options: &[PartOptions; PARTS],
    answer: Option<i32>,
) -> Vec<Step> {
    let mut steps = Vec::new();
    // Minimums come first, by descending priority.
    let mut order = [TOOLS, HISTORY, CONTEXT, MEMORIES, RESULTS];
    order.sort_by_key(|&part| std::cmp::Reverse(options[part].priority));
    let first = order.map(|part| {
        let floor = floor(&parts[part], &options[part]);
        steps.extend((1..=floor).map(|pieces| Step::Keep { part, pieces }));
        (part, floor)
    });

    let mut answer = answer;
    for peers in first.chunk_by(|one, other| options[one.0].priority == options[other.0].priority) {
        let priority = options[peers[0].0].priority;
        if answer.is_some_and(|answer| answer > priority) {
            answer = None;
            steps.push(Step::Answer);
        }
        let mut rest: Vec<Step> = Vec::new();
        for &(part, floor) in peers {
            rest.extend(rest_of(part, floor, &parts[part], &options[part]));
        }
        if peers.len() > 1 {
            rest.sort_by(|one, other| gives_later(parts, options, *one, *other));
        }
        steps.extend(rest);
    }
    steps
}

/// How many pieces are within the minimum of their part.
fn floor(pieces: &Pieces, options: &PartOptions) -> usize {
    if options.required || options.shrink == 0 {
        return 0;
    }
    let most = options.max.unwrap_or(u64::MAX).min(options.min);
    (1..=pieces.len())
        .take_while(|&count| pieces.tokens(count) <= most)
        .count()
}

fn rest_of(
    part: usize,
    floor: usize,
    pieces: &Pieces,
    options: &PartOptions,
) -> impl Iterator<Item = Step> {
    let all = pieces.len();
    let first = match options {
        PartOptions { required: true, .. } => all + 1,
        // All or nothing.
        PartOptions { shrink: 0, .. } => all.max(1),
        _ => floor + 1,
    };
    let max = options.max.unwrap_or(u64::MAX);
    (first..=all)
        .take_while(move |&count| pieces.tokens(count) <= max)
        .map(move |pieces| Step::Keep { part, pieces })
}

/// Whether a piece of one part is dropped later than that of another with the same priority: parts
/// shrink in proportion to their weights.
fn gives_later(
    parts: &[Pieces; PARTS],
    options: &[PartOptions; PARTS],
    one: Step,
    other: Step,
) -> std::cmp::Ordering {
    // How much the part has shrunk when the piece is dropped, and its weight.
    let reach = |step: Step| match step {
        Step::Keep { part, pieces } => {
            let given = parts[part].all().saturating_sub(parts[part].tokens(pieces));
            (u128::from(given), u128::from(options[part].shrink.max(1)))
        }
        Step::Answer => (0, 1),
    };
    let ((one, one_weight), (other, other_weight)) = (reach(one), reach(other));
    (other * one_weight).cmp(&(one * other_weight))
}
