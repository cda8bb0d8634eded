//! Takes a file apart into what can be found and shown by itself, and says what speaks of what.
//!
//! A node is a type, a method, a group of properties, a procedure, a view, a table or a section,
//! and the file itself is the root of all of them. Who is called, read or inherited from is only
//! a name here: one text cannot know what other texts define.
//!
//! Nothing of a file is lost. A node's own text ([`Nodes::text_of`]) shows what its children are
//! and leaves out what is inside of them, which their own texts have. What belongs to no node is
//! the file's own, in sections if it is long.

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

/// How a text is read into nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reading {
    /// C#, by its grammar.
    CSharp,
    /// Visual Basic, by its lines.
    VisualBasic,
    /// SQL of any dialect, by its words.
    Sql,
    /// Markdown, by its headings.
    Markdown,
    /// Razor or a project file of .NET: one node, or sections.
    Dotnet,
    /// Anything else: one node, or sections.
    Plain,
}

impl Reading {
    /// How a file is read: by its name if that tells, else by what its text is classified as.
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

    /// How a text without a name is read.
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

    /// What the text is to the rules of a pipeline.
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
    /// The whole file: the root.
    File,
    /// A class, record, struct, interface, enum or delegate; a type of a database.
    Type,
    /// A method, constructor or operator; statements at the top level of a program.
    Method,
    /// Properties, fields and events that stand together.
    PropertyGroup,
    /// A procedure, function, trigger or package of a database.
    Procedure,
    /// A view.
    View,
    /// A table.
    Table,
    /// A section of a document, or of a long file that has no other parts.
    Section,
}

/// What one node says of another by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MentionKind {
    /// It calls a method, a constructor or a procedure.
    Calls,
    /// It names a type, or a table without reading it.
    References,
    /// It is made from a class, or an interface from another.
    Inherits,
    /// It does what an interface asks for.
    Implements,
    /// It reads a table or a view.
    ReadsTable,
    /// It changes a table or a view.
    WritesTable,
}

/// A name that a node speaks of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mention {
    /// What is said.
    pub kind: MentionKind,
    /// The simple name, without quotes, brackets and type arguments.
    pub name: String,
    /// What the name is of.
    pub owner: Owner,
}

/// What a name is of, as far as the text tells.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The type of a method, the namespace of a type, the schema of a table, each with as much before
    /// it as the text says.
    Named(String),
    /// Nothing is said, so that it is the nearest of that name.
    Nearest,
    /// Something that only a compiler knows, such as the result of a call.
    Unknown,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// What it is in the words of its language, such as `record` or `trigger`.
    pub detail: &'static str,
    /// The simple name; empty for the file, whose name the text does not know.
    pub name: String,
    /// The name with all that it stands in: `Shop.Cart.Add`, `dbo.Orders`, `Usage > Options`.
    pub qualified: String,
    /// The bytes of the text, on borders of characters, its comments included.
    pub span: Range<usize>,
    /// The first line, counted from 1.
    pub first_line: usize,
    /// The last line.
    pub last_line: usize,
    /// The node it stands in, which comes before it; only the file has none.
    pub parent: Option<usize>,
    /// What is left out of it where it is shown in the text of its parent, in order.
    pub inside: Vec<Range<usize>>,
    /// What it speaks of itself; what its children speak of is theirs. Each once.
    pub mentions: Vec<Mention>,
}

/// A file and its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// The file first, then every node after its parent, in the order of the text.
    pub nodes: Vec<Node>,
    /// The namespaces and types whose members the file names without them, in order.
    pub imports: Vec<String>,
    /// Whether all of the text could be read; if not, there may be nodes that were not found.
    pub parsed: bool,
}

/// Takes a text apart.
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
    /// A node's own text: all of it, but of its children only what they are.
    ///
    /// `text` is the one that was taken apart. For an index that there is no node of it is empty.
    pub fn text_of(&self, text: &str, index: usize) -> String {
        let Some(node) = self.nodes.get(index) else {
            return String::new();
        };
        // A node's children come after it and before the next node that does not lie in it.
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
