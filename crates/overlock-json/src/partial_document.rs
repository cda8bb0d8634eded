//! The document accepted so far, from its root to its cut.

use std::borrow::Cow;

use crate::close::{CloseOptions, Closed, NoJson};
use crate::contexts::{
    ContextOptions, Contexts, CutElements, cut_elements, overlap_context, overlap_within,
};
use crate::cut::Cut;
use crate::delivered::Delivered;
use crate::extract::extract_counted;
use crate::plain;
use crate::render::{RenderOptions, characters, render_base};
use crate::repair::{Fix, repair_open};
use crate::scan::Scanner;
use crate::suspicion::{Suspicion, suspicion_of_joined};

/// A document that may be cut, and the state of the scanner at its end.
///
/// The text is a valid JSON document or a prefix of one. Malformed text has been repaired, and text
/// around the document left out.
///
/// ```
/// use overlock_json::{PartialDocument, CutPlace};
///
/// let base = PartialDocument::read("Here you are:\n```json\n{\"rows\": [1, 2")?;
/// assert_eq!(base.text(), r#"{"rows": [1, 2"#);
/// assert_eq!(base.cut().map(|cut| cut.place), Some(CutPlace::Number));
/// # Ok::<(), overlock_json::NoJson>(())
/// ```
#[derive(Clone, Debug)]
pub struct PartialDocument<'a> {
    text: Cow<'a, str>,
    /// The bytes of an incomplete last character, which the next fragment may complete.
    half_character: Vec<u8>,
    scanner: Scanner,
    /// Where the document ends in the given text.
    end: usize,
    fixes: Vec<Fix>,
    /// How many documents adjacent to this one were left out.
    other_documents: usize,
}

impl<'a> PartialDocument<'a> {
    /// Finds the document in a text and reads it up to its end or its cut.
    pub fn read<T: AsRef<[u8]> + ?Sized>(text: &'a T) -> Result<Self, NoJson> {
        let given = text.as_ref();
        let start = given.len() - skip_mark_and_space(given).len();
        if start == given.len() {
            return Err(NoJson::Empty);
        }
        // Most texts are only JSON.
        if let Some(base) = Self::strict(&given[start..], given.len()) {
            return Ok(base);
        }
        let (found, other_documents) = extract_counted(given).ok_or(NoJson::Absent)?;
        let region = &given[found.start..found.end];
        if let Some(base) = Self::strict(region, found.end) {
            return Ok(Self {
                other_documents,
                ..base
            });
        }
        let (repaired, mut fixes) = repair_open(region);
        for fix in &mut fixes {
            fix.offset += found.start;
        }
        let scanner = scan(&repaired).ok_or(NoJson::Absent)?;
        let text = Cow::Owned(repaired);
        Ok(Self {
            text,
            half_character: Vec::new(),
            scanner,
            end: found.end,
            fixes,
            other_documents,
        })
    }

    /// Reads a text that is valid without repair, complete or cut.
    fn strict(given: &'a [u8], end: usize) -> Option<Self> {
        let (text, half_character) = whole_characters(given)?;
        let scanner = scan(text)?;
        let half_character = half_character.to_vec();
        Some(Self {
            text: Cow::Borrowed(text),
            half_character,
            scanner,
            end,
            fixes: Vec::new(),
            other_documents: 0,
        })
    }

    /// Copies the text, so that the document no longer borrows it.
    pub fn into_owned(self) -> PartialDocument<'static> {
        PartialDocument {
            text: Cow::Owned(self.text.into_owned()),
            half_character: self.half_character,
            scanner: self.scanner,
            end: self.end,
            fixes: self.fixes,
            other_documents: self.other_documents,
        }
    }

    /// The text from the root to the cut, or to its end.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The state of the scanner at the end of the text.
    pub fn scanner(&self) -> &Scanner {
        &self.scanner
    }

    /// Where the given text is cut, if the document is still open.
    pub fn cut(&self) -> Option<Cut> {
        Some(Cut {
            offset: self.end,
            ..self.scanner.cut()?
        })
    }

    /// Whether the document is complete.
    pub fn is_complete(&self) -> bool {
        self.scanner.is_complete()
    }

    /// The repairs, with offsets in the given text.
    pub fn fixes(&self) -> &[Fix] {
        &self.fixes
    }

    /// How many documents stand before or after this one in the given text. They were left out;
    /// [`repair`](crate::repair) makes an array of all of them.
    pub fn other_documents(&self) -> usize {
        self.other_documents
    }

    /// Closes the document at its cut. Only strict closing can fail, if nothing remains.
    pub fn close(&self, options: &CloseOptions) -> Result<Closed, NoJson> {
        let closing = self.scanner.closing(options.strict).ok_or(NoJson::Absent)?;
        let losses = self.scanner.losses(options.strict);
        let mut json = String::with_capacity(closing.kept_len + closing.closers.len());
        json.push_str(&self.text[..closing.kept_len]);
        json.push_str(&closing.closers);
        Ok(Closed {
            json,
            complete: self.is_complete(),
            truncated: losses.truncated,
            dropped: losses.dropped,
            fixes: self.fixes.clone(),
        })
    }

    /// Everything a prompt needs to ask for the rest: see [`contexts`](crate::contexts).
    pub fn contexts(&self, options: &ContextOptions) -> Contexts {
        Contexts::new(self, options)
    }

    /// The end of the text that a model is asked to repeat, for an answer of at most that many
    /// characters: see [`Contexts::overlap_context`].
    pub fn overlap_context(&self, answer_chars: Option<usize>) -> &str {
        overlap_context(self, answer_chars)
    }

    /// An [`overlap_context`](Self::overlap_context) that is `by` characters longer, for a second
    /// attempt if the usual one was ambiguous.
    pub fn longer_overlap_context(&self, answer_chars: Option<usize>, by: usize) -> &str {
        let usual = self.overlap_context(answer_chars).chars().count();
        overlap_within(self, usual + by, usual + by)
    }

    /// The elements around the cut.
    pub fn cut_elements(&self) -> CutElements<'_> {
        cut_elements(self)
    }

    /// Counts the content of the document: see [`delivered`](crate::delivered).
    pub fn delivered(&self) -> Delivered {
        let mut delivered = Delivered::default();
        Scanner::new().feed_with(self.text.as_bytes(), &mut delivered);
        delivered
    }

    /// Renders the path from the root to the cut under a budget: see [`render`](crate::render).
    pub fn render(&self, options: &RenderOptions) -> String {
        self.render_with(options, &characters)
    }

    /// Renders with another measure of the cost of a value: see [`render_with`](crate::render_with).
    pub fn render_with(&self, options: &RenderOptions, measure: &dyn Fn(&str) -> usize) -> String {
        render_base(self, options, measure)
    }

    /// Why the document, if it is complete and was joined, may lack something.
    pub fn suspicion(&self) -> Option<Suspicion> {
        suspicion_of_joined(self)
    }

    /// The length of the text that no fragment replaces: all but half an escape at the cut.
    pub fn settled_len(&self) -> usize {
        self.scanner.whole_text_end()
    }

    /// The bytes of an incomplete last character; the text ends before them.
    pub fn half_character(&self) -> &[u8] {
        &self.half_character
    }

    /// Appends the text of a fragment, which is known to be valid there.
    pub(crate) fn grow(
        &mut self,
        kept_len: usize,
        additions: [&str; 2],
        half_character: &[u8],
        fixes: Vec<Fix>,
    ) {
        if kept_len < self.text.len() {
            self.scanner.drop_half_escape(self.text.as_bytes());
        }
        for addition in additions {
            self.scanner.feed(addition.as_bytes());
        }
        let text = self.text.to_mut();
        text.truncate(kept_len);
        text.extend(additions);
        self.end = text.len() + half_character.len();
        self.half_character = half_character.to_vec();
        self.fixes.extend(fixes);
    }
}

/// The scanner at the end of a text, if the text is valid and contains a value.
fn scan(text: &str) -> Option<Scanner> {
    let mut scanner = Scanner::new();
    scanner.feed(text.as_bytes());
    scanner.has_value().then_some(scanner)
}

/// Splits off an incomplete last character; none if other bytes are not UTF-8.
pub(crate) fn whole_characters(bytes: &[u8]) -> Option<(&str, &[u8])> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Some((text, &[])),
        Err(error) if error.error_len().is_none() => {
            let (text, half) = bytes.split_at(error.valid_up_to());
            Some((std::str::from_utf8(text).ok()?, half))
        }
        Err(_) => None,
    }
}

fn skip_mark_and_space(given: &[u8]) -> &[u8] {
    let text = given.strip_prefix("\u{feff}".as_bytes()).unwrap_or(given);
    &text[plain::skip_white_space(text, 0)..]
}
