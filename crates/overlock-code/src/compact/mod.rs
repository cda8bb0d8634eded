//! Makes source text smaller for a prompt.

#[cfg(test)]
mod laws;
pub(crate) mod layout;

use crate::classify::syntax_of;
use crate::language::{Language, Syntax};
use crate::lex::Ambiguous;
use crate::lex::csharp::CSharp;
use crate::lex::sql::Sql;
use crate::lex::visual_basic::VisualBasic;
use crate::outline;
use layout::{Docs, LaidOut, Style, lay_out};

/// How much may be removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Level {
    /// Comments, regions, blank lines and layout. Everything a compiler reads stays.
    #[default]
    Lossless,
    /// Bodies, too. Declarations stay, and a mark such as `… 42 lines` replaces what was removed.
    Outline,
}

impl Level {
    /// The name in settings: `lossless` or `outline`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lossless => "lossless",
            Self::Outline => "outline",
        }
    }
}

/// How to compact a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CompactOptions {
    /// How much may be removed.
    pub level: Level,
    /// Whether documentation comments (`///`, `/** … */`, `'''`) stay.
    pub docs: Docs,
}

/// The result of compacting a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compacted {
    /// The text to send; unchanged if `compacted` is false.
    pub text: String,
    /// Whether the text is shorter than it was.
    pub compacted: bool,
    /// What was done, or why nothing was done.
    pub reason: Reason,
}

/// What was done to a text, or why nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Comments and layout were removed.
    Lossless,
    /// Bodies were removed.
    Outlined,
    /// Bodies were removed where the text parses; elsewhere only comments and layout.
    PartlyParsed,
    /// An outline was requested, but the text does not parse: only comments and layout were removed.
    NotParsed,
    /// An outline was requested, but this syntax has none: only comments and layout were removed.
    NoOutline,
    /// Nothing could be removed.
    NoGain,
    /// The text consists of comments.
    OnlyComments,
    /// The text ends in an unclosed comment or string, which is unchanged.
    Unclosed,
    /// The text has two possible readings, and compaction would be safe for only one of them.
    Ambiguous,
    /// Razor and project files are not compacted.
    UnsupportedSyntax,
    /// The language is unknown.
    UnknownLanguage,
}

impl Reason {
    /// The name in results, such as `no_gain`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lossless => "lossless",
            Self::Outlined => "outlined",
            Self::PartlyParsed => "partly_parsed",
            Self::NotParsed => "not_parsed",
            Self::NoOutline => "no_outline",
            Self::NoGain => "no_gain",
            Self::OnlyComments => "only_comments",
            Self::Unclosed => "unclosed",
            Self::Ambiguous => "ambiguous",
            Self::UnsupportedSyntax => "unsupported_syntax",
            Self::UnknownLanguage => "unknown_language",
        }
    }

    /// Whether less was done than requested.
    pub fn is_fall_back(self) -> bool {
        !matches!(self, Self::Lossless | Self::Outlined | Self::NoGain)
    }
}

/// Compacts a text of a known language.
///
/// The result is never longer than the text, and empty only if the text is. At [`Level::Lossless`],
/// a compiler or a database reads the same tokens; strings, hints and directives stay byte for byte.
///
/// ```
/// use overlock_code::{CompactOptions, Docs, Language, Level, Reason, compact};
///
/// let text = "/// <summary>Adds.</summary>\nint Add( int a, int b )\n{\n    // Both are small.\n    return a + b;\n}\n";
/// let compacted = compact(text, Language::Dotnet, &CompactOptions::default());
/// assert_eq!(compacted.text, "int Add(int a,int b){\nreturn a + b;\n}");
/// assert_eq!(compacted.reason, Reason::Lossless);
///
/// let sql = "SELECT /*+ FULL(t) */ [a -- b]   -- names\nFROM t WHERE note = 'it''s -- fine'";
/// let compacted = compact(sql, Language::Sql, &CompactOptions::default());
/// assert!(!compacted.compacted, "brackets have two meanings here");
/// ```
pub fn compact(text: &str, language: Language, options: &CompactOptions) -> Compacted {
    let Some(source) = Source::from_language(text, language) else {
        return untouched(text, Reason::UnknownLanguage);
    };
    let (shorter, reason) = match options.level {
        Level::Lossless => (source.laid_out(text, options.docs), Reason::Lossless),
        Level::Outline => source.outline(text, options.docs),
    };
    let (shorter, reason, no_gain) = match shorter {
        Err(reason) => return untouched(text, reason),
        Ok(shorter) if shorter.is_open => (shorter.text, Reason::Unclosed, Reason::Unclosed),
        Ok(shorter) => (shorter.text, reason, Reason::NoGain),
    };
    if shorter.is_empty() && !text.is_empty() {
        return untouched(text, Reason::OnlyComments);
    }
    if shorter.len() >= text.len() {
        return untouched(text, no_gain);
    }
    Compacted {
        text: shorter,
        compacted: true,
        reason,
    }
}

fn untouched(text: &str, reason: Reason) -> Compacted {
    Compacted {
        text: text.to_owned(),
        compacted: false,
        reason,
    }
}

/// The lexer for a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Sql,
    Dotnet(Syntax),
}

impl Source {
    pub(crate) fn from_language(text: &str, language: Language) -> Option<Self> {
        match language {
            Language::Sql => Some(Self::Sql),
            Language::Dotnet | Language::DotnetWithSql => Some(Self::Dotnet(syntax_of(text))),
            Language::Unknown => None,
        }
    }

    pub(crate) fn lossless(self, text: &str, docs: Docs) -> Result<String, Reason> {
        self.laid_out(text, docs).map(|laid_out| laid_out.text)
    }

    pub(crate) fn laid_out(self, text: &str, docs: Docs) -> Result<LaidOut, Reason> {
        let laid_out = match self {
            Self::Sql => lay_out(&mut Sql::new(text), docs, Style::Sql),
            Self::Dotnet(Syntax::CSharp) => lay_out(&mut CSharp::new(text), docs, Style::CSharp),
            Self::Dotnet(Syntax::VisualBasic) => {
                lay_out(&mut VisualBasic::new(text), docs, Style::VisualBasic)
            }
            Self::Dotnet(Syntax::Razor | Syntax::Project) => return Err(Reason::UnsupportedSyntax),
        };
        laid_out.map_err(|Ambiguous| Reason::Ambiguous)
    }

    fn outline(self, text: &str, docs: Docs) -> (Result<LaidOut, Reason>, Reason) {
        let lossless = |reason| (self.laid_out(text, docs), reason);
        match self {
            Self::Sql => match outline::sql::outline(text) {
                Ok(outline) => (Ok(outline), Reason::Outlined),
                Err(Ambiguous) => lossless(Reason::NotParsed),
            },
            Self::Dotnet(Syntax::CSharp) => {
                let Some(found) = outline::csharp::bodies(text) else {
                    return lossless(Reason::NotParsed);
                };
                let reason = match (found.parsed, found.bodies.is_empty()) {
                    (true, _) => Reason::Outlined,
                    (false, false) => Reason::PartlyParsed,
                    (false, true) => Reason::NotParsed,
                };
                let elisions = found.bodies.iter().map(|body| &body.elision);
                (
                    self.laid_out(&outline::without(text, elisions), docs),
                    reason,
                )
            }
            Self::Dotnet(_) => lossless(Reason::NoOutline),
        }
    }
}
