//! Joins the next answer to a document that was cut.
//!
//! A fragment can join in several ways, and two texts do not always tell which one was meant. So
//! every way that the grammar allows is a candidate, and one is taken only if the others are out
//! of the question. A wrong document that looks right is worse than a refusal.

mod decide;
mod doubling;
mod evidence;
mod overlap;
mod period;
mod remainder;
mod restart;
mod slips;
mod unwrap;

use std::borrow::Cow;
use std::cell::Cell;

use serde::{Deserialize, Serialize};

use crate::extract::clean_encoding;
use crate::partial_document::{PartialDocument, whole_characters};
use crate::repair::Fix;
use crate::scan::{Scanner, SyntaxError, SyntaxErrorKind};
use crate::streaming_document::unconfirmed_len;
pub(crate) use evidence::{ENOUGH, Evidence, is_telling};
pub(crate) use unwrap::is_talk_after;

/// What the model was asked to begin its answer with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// With the end of the base, word for word.
    Overlap,
    /// With nothing: the base was put in its mouth, and the answer starts exactly at the cut.
    Prefill,
    /// With nothing, and the answer is known to start at the cut: the server has sent the base back
    /// before it, or its grammar goes on from the base. Text that the base has already is new then.
    AtCut,
    /// With nothing: it was asked for a document of the missing items only, which begins with the
    /// item that was cut.
    Remainder,
    /// It is not known.
    #[default]
    Auto,
}

/// What [`stitch`] is told about a fragment.
#[derive(Clone, Copy, Debug, Default)]
pub struct StitchOptions<'a> {
    /// What the model was asked to begin with.
    pub protocol: Protocol,
    /// The very text the model was asked to repeat at this seam, such as
    /// [`Contexts::overlap_context`](crate::Contexts::overlap_context). A fragment that begins
    /// with it joins there; a text that the base does not end with says nothing.
    pub expected_overlap: Option<&'a str>,
}

/// How a fragment relates to the base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It begins with the end of the base.
    Overlap,
    /// It begins where the base ends.
    Exact,
    /// It repeats the end of the base with other white space, escapes or number spelling.
    Reformatted,
    /// It begins again at an element that holds the cut, and goes further than the base.
    Resumed,
    /// It is a document of its own with only what was missing.
    Remainder,
    /// All of it is in the base already.
    Repeat,
    /// Two joins are lawful and give different documents.
    Ambiguous {
        /// How many characters the one takes for repeated, …
        shorter: usize,
        /// … and how many the other.
        longer: usize,
    },
    /// It does not belong here.
    NoMatch(Mismatch),
}

/// Why a fragment could not be joined at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The base has no cut.
    #[error("the document is already whole")]
    AlreadyWhole,
    /// The base ends inside a string, where any text could go on: only an overlap can tell.
    #[error("the base ends inside a string and the fragment repeats nothing of it")]
    NothingRepeated,
    /// The base ends inside a string, and the fragment may be talk about the answer.
    #[error("the base ends inside a string and the fragment begins like talk about the answer")]
    Talk,
    /// The fragment is JSON in its own right, and nothing ties it to the base.
    #[error("the fragment is a document of its own that has nothing of the base")]
    Foreign,
    /// The fragment begins the document again and says something else.
    #[error("the fragment begins the document again with other content")]
    Restart,
    /// Joined at the cut, the text is not JSON.
    #[error("joined at the cut, the text would not be JSON: {0} of the joined text")]
    NotJson(SyntaxError),
}

impl Outcome {
    /// The name of the outcome as every door of the product spells it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Overlap => "overlap",
            Self::Exact => "exact",
            Self::Reformatted => "reformatted",
            Self::Resumed => "resumed",
            Self::Remainder => "remainder",
            Self::Repeat => "repeat",
            Self::Ambiguous { .. } => "ambiguous",
            Self::NoMatch(_) => "no-match",
        }
    }

    /// Whether the base grew.
    pub fn is_accepted(&self) -> bool {
        !matches!(
            self,
            Self::Repeat | Self::Ambiguous { .. } | Self::NoMatch(_)
        )
    }
}

/// What became of one fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seam {
    /// How the fragment relates to the base.
    pub outcome: Outcome,
    /// Where in the base the new text begins; its end, if the fragment was refused.
    pub offset: usize,
    /// How many characters of the fragment repeat the base.
    pub overlap: usize,
    /// How many bytes were added.
    pub added: usize,
    /// How many bytes of base and fragment were looked at, each as often as it was.
    pub scanned: usize,
}

/// Joins a fragment to a cut base.
///
/// The base grows only if the outcome is accepted; otherwise it stays as it was.
///
/// ```
/// use overlock_json::{PartialDocument, Outcome, StitchOptions, stitch};
///
/// let mut base = PartialDocument::read(r#"{"rows": ["alpha", "beta", "gam"#)?;
/// let seam = stitch(&mut base, r#""beta", "gamma"]}"#, &StitchOptions::default());
/// assert_eq!(seam.outcome, Outcome::Overlap);
/// assert_eq!(base.text(), r#"{"rows": ["alpha", "beta", "gamma"]}"#);
///
/// let mut base = PartialDocument::read(r#"{"title": "The wea"#)?;
/// let seam = stitch(&mut base, "I'm sorry, I cannot go on.", &StitchOptions::default());
/// assert_eq!(seam.outcome.name(), "no-match");
/// # Ok::<(), overlock_json::NoJson>(())
/// ```
pub fn stitch<T: AsRef<[u8]> + ?Sized>(
    base: &mut PartialDocument<'_>,
    fragment: &T,
    options: &StitchOptions<'_>,
) -> Seam {
    let mut bytes = Cow::Borrowed(fragment.as_ref());
    if bytes.first().is_some_and(|byte| byte & 0xC0 == 0x80) {
        bytes = Cow::Owned([base.half_character(), &*bytes].concat());
    }
    let cleaned;
    let (fragment, half_character) = if let Some(parts) = whole_characters(&bytes) {
        parts
    } else {
        cleaned = clean_encoding(&bytes).text;
        (&*cleaned, &[][..])
    };

    let scanned = Cell::new(0);
    let offset = base.text().len();
    let retyped = unwrap::with_plain_quotes(fragment);
    let decision = decide::decide(base, fragment, options, &scanned);
    let decision = match retyped.as_deref() {
        Some(retyped) => {
            let retyped = decide::decide(base, retyped, options, &scanned);
            with_either_quotes(decision, retyped)
        }
        None => decision,
    };
    match decision {
        Ok(join) => {
            let seam = Seam {
                outcome: join.outcome,
                offset: join.base_len,
                overlap: join.repeated,
                added: join.separator.len() + join.addition.len(),
                scanned: scanned.get(),
            };
            // Half a character counts only if it is what the new text ends with.
            let reaches_end = join.addition.as_bytes().as_ptr_range().end
                == fragment.as_bytes().as_ptr_range().end;
            let half_character = if reaches_end { half_character } else { &[] };
            base.grow(
                join.base_len,
                [join.separator, &join.addition],
                half_character,
                join.fixes,
            );
            seam
        }
        Err(outcome) => Seam {
            outcome,
            offset,
            overlap: 0,
            added: 0,
            scanned: scanned.get(),
        },
    }
}

/// A lawful way to join: what would be appended.
struct Join<'f> {
    outcome: Outcome,
    /// How much of the base is kept: all but half an escape that the fragment writes anew.
    base_len: usize,
    separator: &'static str,
    addition: Cow<'f, str>,
    /// What was mended in it.
    fixes: Vec<Fix>,
    /// How many characters of the fragment the base has already.
    repeated: usize,
    /// Where the text would end, without half an escape.
    end: usize,
    /// Whether it would end in a string.
    is_in_string: bool,
    /// Whether it ends before a slip that leaves a choice.
    is_spoilt: bool,
}

/// Chooses between a fragment and the same with plain quotes in the place of typographic ones.
fn with_either_quotes<'f>(
    plain: Result<Join<'f>, Outcome>,
    retyped: Result<Join<'f>, Outcome>,
) -> Result<Join<'f>, Outcome> {
    let (plain, retyped) = match (plain, retyped) {
        (Ok(plain), Ok(retyped)) => (plain, retyped),
        (Ok(plain), Err(_)) => return Ok(plain),
        (Err(_), Ok(retyped)) => return Ok(retyped),
        (Err(outcome), Err(_)) => return Err(outcome),
    };
    // Quotes that end no string are text; text that never leaves its string may be structure.
    let doubt = |join: &Join<'_>| (join.is_spoilt, join.is_in_string && !join.fixes.is_empty());
    if doubt(&plain) < doubt(&retyped) || !plain.is_in_string && !plain.is_spoilt {
        Ok(plain)
    } else if doubt(&retyped) < doubt(&plain) || plain.is_spoilt {
        Ok(retyped)
    } else {
        Err(Outcome::Ambiguous {
            shorter: plain.repeated,
            longer: retyped.repeated,
        })
    }
}

/// A join after something that the base and the fragment have in common.
struct Candidate<'f> {
    /// What that says.
    bits: u32,
    /// Where in the fragment the new text begins.
    from: usize,
    join: Join<'f>,
}

/// A base and a fragment in one of its wrappings, and the attempts to join them.
struct Attempt<'b, 'f> {
    base: &'b PartialDocument<'b>,
    fragment: &'f str,
    /// Whether slips of syntax are mended.
    mends: bool,
    evidence: &'b Evidence<'b>,
    /// How many bytes all attempts have looked at.
    protocol: Protocol,
    scanned: &'b Cell<usize>,
}

impl<'f> Attempt<'_, 'f> {
    fn count(&self, bytes: usize) {
        self.scanned.set(self.scanned.get() + bytes);
    }

    /// Joins the fragment from a byte on, if the grammar allows it.
    fn join(
        &self,
        outcome: Outcome,
        base_len: usize,
        separator: &'static str,
        from: usize,
        repeated: usize,
    ) -> Result<Join<'f>, SyntaxError> {
        let addition = &self.fragment[from..];
        let (addition, fixes, scanner) = match self.read_on(base_len, separator, addition) {
            Ok((len, scanner)) => (Cow::Borrowed(&addition[..len]), Vec::new(), scanner),
            Err(syntax_error) => {
                let mended = self
                    .mends
                    .then(|| self.mended(base_len, addition))
                    .flatten();
                let (mut mended, fixes) = mended.ok_or(syntax_error)?;
                let (len, scanner) = self.read_on(base_len, separator, &mended)?;
                mended.truncate(len);
                (Cow::Owned(mended), fixes, scanner)
            }
        };
        Ok(Join {
            outcome,
            base_len,
            separator,
            addition,
            fixes,
            repeated,
            end: scanner.whole_text_end(),
            is_in_string: scanner.is_in_string(),
            is_spoilt: false,
        })
    }

    /// Joins as much of the fragment from a byte on as comes before a slip that leaves a choice,
    /// and as no reading of the slip can change.
    fn join_up_to_slip(&self, from: usize, repeated: usize) -> Result<Join<'f>, SyntaxError> {
        let addition = &self.fragment[from..];
        let base_len = self.base.text().len();
        let mut scanner = self.base.scanner().clone();
        scanner.feed(addition.as_bytes());
        let valid = addition.floor_char_boundary(scanner.offset() - base_len);
        let mut scanner = self.base.scanner().clone();
        scanner.feed(&addition.as_bytes()[..valid]);
        let unconfirmed = unconfirmed_len(scanner.place(), &addition[..valid]);
        let kept = &addition[..valid - unconfirmed];
        let (_, scanner) = self.read_on(base_len, "", kept)?;
        Ok(Join {
            outcome: Outcome::Overlap,
            base_len,
            separator: "",
            addition: Cow::Borrowed(kept),
            fixes: Vec::new(),
            repeated,
            end: scanner.whole_text_end(),
            is_in_string: scanner.is_in_string(),
            is_spoilt: true,
        })
    }

    /// Reads an addition from the base on: how much of it belongs to the document, and the
    /// scanner after it.
    fn read_on(
        &self,
        base_len: usize,
        separator: &str,
        addition: &str,
    ) -> Result<(usize, Scanner), SyntaxError> {
        // Each of these bytes may close a container that the base has opened, and no other.
        let closers = addition
            .bytes()
            .filter(|byte| matches!(byte, b'}' | b']'))
            .count();
        let mut start = self.base.scanner().of_innermost(closers + 1);
        if base_len < self.base.text().len() {
            start.drop_half_escape(self.base.text().as_bytes());
        }
        let mut scanner = start.clone();
        scanner.feed(separator.as_bytes());
        scanner.feed(addition.as_bytes());
        self.count(addition.len());
        let Some(syntax_error) = scanner.syntax_error().copied() else {
            return Ok((addition.len(), scanner));
        };
        let read = scanner.offset() - base_len - separator.len();
        if syntax_error.kind != SyntaxErrorKind::TrailingText || !is_talk_after(addition, read) {
            return Err(syntax_error);
        }
        let document = addition[..read].trim_end();
        start.feed(separator.as_bytes());
        start.feed(document.as_bytes());
        Ok((document.len(), start))
    }
}
