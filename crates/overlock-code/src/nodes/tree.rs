//! Builds the tree of nodes from what the finders of all languages report.
//!
//! Only this module enforces that nodes nest; a finder may report any range. A range that overlaps
//! another one in part is dropped, and its mentions go to the node around it.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use memchr::memchr_iter;

use super::{Mention, MentionKind, Node, NodeKind, Owner};

/// A range of the text that may become a node.
#[derive(Debug)]
pub(super) struct FoundNode {
    pub(super) kind: NodeKind,
    pub(super) detail: &'static str,
    pub(super) name: String,
    pub(super) qualified: String,
    pub(super) span: Range<usize>,
    pub(super) inside: Vec<Range<usize>>,
}

impl FoundNode {
    /// Adjacent properties, fields and events.
    pub(super) fn properties(
        names: &[String],
        qualified: String,
        span: Range<usize>,
        inside: Vec<Range<usize>>,
    ) -> Self {
        const SHOWN: usize = 12;
        let mut name = names[..names.len().min(SHOWN)].join(", ");
        if names.len() > SHOWN {
            name.push_str(", …");
        }
        Self {
            kind: NodeKind::PropertyGroup,
            detail: "properties",
            name,
            qualified,
            span,
            inside,
        }
    }
}

/// Everything that was found in a text, in any order.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) nodes: Vec<FoundNode>,
    mentions: Vec<(usize, Mention)>,
    imports: BTreeSet<String>,
}

impl Findings {
    /// Adds an imported namespace or type.
    pub(super) fn import(&mut self, name: &str) {
        /// More than in any file written by hand.
        const MOST: usize = 256;
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
        let is_one = !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(is_name);
        if is_one && self.imports.len() < MOST {
            self.imports.insert(name.to_owned());
        }
    }

    /// Takes the imports, sorted.
    pub(super) fn imports(&mut self) -> Vec<String> {
        std::mem::take(&mut self.imports).into_iter().collect()
    }

    /// Adds a mention at a byte of the text. `of` is the owner of the name, if the text shows it.
    pub(super) fn mention(&mut self, at: usize, kind: MentionKind, name: &str, of: Option<&str>) {
        let owner = of.filter(|of| !of.is_empty() && of.len() <= LONGEST_NAME);
        let owner = owner.map_or(Owner::Nearest, |of| Owner::Named(of.to_owned()));
        self.push(at, kind, name, owner);
    }

    /// Adds a mention by a name that may be qualified.
    pub(super) fn mention_qualified(&mut self, at: usize, kind: MentionKind, name: &str) {
        match name.rsplit_once('.') {
            Some((of, name)) => self.mention(at, kind, name, Some(of)),
            None => self.mention(at, kind, name, None),
        }
    }

    /// Adds a call of a member of something unknown.
    pub(super) fn call_of_unknown(&mut self, at: usize, name: &str) {
        self.push(at, MentionKind::Calls, name, Owner::Unknown);
    }

    fn push(&mut self, at: usize, kind: MentionKind, name: &str, owner: Owner) {
        if !name.is_empty() && name.len() <= LONGEST_NAME {
            let name = name.to_owned();
            self.mentions.push((at, Mention { kind, name, owner }));
        }
    }
}

/// Longer text is not a name.
const LONGEST_NAME: usize = 256;

/// The nodes of a text, from everything found in it.
pub(super) fn nodes(text: &str, findings: Findings) -> Vec<Node> {
    let lines = Lines::new(text);
    let mut nodes = vec![Node {
        kind: NodeKind::File,
        detail: "file",
        name: String::new(),
        qualified: String::new(),
        span: 0..text.len(),
        first_line: 1,
        last_line: lines.last_of(&(0..text.len())),
        parent: None,
        inside: Vec::new(),
        mentions: Vec::new(),
    }];
    let mut found = findings.nodes;
    for part in &mut found {
        part.span = on_characters(text, &part.span);
    }
    found.sort_by_key(|part| (part.span.start, Reverse(part.span.end)));
    let mut open = vec![0];
    for part in found {
        while let [.., _, last] = open[..]
            && nodes[last].span.end <= part.span.start
        {
            open.pop();
        }
        let parent = open.last().copied().unwrap_or(0);
        if part.span.is_empty() || part.span.end > nodes[parent].span.end {
            continue;
        }
        open.push(nodes.len());
        nodes.push(Node {
            kind: part.kind,
            detail: part.detail,
            name: part.name,
            qualified: part.qualified,
            first_line: lines.first_of(&part.span),
            last_line: lines.last_of(&part.span),
            parent: Some(parent),
            inside: within(text, part.inside, &part.span),
            mentions: Vec::new(),
            span: part.span,
        });
    }
    let mut nodes = with_sections(text, nodes, &lines);
    attach(&mut nodes, findings.mentions);
    nodes
}

/// Extends a range to character boundaries and limits it to the text.
fn on_characters(text: &str, range: &Range<usize>) -> Range<usize> {
    let start = text.floor_char_boundary(range.start.min(text.len()));
    start..text.ceil_char_boundary(range.end.clamp(start, text.len()))
}

/// The pieces that lie in the node and do not overlap.
fn within(text: &str, mut pieces: Vec<Range<usize>>, span: &Range<usize>) -> Vec<Range<usize>> {
    pieces.sort_by_key(|piece| piece.start);
    let mut at = span.start;
    pieces.retain_mut(|piece| {
        *piece = on_characters(text, piece);
        let fits = piece.start >= at && piece.end <= span.end && piece.start < piece.end;
        if fits {
            at = piece.end;
        }
        fits
    });
    pieces
}

/// Splits the text outside all nodes into sections if it is long: a text longer than a model gets at
/// once would never be shown.
fn with_sections(text: &str, nodes: Vec<Node>, lines: &Lines) -> Vec<Node> {
    const LONG: usize = 12 * 1024;
    let mut gaps = Vec::new();
    let mut at = 0;
    for child in nodes.iter().filter(|node| node.parent == Some(0)) {
        gaps.push(at..child.span.start);
        at = child.span.end;
    }
    gaps.push(at..text.len());
    if gaps.iter().map(ExactSizeIterator::len).sum::<usize>() <= LONG {
        return nodes;
    }
    let pieces = gaps.into_iter().flat_map(|gap| pieces(text, gap));
    let mut sections = pieces.map(|span| section(span, lines)).peekable();
    // Inserted sections shift the indices of parents.
    let mut moved = Vec::with_capacity(nodes.len());
    let mut all: Vec<Node> = Vec::with_capacity(nodes.len());
    for mut node in nodes {
        while !moved.is_empty()
            && let Some(section) = sections.next_if(|next| next.span.start < node.span.start)
        {
            all.push(section);
        }
        node.parent = node.parent.and_then(|parent| moved.get(parent).copied());
        moved.push(all.len());
        all.push(node);
    }
    all.extend(sections);
    all
}

fn section(span: Range<usize>, lines: &Lines) -> Node {
    let (first_line, last_line) = (lines.first_of(&span), lines.last_of(&span));
    let name = format!("lines {first_line}-{last_line}");
    Node {
        kind: NodeKind::Section,
        detail: "lines",
        qualified: name.clone(),
        name,
        first_line,
        last_line,
        parent: Some(0),
        inside: vec![span.clone()],
        mentions: Vec::new(),
        span,
    }
}

/// Cuts a long piece between lines, at a blank line if possible.
fn pieces(text: &str, gap: Range<usize>) -> Vec<Range<usize>> {
    const LENGTH: usize = 4 * 1024;
    /// How far back a blank line is searched.
    const LOOK_BACK: usize = 1024;
    let mut pieces = Vec::new();
    let mut at = gap.start;
    while at < gap.end {
        let rest = &text[at..gap.end];
        let mut end = rest.len();
        if end > LENGTH + LOOK_BACK {
            let limit = rest.floor_char_boundary(LENGTH);
            let from = rest.floor_char_boundary(LENGTH - LOOK_BACK);
            let near = &rest[from..limit];
            let cut = near.rfind("\n\n").map(|found| from + found + 2);
            let cut = cut.or_else(|| near.rfind('\n').map(|found| from + found + 1));
            end = cut.unwrap_or(limit);
        }
        let piece = &rest[..end];
        let blank = piece.len() - piece.trim_start().len();
        let kept = piece.trim();
        if !kept.is_empty() {
            pieces.push(at + blank..at + blank + kept.len());
        }
        at += end;
    }
    pieces
}

/// Gives every mention to the innermost node around it.
fn attach(nodes: &mut [Node], mut mentions: Vec<(usize, Mention)>) {
    mentions.sort_by_key(|(at, _)| *at);
    let mut said = HashSet::new();
    let mut open = vec![0];
    let mut next = 1;
    for (at, mention) in mentions {
        while next < nodes.len() && nodes[next].span.start <= at {
            while let [.., _, last] = open[..]
                && nodes[last].span.end <= nodes[next].span.start
            {
                open.pop();
            }
            open.push(next);
            next += 1;
        }
        while let [.., _, last] = open[..]
            && nodes[last].span.end <= at
        {
            open.pop();
        }
        let node = open.last().copied().unwrap_or(0);
        if said.insert((node, mention.clone())) {
            nodes[node].mentions.push(mention);
        }
    }
}

/// Where the lines of a text begin.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        let after_feeds = memchr_iter(b'\n', text.as_bytes()).map(|feed| feed + 1);
        Self(std::iter::once(0).chain(after_feeds).collect())
    }

    fn first_of(&self, span: &Range<usize>) -> usize {
        self.0.partition_point(|&start| start <= span.start)
    }

    /// A line feed belongs to the line it ends.
    fn last_of(&self, span: &Range<usize>) -> usize {
        let last = span.end.saturating_sub(1).max(span.start);
        self.0.partition_point(|&start| start <= last)
    }
}
