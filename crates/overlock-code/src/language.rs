//! The names of what source text can be.

use std::fmt;

/// What a text is to the rules of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// SQL of any dialect.
    Sql,
    /// C#, Visual Basic, Razor, or a project or configuration file of .NET.
    Dotnet,
    /// .NET code with SQL statements in its strings.
    DotnetWithSql,
    /// Anything else.
    Unknown,
}

impl Language {
    /// The name in results: `sql`, `dotnet`, `dotnet_with_sql` or `unknown`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sql => "sql",
            Self::Dotnet => "dotnet",
            Self::DotnetWithSql => "dotnet_with_sql",
            Self::Unknown => "unknown",
        }
    }

    /// The name that rules and blocks use, where the two .NET kinds are one: `sql`, `dotnet` or `unknown`.
    pub fn rule_name(self) -> &'static str {
        match self {
            Self::DotnetWithSql => Self::Dotnet.name(),
            other => other.name(),
        }
    }

    /// The language of a name in results.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Sql, Self::Dotnet, Self::DotnetWithSql, Self::Unknown]
            .into_iter()
            .find(|language| language.name() == name)
    }
}

impl fmt::Display for Language {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// How a text of .NET is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syntax {
    /// C#.
    CSharp,
    /// Visual Basic.
    VisualBasic,
    /// HTML with C# in it.
    Razor,
    /// XML of a project or of a configuration.
    Project,
}

impl Syntax {
    /// The name in results: `csharp`, `visual_basic`, `razor` or `project`.
    pub fn name(self) -> &'static str {
        match self {
            Self::CSharp => "csharp",
            Self::VisualBasic => "visual_basic",
            Self::Razor => "razor",
            Self::Project => "project",
        }
    }
}
