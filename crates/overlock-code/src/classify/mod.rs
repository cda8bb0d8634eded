//! Detects the language of a text from the text alone.
//!
//! Every line votes for C#, Visual Basic, Razor, SQL, or something else. Comments and strings do not
//! vote, so C# with SQL in a string stays C#, and SQL with C# in a comment stays SQL. XML is
//! recognised by its elements, JSON by its first characters. Only three parts of a long text are
//! read, so the work is bounded.

pub(crate) mod embedded;
mod lines;
mod markup;
mod votes;

use crate::language::{Language, Syntax};
use crate::lex::with_line_feeds;
use votes::Votes;

/// The language of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Classification {
    /// The language.
    pub language: Language,
    /// The syntax, if it is .NET.
    pub syntax: Option<Syntax>,
    /// From 0 to 1: how clear the evidence is.
    pub confidence: f32,
    /// The evidence, the strongest first.
    pub reasons: Vec<&'static str>,
}

/// Detects the language of a text.
///
/// ```
/// use overlock_code::{Language, classify};
///
/// assert_eq!(classify("select 1").language, Language::Sql);
/// assert_eq!(classify("public string Name { get; set; }").language, Language::Dotnet);
/// let dapper = r#"var rows = connection.Query<Order>("SELECT * FROM Orders WHERE Id = @id", new { id });"#;
/// assert_eq!(classify(dapper).language, Language::DotnetWithSql);
/// assert_eq!(classify("import java.util.List;").language, Language::Unknown);
/// assert_eq!(classify("Select an item from the menu.").language, Language::Unknown);
/// ```
pub fn classify(text: &str) -> Classification {
    let text = with_line_feeds(text.trim_start_matches('\u{feff}'));
    let sample = Sample::new(&text);
    if let Some(known) = markup::classify(&sample) {
        return known;
    }
    let votes = lines::votes(&sample);
    let (language, syntax) = decide(&votes);
    let language = if language == Language::Dotnet && embedded::has_sql(&sample, syntax) {
        Language::DotnetWithSql
    } else {
        language
    };
    Classification {
        language,
        syntax,
        confidence: confidence(&votes, language, syntax),
        reasons: votes.reasons(language, syntax),
    }
}

/// The syntax of a text that is known to be .NET, by its first lines.
pub(crate) fn syntax_of(text: &str) -> Syntax {
    /// How many lines are read; most of them are comments or imports.
    const LINES: usize = 200;
    /// How many lines of one syntax decide it.
    const LEAD: usize = 3;
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('<')
        && let Some(syntax) = markup::classify(&Sample::new(text)).and_then(|known| known.syntax)
    {
        return syntax;
    }
    let (mut csharp, mut visual_basic, mut razor) = (0, 0, 0);
    for line in text.lines().take(LINES) {
        let line = line.trim();
        let first = line.bytes().next().unwrap_or(b' ');
        match line.bytes().last() {
            _ if line.starts_with("//") || line.starts_with("/*") || first == b'*' => {}
            _ if first == b'<' || (first == b'@' && !line.starts_with("@\"")) => razor += 1,
            Some(b';' | b'{' | b'}') => csharp += 1,
            _ if lines::visual_basic::opens_line(line) => visual_basic += 1,
            _ => {}
        }
        if csharp.max(visual_basic).max(razor) >= LEAD {
            break;
        }
    }
    match () {
        () if razor > csharp.max(visual_basic) => Syntax::Razor,
        () if visual_basic > csharp => Syntax::VisualBasic,
        () => Syntax::CSharp,
    }
}

/// The parts of a text that are read.
pub(crate) struct Sample<'a> {
    pub(crate) parts: Vec<&'a str>,
}

impl<'a> Sample<'a> {
    /// The length of one part.
    const PART: usize = 40 * 1024;

    fn new(text: &'a str) -> Self {
        if text.len() <= 3 * Self::PART {
            return Self { parts: vec![text] };
        }
        let middle = text.len() / 2;
        let starts = [0, middle, text.len() - Self::PART];
        let parts = starts.map(|start| {
            let start = text.ceil_char_boundary(start);
            let end = text.floor_char_boundary((start + Self::PART).min(text.len()));
            &text[start..end]
        });
        Self {
            parts: parts.to_vec(),
        }
    }
}

fn decide(votes: &Votes) -> (Language, Option<Syntax>) {
    /// How many votes for other languages a page has at most for each directive; two Markdown fences
    /// are more.
    const OTHER_THAN_RAZOR: usize = 60;
    // A Razor page is mostly markup and scripts, but only Razor has these directives.
    if votes.razor_certain > 0
        && votes.razor > votes.csharp
        && votes.other < OTHER_THAN_RAZOR * votes.razor_certain
    {
        return (Language::Dotnet, Some(Syntax::Razor));
    }
    let dotnet = [
        (votes.csharp, Syntax::CSharp),
        (votes.visual_basic, Syntax::VisualBasic),
        (votes.razor, Syntax::Razor),
    ];
    let (score, syntax) = dotnet
        .into_iter()
        .reduce(|best, next| if next.0 > best.0 { next } else { best })
        .unwrap_or((0, Syntax::CSharp));
    // A C# file can contain more SQL than C#, but SQL opens no namespace.
    let over_sql = score >= votes.sql || votes.dotnet_certain > 0 && score * 4 > votes.sql;
    let over_prose = score > votes.prose || votes.dotnet_certain >= 3 && score * 4 > votes.prose;
    if score >= 2 && score > votes.other && over_sql && over_prose {
        return (Language::Dotnet, Some(syntax));
    }
    let over_prose =
        votes.sql > votes.prose || votes.sql_certain >= 2 && votes.sql * 6 > votes.prose;
    if votes.sql >= 2 && votes.sql > votes.other && over_prose {
        return (Language::Sql, None);
    }
    (Language::Unknown, None)
}

fn confidence(votes: &Votes, language: Language, syntax: Option<Syntax>) -> f32 {
    let dotnet = votes.csharp.max(votes.visual_basic).max(votes.razor);
    let of_syntax = match syntax {
        Some(Syntax::VisualBasic) => votes.visual_basic,
        Some(Syntax::Razor) => votes.razor,
        _ => votes.csharp,
    };
    let (own, against) = match language {
        Language::Sql => (votes.sql, votes.other.max(dotnet)),
        Language::Dotnet | Language::DotnetWithSql => (of_syntax, votes.other.max(votes.sql / 4)),
        Language::Unknown => (votes.other.max(votes.prose).max(2), votes.sql.max(dotnet)),
    };
    let (own, against) = (own.min(10_000), against.min(10_000));
    #[expect(clippy::cast_precision_loss, reason = "both are at most 10,000")]
    let share = (own as f32 + 0.5) / (own as f32 + against as f32 + 1.0);
    share
}
