//! Counts the votes of lines for languages.

use crate::language::{Language, Syntax};

/// What a line votes for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    CSharp,
    VisualBasic,
    Razor,
    Sql,
    /// Code or data of other kinds.
    Other,
    /// Sentences, which occur in strings and after commands of every language.
    Prose,
}

/// The sums of all votes, and their reasons.
#[derive(Debug, Default)]
pub(crate) struct Votes {
    pub(crate) csharp: usize,
    pub(crate) visual_basic: usize,
    pub(crate) razor: usize,
    pub(crate) sql: usize,
    pub(crate) other: usize,
    pub(crate) prose: usize,
    /// How many votes were for something that only .NET has.
    pub(crate) dotnet_certain: usize,
    /// How many votes were for directives of Razor.
    pub(crate) razor_certain: usize,
    /// How many votes were for something that only SQL has.
    pub(crate) sql_certain: usize,
    /// Every reason once, with the sum of its weights.
    reasons: Vec<(For, &'static str, usize)>,
}

impl Votes {
    pub(crate) fn add(&mut self, side: For, weight: usize, reason: &'static str) {
        *match side {
            For::CSharp => &mut self.csharp,
            For::VisualBasic => &mut self.visual_basic,
            For::Razor => &mut self.razor,
            For::Sql => &mut self.sql,
            For::Other => &mut self.other,
            For::Prose => &mut self.prose,
        } += weight;
        if weight >= 4 && matches!(side, For::CSharp | For::VisualBasic | For::Razor) {
            self.dotnet_certain += 1;
        }
        if weight >= 6 && side == For::Razor {
            self.razor_certain += 1;
        }
        if weight >= 4 && side == For::Sql {
            self.sql_certain += 1;
        }
        let known = self
            .reasons
            .iter_mut()
            .find(|(of, known, _)| *of == side && *known == reason);
        match known {
            Some((_, _, sum)) => *sum += weight,
            None => self.reasons.push((side, reason, weight)),
        }
    }

    /// The reasons with the largest weights for a language.
    pub(crate) fn reasons(&self, language: Language, syntax: Option<Syntax>) -> Vec<&'static str> {
        const SHOWN: usize = 5;
        let side = match (language, syntax) {
            (Language::Sql, _) => For::Sql,
            (Language::Unknown, _) => For::Other,
            (_, Some(Syntax::VisualBasic)) => For::VisualBasic,
            (_, Some(Syntax::Razor)) => For::Razor,
            _ => For::CSharp,
        };
        let mut reasons: Vec<_> = self
            .reasons
            .iter()
            .filter(|(of, ..)| *of == side || side == For::Other && *of == For::Prose)
            .collect();
        reasons.sort_by_key(|(_, _, weight)| std::cmp::Reverse(*weight));
        reasons
            .iter()
            .take(SHOWN)
            .map(|(_, reason, _)| *reason)
            .collect()
    }
}
