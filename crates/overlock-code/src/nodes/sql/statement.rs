//! Resolves the aliases of one statement to tables.

use std::collections::{HashMap, HashSet};

use super::super::MentionKind;
use super::words::Name;

/// A table that is read, with its alias.
#[derive(Debug)]
pub(super) struct TableSource {
    pub(super) table: Name,
    pub(super) alias: Option<String>,
    pub(super) at: usize,
}

/// The tables of a statement, which are resolved when it ends.
#[derive(Debug, Default)]
pub(super) struct PendingStatement {
    pub(super) sources: Vec<TableSource>,
    pub(super) targets: Vec<(Name, usize)>,
    /// `INSERT ALL`: a table follows every `INTO`.
    pub(super) fills_several: bool,
    /// Its rows have begun: strings in them are data, not statements.
    pub(super) has_rows: bool,
}

impl PendingStatement {
    /// The tables that are written and those that are only read, each with its offset.
    pub(super) fn tables(&self) -> Vec<(usize, MentionKind, &Name)> {
        let mut aliases: HashMap<&str, usize> = HashMap::new();
        for (index, source) in self.sources.iter().enumerate() {
            if let Some(alias) = &source.alias {
                aliases.entry(alias).or_insert(index);
            }
        }
        let mut written = HashSet::new();
        let mut tables = Vec::new();
        for (target, at) in &self.targets {
            let alias = target.simple().to_ascii_lowercase();
            let (at, table) = match aliases.get(alias.as_str()).filter(|_| target.is_single()) {
                Some(&index) => {
                    written.insert(index);
                    (self.sources[index].at, &self.sources[index].table)
                }
                None => (*at, target),
            };
            tables.push((at, MentionKind::WritesTable, table));
        }
        for (index, source) in self.sources.iter().enumerate() {
            // In a correlated `FROM t.items`, `items` is a column of the table with alias `t`.
            let is_column = source
                .table
                .schema()
                .is_some_and(|schema| aliases.contains_key(schema.to_ascii_lowercase().as_str()));
            if !written.contains(&index) && !is_column {
                tables.push((source.at, MentionKind::ReadsTable, &source.table));
            }
        }
        tables
    }
}

/// Whether a table belongs to the database system, or is a pseudo-table of triggers and the like.
pub(super) fn is_of_the_system(table: &Name) -> bool {
    const PSEUDO_TABLES: [&str; 6] = ["inserted", "deleted", "dual", "new", "old", "excluded"];
    const SYSTEM_SCHEMAS: [&str; 4] = [
        "sys",
        "information_schema",
        "pg_catalog",
        "performance_schema",
    ];
    let is_any =
        |name: &str, names: &[&str]| names.iter().any(|one| name.eq_ignore_ascii_case(one));
    match table.schema() {
        Some(schema) => is_any(schema, &SYSTEM_SCHEMAS),
        None => is_any(table.simple(), &PSEUDO_TABLES),
    }
}
