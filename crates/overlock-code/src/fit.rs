//! Makes a text fit a number of tokens, keeping as much of it as fits.
//!
//! The forms are tried from the richest to the smallest: unchanged, without comments and layout,
//! without the bodies of the least relevant members, as an outline, and finally only the most
//! relevant pieces of the outline (`choice`) with a note of how much is missing. Token counts of
//! pieces do not add up, so every form is counted as a whole.

mod choice;

use crate::compact::Source;
use crate::compact::layout::Docs;
use crate::language::{Language, Syntax};
use crate::outline::csharp::{Bodies, Body, bodies};
use crate::outline::{Elision, sql, without};
use choice::{Choice, RankedDeclarations, RankedLines};

/// The limit for a text, and what to keep longest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FitOptions<'a> {
    /// The maximum number of tokens.
    pub tokens: u64,
    /// Whether documentation comments stay when the text is shortened.
    pub docs: Docs,
    /// Words, such as those of a question: members that contain them are the last to lose their
    /// bodies and the last to be left out.
    pub relevant: &'a [&'a str],
}

/// How much of a text is left, from all of it to the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// The unchanged text.
    Full,
    /// Without comments and layout.
    Lossless,
    /// Without some bodies.
    Partial,
    /// Without all bodies.
    Outline,
    /// The most relevant pieces and `… 120 tokens omitted`: relevant members and types first, then
    /// the beginning of the rest, imports last.
    Beginning,
}

impl Form {
    /// The name in results: `full`, `lossless`, `partial`, `outline` or `beginning`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Lossless => "lossless",
            Self::Partial => "partial",
            Self::Outline => "outline",
            Self::Beginning => "beginning",
        }
    }
}

/// A text shortened to a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fitted {
    /// The text to send.
    pub text: String,
    /// Its number of tokens.
    pub tokens: u64,
    /// How much of it is left.
    pub form: Form,
    /// Whether it is within the limit. False only if not even the note fits.
    pub fits: bool,
}

/// Returns the richest form of a text that is within the limit.
///
/// The same text, options and counter give the same result. The result is never longer than the
/// text, and empty only if the text is.
///
/// ```
/// use overlock_code::{FitOptions, Form, Language, fit};
///
/// let text = "class Shop\n{\n    // Sums it up.\n    int Total(Cart cart)\n    {\n        var sum = 0;\n        \
///             foreach (var item in cart.Items)\n            sum += item.Price;\n        return sum;\n    }\n}\n";
/// let words = |text: &str| text.split_whitespace().count() as u64;
/// let fitted = |tokens| fit(text, Language::Dotnet, &FitOptions { tokens, ..FitOptions::default() }, &words);
///
/// assert_eq!(fitted(100).form, Form::Full);
/// assert_eq!(fitted(21).form, Form::Lossless);
/// assert_eq!(fitted(12).text, "class Shop{\nint Total(Cart cart){… 4 lines}}");
/// ```
pub fn fit(
    text: &str,
    language: Language,
    options: &FitOptions<'_>,
    count: &dyn Fn(&str) -> u64,
) -> Fitted {
    let fitter = Fitter {
        limit: options.tokens,
        count,
    };
    let mut smallest = text.to_owned();
    for (form, candidate) in forms(text, language, options, &fitter) {
        let tokens = count(&candidate);
        if tokens <= options.tokens {
            return Fitted {
                text: candidate,
                tokens,
                form,
                fits: true,
            };
        }
        if candidate.len() < smallest.len() {
            smallest = candidate;
        }
    }
    let source = Source::from_language(text, language);
    let relevant = Relevant::new(options.relevant);
    if let Some(Source::Dotnet(Syntax::CSharp)) = source
        && let Some(declarations) = RankedDeclarations::new(text, options.docs, &relevant)
        && let Some(fitted) = fitter.choose(text, &declarations)
    {
        return fitted;
    }
    let lines = RankedLines::new(&smallest, source, &relevant);
    fitter
        .choose(text, &lines)
        .unwrap_or_else(|| fitter.beginning(text, lines.first()))
}

/// Makes a form of a text, if the text has that form.
type Make<'a> = Box<dyn Fn() -> Option<String> + 'a>;

/// The forms of a text, made lazily.
fn forms<'a>(
    text: &'a str,
    language: Language,
    options: &'a FitOptions<'_>,
    fitter: &'a Fitter<'_>,
) -> impl Iterator<Item = (Form, String)> + 'a {
    let source = Source::from_language(text, language);
    let lossless = move || source?.lossless(text, options.docs).ok();
    let partial = move || match source? {
        Source::Dotnet(Syntax::CSharp) => fitter.partial(text, options),
        _ => None,
    };
    let outline = move || match source? {
        Source::Sql => sql::outline(text).ok().map(|outline| outline.text),
        Source::Dotnet(Syntax::CSharp) => {
            let Bodies { bodies, .. } = bodies(text)?;
            without_bodies(text, &bodies, bodies.len(), options.docs)
        }
        Source::Dotnet(_) => None,
    };
    let shorter =
        move |form: Option<String>| form.filter(|form| !form.is_empty() && form.len() < text.len());
    let made: [(Form, Make<'a>); 4] = [
        (Form::Full, Box::new(move || Some(text.to_owned()))),
        (Form::Lossless, Box::new(move || shorter(lossless()))),
        (Form::Partial, Box::new(move || shorter(partial()))),
        (Form::Outline, Box::new(move || shorter(outline()))),
    ];
    made.into_iter()
        .filter_map(|(form, make)| Some((form, make()?)))
}

/// The text without the first `left_out` of these bodies, and without comments and layout.
fn without_bodies(text: &str, bodies: &[Body], left_out: usize, docs: Docs) -> Option<String> {
    let mut elisions: Vec<_> = bodies[..left_out]
        .iter()
        .map(|body| &body.elision)
        .collect();
    elisions.sort_by_key(|elision| elision.range.start);
    without_pieces(text, elisions, docs)
}

/// The text without these pieces, which are in order, and without comments and layout.
fn without_pieces<'a>(
    text: &str,
    elisions: impl IntoIterator<Item = &'a Elision>,
    docs: Docs,
) -> Option<String> {
    Source::Dotnet(Syntax::CSharp)
        .lossless(&without(text, elisions), docs)
        .ok()
}

struct Fitter<'a> {
    limit: u64,
    count: &'a dyn Fn(&str) -> u64,
}

impl Fitter<'_> {
    fn fits(&self, text: &str) -> bool {
        (self.count)(text) <= self.limit
    }

    /// As many bodies as fit, those of the least relevant members left out first.
    fn partial(&self, text: &str, options: &FitOptions<'_>) -> Option<String> {
        let Bodies { mut bodies, .. } = bodies(text)?;
        let relevant = Relevant::new(options.relevant);
        // Among equally relevant bodies, leaving out the longest leaves out the fewest.
        bodies.sort_by_key(|body| {
            let length = body.elision.range.len();
            (
                relevant.relevance(text, body),
                std::cmp::Reverse(length),
                body.head.start,
            )
        });
        let (mut too_few, mut enough) = (0, bodies.len());
        while too_few + 1 < enough {
            let middle = usize::midpoint(too_few, enough);
            if self.fits(&without_bodies(text, &bodies, middle, options.docs)?) {
                enough = middle;
            } else {
                too_few = middle;
            }
        }
        (enough < bodies.len())
            .then(|| without_bodies(text, &bodies, enough, options.docs))
            .flatten()
    }

    /// As many pieces as fit, and a note of what is missing; none if the most important piece does
    /// not fit.
    fn choose(&self, text: &str, choice: &dyn Choice) -> Option<Fitted> {
        let all = (self.count)(text);
        let with_note = |pieces| Some(self.with_note(all, &choice.show(pieces)?));
        let pieces = self.most(choice.len(), with_note);
        let shown = with_note(pieces).filter(|_| pieces >= choice.least())?;
        (shown.len() <= text.len()).then(|| self.cut(shown))
    }

    /// As much from the beginning of a piece as fits, and a note of what is missing.
    fn beginning(&self, text: &str, piece: &str) -> Fitted {
        let all = (self.count)(text);
        let cut_at = |end| self.with_note(all, &piece[..piece.floor_char_boundary(end)]);
        let end = self.most(piece.len(), |end| Some(cut_at(end)));
        let cut = cut_at(end);
        if cut.len() > text.len() {
            return self.cut(text.to_owned());
        }
        self.cut(cut)
    }

    /// The text that is kept, and a note of how many of all tokens are omitted.
    fn with_note(&self, all: u64, kept: &str) -> String {
        let kept = kept.trim_end();
        let omitted = all.saturating_sub((self.count)(kept));
        let between = if kept.is_empty() { "" } else { "\n" };
        format!("{kept}{between}… {omitted} tokens omitted")
    }

    fn cut(&self, text: String) -> Fitted {
        let tokens = (self.count)(&text);
        Fitted {
            text,
            tokens,
            form: Form::Beginning,
            fits: tokens <= self.limit,
        }
    }

    /// The largest number up to `all` for which the cut text fits; 0 if none does.
    fn most(&self, all: usize, cut: impl Fn(usize) -> Option<String>) -> usize {
        let (mut fits, mut too_many) = (0, all + 1);
        while fits + 1 < too_many {
            let middle = usize::midpoint(fits, too_many);
            if cut(middle).is_some_and(|cut| self.fits(&cut)) {
                fits = middle;
            } else {
                too_many = middle;
            }
        }
        fits
    }
}

/// The words that make members relevant.
struct Relevant {
    /// In lower case.
    words: Vec<String>,
}

impl Relevant {
    fn new(words: &[&str]) -> Self {
        let words = words.iter().filter(|word| !word.is_empty());
        Self {
            words: words.map(|word| word.to_ascii_lowercase()).collect(),
        }
    }

    /// How many of the words a text contains.
    fn words_in(&self, text: &str) -> usize {
        if self.words.is_empty() {
            return 0;
        }
        let text = text.to_ascii_lowercase();
        let has = |word: &&String| text.contains(word.as_str());
        self.words.iter().filter(has).count()
    }

    /// How relevant a member is; its declaration counts three times its body.
    fn relevance(&self, text: &str, body: &Body) -> usize {
        let head = self.words_in(&text[body.head.clone()]);
        3 * head + self.words_in(&text[body.elision.range.clone()])
    }
}
