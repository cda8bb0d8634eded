//! Splits a file into nodes for search, and finds what each node mentions.
//!
//! A node is a type, a method, a group of properties, a procedure, a view, a table or a section; the
//! file is the root. A mention is only a name, because a text does not show what other files define.
//!
//! Nothing of a file is lost. The text of a node ([`Nodes::text_of`]) contains the declarations of
//! its children, but not their bodies, which are in the texts of the children. Text outside all
//! nodes belongs to the file, split into sections if it is long.

mod csharp;
mod markdown;
mod sql;
mod strings;
mod tree;
mod visual_basic;

use std::ops::Range;

use crate::classify::classify;
use crate::language::{Language, Syntax};
use crate::lex::with_line_feeds;
use crate::outline::lines_mark;
use tree::Findings;

/// How a text is split into nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reading {
    /// C#, with a parser.
    CSharp,
    /// Visual Basic, line by line.
    VisualBasic,
    /// SQL of any dialect, by keywords.
    Sql,
    /// Markdown, by its headings.
    Markdown,
    /// Razor or a .NET project file: one node, or sections.
    Dotnet,
    /// Anything else: one node, or sections.
    Plain,
}

impl Reading {
    /// Decides by the file extension, or by the text if the extension is unknown.
    ///
    /// ```
    /// use overlock_code::Reading;
    ///
    /// assert_eq!(Reading::of_file("Cart.cs", "enum A { B }"), Reading::CSharp);
    /// assert_eq!(Reading::of_file("schema.txt", "CREATE TABLE t (id int);"), Reading::Sql);
    /// ```
    pub fn of_file(path: &str, text: &str) -> Self {
        let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
        match extension.to_ascii_lowercase().as_str() {
            "cs" | "csx" => Self::CSharp,
            "vb" => Self::VisualBasic,
            "sql" | "ddl" | "pks" | "pkb" | "plsql" | "pgsql" | "tsql" | "prc" => Self::Sql,
            "md" | "markdown" => Self::Markdown,
            "cshtml" | "razor" | "csproj" | "vbproj" => Self::Dotnet,
            _ => Self::of_text(text),
        }
    }

    /// Decides by the text alone.
    pub fn of_text(text: &str) -> Self {
        let classification = classify(text);
        match (classification.language, classification.syntax) {
            (Language::Sql, _) => Self::Sql,
            (Language::Unknown, _) => Self::Plain,
            (_, Some(Syntax::CSharp)) => Self::CSharp,
            (_, Some(Syntax::VisualBasic)) => Self::VisualBasic,
            _ => Self::Dotnet,
        }
    }

    /// The name in results, such as `visual_basic`.
    pub fn name(self) -> &'static str {
        match self {
            Self::CSharp => "csharp",
            Self::VisualBasic => "visual_basic",
            Self::Sql => "sql",
            Self::Markdown => "markdown",
            Self::Dotnet => "dotnet",
            Self::Plain => "plain",
        }
    }

    /// The language in the rules of a pipeline.
    pub fn language(self) -> Language {
        match self {
            Self::CSharp | Self::VisualBasic | Self::Dotnet => Language::Dotnet,
            Self::Sql => Language::Sql,
            Self::Markdown | Self::Plain => Language::Unknown,
        }
    }
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// The file, which is the root.
    File,
    /// A class, record, struct, interface, enum or delegate; a database type.
    Type,
    /// A method, constructor or operator; top-level statements of a program.
    Method,
    /// Adjacent properties, fields and events.
    PropertyGroup,
    /// A procedure, function, trigger or package in a database.
    Procedure,
    /// A view.
    View,
    /// A table.
    Table,
    /// A section of a document, or of a long file without other nodes.
    Section,
}

/// How a node mentions another by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MentionKind {
    /// It calls a method, a constructor or a procedure.
    Calls,
    /// It refers to a type, or to a table without reading it.
    References,
    /// It inherits from a class, or an interface from another.
    Inherits,
    /// It implements an interface.
    Implements,
    /// It reads a table or a view.
    ReadsTable,
    /// It writes a table or a view.
    WritesTable,
}

/// A name that a node mentions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mention {
    /// How it is mentioned.
    pub kind: MentionKind,
    /// The unqualified name, without quotes, brackets and type arguments.
    pub name: String,
    /// The type, namespace or schema of the name.
    pub owner: Owner,
}

/// The type, namespace or schema that a name belongs to, as far as the text shows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The type of a method, the namespace of a type, or the schema of a table, qualified as far as
    /// the text qualifies it.
    Named(String),
    /// The name is unqualified, so it refers to the nearest definition.
    Nearest,
    /// Only a compiler could find it, for example the type of a call's result.
    Unknown,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The kind.
    pub kind: NodeKind,
    /// The kind in its language, such as `record` or `trigger`.
    pub detail: &'static str,
    /// The unqualified name; empty for the file.
    pub name: String,
    /// The qualified name: `Shop.Cart.Add`, `dbo.Orders`, `Usage > Options`.
    pub qualified: String,
    /// The byte range in the text, including comments.
    pub span: Range<usize>,
    /// The first line, counted from 1.
    pub first_line: usize,
    /// The last line.
    pub last_line: usize,
    /// The index of the node around it, which comes before it; none for the file.
    pub parent: Option<usize>,
    /// The ranges, in order, that the text of its parent leaves out.
    pub inside: Vec<Range<usize>>,
    /// What it mentions itself, not in its children; without duplicates.
    pub mentions: Vec<Mention>,
}

/// A file split into nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// The file first, then every node after its parent, in the order of the text.
    pub nodes: Vec<Node>,
    /// The imported namespaces and types, sorted.
    pub imports: Vec<String>,
    /// Whether all of the text could be parsed; if not, nodes may be missing.
    pub parsed: bool,
}

/// Splits a text into nodes.
///
/// ```
/// use overlock_code::{MentionKind, NodeKind, Reading, nodes};
///
/// let text = r#"
/// namespace Shop;
/// class Carts(IDbConnection connection) : ICarts
/// {
///     public Cart Find(int id)
///     {
///         return connection.QuerySingle<Cart>("SELECT * FROM dbo.Carts WHERE Id = @id", new { id });
///     }
/// }"#;
/// let parts = nodes(text, Reading::CSharp);
/// let names: Vec<_> = parts.nodes.iter().map(|node| node.qualified.as_str()).collect();
/// assert_eq!(names, ["", "Shop.Carts", "Shop.Carts.Find"]);
///
/// let find = &parts.nodes[2];
/// assert_eq!((find.kind, find.first_line, find.parent), (NodeKind::Method, 5, Some(1)));
/// let table = find.mentions.iter().find(|mention| mention.kind == MentionKind::ReadsTable);
/// assert_eq!(table.map(|table| table.name.as_str()), Some("Carts"));
///
/// assert!(parts.text_of(text, 1).ends_with("public Cart Find(int id)\n    { … 1 line }\n}"));
/// ```
pub fn nodes(text: &str, reading: Reading) -> Nodes {
    let text = &*with_line_feeds(text);
    let mut findings = Findings::default();
    let parsed = match reading {
        Reading::CSharp => csharp::find(text, &mut findings),
        Reading::VisualBasic => visual_basic::find(text, &mut findings),
        Reading::Sql => sql::find(text, &mut findings),
        Reading::Markdown => {
            markdown::find(text, &mut findings);
            true
        }
        Reading::Dotnet | Reading::Plain => true,
    };
    Nodes {
        imports: findings.imports(),
        nodes: tree::nodes(text, findings),
        parsed,
    }
}

impl Nodes {
    /// The text of a node, with the declarations of its children but without their bodies.
    ///
    /// `text` is the one that was split. The result is empty if there is no such node.
    pub fn text_of(&self, text: &str, index: usize) -> String {
        let Some(node) = self.nodes.get(index) else {
            return String::new();
        };
        // The children of a node come after it and before the next node outside of it.
        let children = self.nodes[index + 1..]
            .iter()
            .take_while(|other| other.span.start < node.span.end || other.span.is_empty())
            .filter(|other| other.parent == Some(index));
        let mut own = String::new();
        let mut at = node.span.start;
        for piece in children.flat_map(|child| &child.inside) {
            let Some(inside) = text.get(piece.clone()) else {
                continue;
            };
            let mark = lines_mark(inside);
            if piece.start < at || inside.len() <= mark.len() + 2 {
                continue;
            }
            own.push_str(text.get(at..piece.start).unwrap_or_default());
            own.push_str(if own.ends_with(char::is_whitespace) {
                ""
            } else {
                " "
            });
            own.push_str(&mark);
            let next = text[piece.end..].chars().next();
            own.push_str(match next {
                Some(next) if inside.ends_with('\n') && next != '}' => "\n",
                Some(next) if !next.is_whitespace() && next != ';' => " ",
                _ => "",
            });
            at = piece.end;
        }
        own.push_str(text.get(at..node.span.end).unwrap_or_default());
        own
    }
}
