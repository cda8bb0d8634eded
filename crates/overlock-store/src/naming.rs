//! Resolves mentions to nodes.
//!
//! The result depends only on the mention and on all nodes with its last name, not on their order or
//! on earlier results. So an index that was updated many times has the same edges as a new one.

use std::collections::BTreeSet;

use crate::nodes::{EdgeKind, NodeKind, Scope};

/// A mention with more different targets than this is ambiguous and gets no edge.
const MOST_MEANINGS: usize = 8;

/// Names of more nodes than this are not resolved: every mention would be compared with every node.
pub(crate) const MOST_CANDIDATES: u32 = 256;

/// The most edges of one mention. A partial type, for instance, has several definitions.
const MOST_TARGETS: usize = 32;

/// A mention to resolve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reference<'a> {
    /// The qualified name and the kind of the node with the mention.
    pub(crate) from: &'a str,
    pub(crate) from_kind: NodeKind,
    /// The imports of its file, as [`joined_imports`] writes them.
    pub(crate) imports: &'a str,
    pub(crate) kind: EdgeKind,
    pub(crate) name: &'a str,
    pub(crate) scope: Scope,
}

/// A node with the last name of a mention.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// Its key in the engine.
    pub(crate) key: i64,
    pub(crate) id: String,
    pub(crate) kind: NodeKind,
    pub(crate) qualified: String,
}

/// The distinct imports of a file, one on each line.
pub(crate) fn joined_imports(imports: &[String]) -> String {
    let imports: BTreeSet<&str> = imports.iter().map(String::as_str).collect();
    imports.into_iter().collect::<Vec<_>>().join("\n")
}

/// The kind of the edge to a target: a type with an interface as its base implements it, but an
/// interface inherits from it.
pub(crate) fn edge_kind(reference: &Reference<'_>, target: &Candidate) -> EdgeKind {
    match (reference.kind, reference.from_kind, target.kind) {
        (EdgeKind::Inherits | EdgeKind::Implements, NodeKind::Type, NodeKind::Interface) => {
            EdgeKind::Implements
        }
        (EdgeKind::Inherits | EdgeKind::Implements, NodeKind::Type, NodeKind::Type)
        | (EdgeKind::Inherits | EdgeKind::Implements, NodeKind::Interface, _) => EdgeKind::Inherits,
        (kind, ..) => kind,
    }
}

/// The other kind that [`edge_kind`] can return for mentions of this kind.
pub(crate) fn alternative_kind(kind: EdgeKind) -> Option<EdgeKind> {
    match kind {
        EdgeKind::Inherits => Some(EdgeKind::Implements),
        EdgeKind::Implements => Some(EdgeKind::Inherits),
        _ => None,
    }
}

/// The last part of a name in lower case, for lookup: SQL and Visual Basic ignore case, and C# names
/// seldom differ only in case.
pub(crate) fn last_name(name: &str) -> String {
    parts(name).next_back().unwrap_or_default().to_lowercase()
}

/// A hash of a last name in a repository, for lookup. Two names may have the same one.
pub(crate) fn fingerprint(repository: &str, last_name: &str) -> i64 {
    // FNV-1a without some bits, because SQLite stores small numbers in fewer bytes.
    let bytes = repository.bytes().chain([0]).chain(last_name.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    i64::try_from(hash >> 17).unwrap_or_default()
}

/// The targets of a mention among the nodes with the same hash of their last name.
pub(crate) fn targets<'a>(
    reference: &Reference<'_>,
    candidates: &'a [Candidate],
) -> Vec<&'a Candidate> {
    if candidates.len() > MOST_CANDIDATES as usize {
        return Vec::new();
    }
    let fitting = candidates
        .iter()
        .filter(|candidate| is_possible(reference, candidate.kind))
        .filter_map(|candidate| Some((fit(reference, candidate)?, candidate)));
    let mut best: Vec<&Candidate> = Vec::new();
    let mut best_fit = None;
    for (fit, candidate) in fitting {
        let is_better = best_fit.as_ref().is_none_or(|best_fit| fit > *best_fit);
        if is_better {
            best.clear();
        }
        if is_better || best_fit.as_ref() == Some(&fit) {
            best.push(candidate);
            best_fit = Some(fit);
        }
    }
    best.sort_by(|one, other| (&one.qualified, &one.id).cmp(&(&other.qualified, &other.id)));
    let meanings = best.chunk_by(|one, other| one.qualified == other.qualified);
    if meanings.count() > MOST_MEANINGS {
        return Vec::new();
    }
    best.truncate(MOST_TARGETS);
    best
}

/// How well a node matches a mention; a greater value is better.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Fit {
    /// The number of last parts that both names share.
    shared_parts: usize,
    /// Whether these parts have the same case.
    has_same_case: bool,
    /// Whether the node is visible at the mention.
    visible: Visible,
    /// The number of first parts that its name shares with the node of the mention.
    common_prefix: usize,
}

/// Whether a type or a member is visible where it is mentioned.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Visible {
    /// Not visible, as far as one file shows.
    Unknown,
    /// Its namespace or type is imported.
    Imported,
    /// It is in a namespace or type around the mention.
    Enclosing,
}

fn fit(reference: &Reference<'_>, candidate: &Candidate) -> Option<Fit> {
    let qualified = callable_name(reference, candidate);
    let mut fit = Fit {
        shared_parts: 0,
        has_same_case: true,
        visible: Visible::Unknown,
        common_prefix: 0,
    };
    for (one, other) in parts(reference.name).rev().zip(parts(qualified).rev()) {
        if one != other {
            let [one, other] = [one, other].map(|part| part.chars().flat_map(char::to_lowercase));
            if !one.eq(other) {
                return None;
            }
            fit.has_same_case = false;
        }
        fit.shared_parts += 1;
    }
    if fit.shared_parts == 0 {
        return None;
    }
    if reference.scope == Scope::Nearest {
        let both = parts(reference.from).zip(parts(qualified));
        fit.common_prefix = both.take_while(|(one, other)| one == other).count();
        fit.visible = visible(reference, candidate.kind, qualified, &fit);
    }
    Some(fit)
}

/// The name that a node is called by: for a constructor, `Type.Type`, that of its type.
fn callable_name<'a>(reference: &Reference<'_>, candidate: &'a Candidate) -> &'a str {
    let is_twice = |name: &str| {
        let mut last = parts(name).rev();
        let name = last.next();
        name.is_some() && name == last.next()
    };
    match candidate.qualified.rsplit_once('.') {
        Some((of_type, _))
            if reference.kind == EdgeKind::Calls
                && candidate.kind == NodeKind::Method
                && is_twice(&candidate.qualified)
                && !is_twice(reference.name) =>
        {
            of_type
        }
        _ => &candidate.qualified,
    }
}

fn visible(reference: &Reference<'_>, kind: NodeKind, qualified: &str, fit: &Fit) -> Visible {
    // The schemas of tables and procedures are not imported.
    if !matches!(
        kind,
        NodeKind::Method | NodeKind::Type | NodeKind::Interface
    ) {
        return Visible::Unknown;
    }
    let count = parts(qualified).count().saturating_sub(fit.shared_parts);
    // A function at the top level of a file is local to it.
    if kind == NodeKind::Method && fit.shared_parts == 1 && count == 0 {
        return Visible::Unknown;
    }
    if count <= fit.common_prefix {
        return Visible::Enclosing;
    }
    let mut dots = qualified.rmatch_indices('.');
    let last = fit.shared_parts.saturating_sub(1);
    let around = dots.nth(last).map_or("", |(dot, _)| &qualified[..dot]);
    if reference.imports.lines().any(|import| import == around) {
        return Visible::Imported;
    }
    Visible::Unknown
}

fn parts(name: &str) -> impl DoubleEndedIterator<Item = &str> {
    name.split('.').filter(|part| !part.is_empty())
}

/// Whether a mention can refer to a node of this kind.
fn is_possible(reference: &Reference<'_>, node: NodeKind) -> bool {
    use NodeKind::{
        File, Function, Interface, Method, Procedure, Section, Table, Trigger, Type, View,
    };
    match reference.kind {
        // Creating an object calls its type.
        EdgeKind::Calls => matches!(node, Method | Type | Procedure | Function),
        EdgeKind::Inherits | EdgeKind::Implements => matches!(node, Type | Interface),
        EdgeKind::ReadsTable => matches!(node, Table | View | Function),
        EdgeKind::WritesTable => matches!(node, Table | View),
        // A name without qualifier, such as `List`, refers to a type rather than to a method.
        EdgeKind::References if matches!(node, Method | Function) => reference.name.contains('.'),
        EdgeKind::References | EdgeKind::Contains => !matches!(node, File | Section | Trigger),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: &[(NodeKind, &str)] = &[
        (NodeKind::Type, "Shop.Orders.Order"),
        (NodeKind::Type, "Shop.Billing.Order"),
        (NodeKind::Table, "dbo.Order"),
        (NodeKind::Method, "Shop.Settings.Order"),
        (NodeKind::Method, "Shop.Orders.Service.Save"),
        (NodeKind::Method, "Shop.Orders.Repository.Save"),
        (NodeKind::Procedure, "dbo.save"),
        (NodeKind::Type, "Shop.Cart"),
        (NodeKind::Method, "Shop.Cart.Cart"),
    ];

    #[track_caller]
    fn check(from: &str, kind: EdgeKind, name: &str, scope: Scope, expected: &[&str]) {
        check_with("", from, kind, name, scope, expected);
    }

    #[track_caller]
    fn check_with(
        imports: &str,
        from: &str,
        kind: EdgeKind,
        name: &str,
        scope: Scope,
        expected: &[&str],
    ) {
        let candidates: Vec<Candidate> = (0..)
            .zip(NODES)
            .filter(|(_, (_, qualified))| last_name(qualified) == last_name(name))
            .map(|(key, (kind, qualified))| Candidate {
                key,
                id: key.to_string(),
                kind: *kind,
                qualified: (*qualified).to_owned(),
            })
            .collect();
        let reference = Reference {
            from,
            from_kind: NodeKind::Method,
            imports,
            kind,
            name,
            scope,
        };
        let found = targets(&reference, &candidates);
        let found: Vec<&str> = found.iter().map(|found| &*found.qualified).collect();
        assert_eq!(found, expected, "what {from} means by {name}");
        // The order of the candidates does not matter.
        let mut reversed = candidates.clone();
        reversed.reverse();
        let again = targets(&reference, &reversed);
        let again: Vec<&str> = again.iter().map(|found| &*found.qualified).collect();
        assert_eq!(again, expected);
    }

    #[test]
    fn a_name_without_qualifier_means_the_nearest() {
        use EdgeKind::{Calls, References};
        let from = "Shop.Orders.Service.Place";
        check(
            from,
            References,
            "Order",
            Scope::Nearest,
            &["Shop.Orders.Order"],
        );
        check(
            from,
            Calls,
            "Save",
            Scope::Nearest,
            &["Shop.Orders.Service.Save"],
        );
    }

    #[test]
    fn imported_names_come_after_enclosing_ones() {
        use EdgeKind::{Calls, References};
        let (far, near) = ("Web.Cart.Buy", "Shop.Billing.Bill.Pay");
        let both = ["Shop.Billing.Order", "Shop.Orders.Order"];
        let imports = "System\nShop.Orders";
        let scope = Scope::Nearest;
        check_with(
            "System",
            far,
            References,
            "Order",
            scope,
            &[&both[..], &["dbo.Order"]].concat(),
        );
        check_with(imports, far, References, "Order", scope, &both[1..]);
        check_with(imports, near, References, "Order", scope, &both[..1]);
        // A qualifier in the mention wins over the imports.
        check_with(imports, far, References, "Billing.Order", scope, &both[..1]);
        let save = ["Shop.Orders.Repository.Save", "Shop.Orders.Service.Save"];
        check_with(imports, far, Calls, "Service.Save", scope, &save[1..]);
        check_with("Shop.Orders.Service", far, Calls, "Save", scope, &save[1..]);
        check_with(
            "Shop.Orders.Service",
            far,
            Calls,
            "Save",
            Scope::Anywhere,
            &save,
        );
    }

    #[test]
    fn a_constructor_is_called_by_the_name_of_its_type() {
        use EdgeKind::{Calls, References};
        let both = ["Shop.Cart", "Shop.Cart.Cart"];
        for name in ["Cart", "Shop.Cart"] {
            check("Shop.Web.Buy", Calls, name, Scope::Nearest, &both);
            check("Shop.Web.Buy", References, name, Scope::Nearest, &both[..1]);
        }
        check(
            "Shop.Cart.Buy",
            Calls,
            "Cart.Cart",
            Scope::Nearest,
            &both[1..],
        );
    }

    #[test]
    fn a_type_with_an_interface_as_base_implements_it() {
        use EdgeKind::{Implements, Inherits, References};
        use NodeKind::{Interface, Type};
        for (from_kind, kind, to, says) in [
            (Type, Inherits, Interface, Implements),
            (Type, Implements, Interface, Implements),
            (Type, Inherits, Type, Inherits),
            (Type, Implements, Type, Inherits),
            (Interface, Implements, Interface, Inherits),
            (Type, References, Interface, References),
        ] {
            let reference = Reference {
                from: "A",
                from_kind,
                imports: "",
                kind,
                name: "B",
                scope: Scope::Nearest,
            };
            let target = Candidate {
                key: 1,
                id: "1".to_owned(),
                kind: to,
                qualified: "B".to_owned(),
            };
            assert_eq!(edge_kind(&reference, &target), says, "{reference:?}");
        }
    }

    #[test]
    fn a_member_of_an_unknown_object_means_all_of_its_name() {
        let all = ["Shop.Orders.Repository.Save", "Shop.Orders.Service.Save"];
        check("Shop.X", EdgeKind::Calls, "Save", Scope::Anywhere, &all);
        check(
            "Shop.X",
            EdgeKind::Calls,
            "SAVE",
            Scope::Anywhere,
            &[
                "Shop.Orders.Repository.Save",
                "Shop.Orders.Service.Save",
                "dbo.save",
            ],
        );
    }

    #[test]
    fn compares_the_qualifiers_that_both_have() {
        use EdgeKind::{Calls, ReadsTable};
        let anywhere = Scope::Anywhere;
        check("x", ReadsTable, "Shop.DBO.Order", anywhere, &["dbo.Order"]);
        check("x", ReadsTable, "sales.Order", anywhere, &[]);
        check(
            "x",
            Calls,
            "Repository.Save",
            anywhere,
            &["Shop.Orders.Repository.Save"],
        );
        check("x", Calls, "File.Save", anywhere, &[]);
    }

    #[test]
    fn a_reference_without_qualifier_is_not_a_method() {
        check(
            "Shop.X",
            EdgeKind::References,
            "Order",
            Scope::Anywhere,
            &["Shop.Billing.Order", "Shop.Orders.Order", "dbo.Order"],
        );
        check(
            "x",
            EdgeKind::References,
            "Save",
            Scope::Anywhere,
            &["dbo.save"],
        );
        check("x", EdgeKind::Inherits, "Save", Scope::Anywhere, &[]);
        check(
            "x",
            EdgeKind::References,
            "Repository.Save",
            Scope::Anywhere,
            &["Shop.Orders.Repository.Save"],
        );
    }

    #[test]
    fn the_kind_of_an_edge_restricts_its_targets() {
        check(
            "x",
            EdgeKind::ReadsTable,
            "Order",
            Scope::Nearest,
            &["dbo.Order"],
        );
        check("x", EdgeKind::WritesTable, "Save", Scope::Nearest, &[]);
    }

    #[test]
    fn an_ambiguous_name_means_nothing() {
        let candidates: Vec<Candidate> = (0..9)
            .map(|key| Candidate {
                key,
                id: key.to_string(),
                kind: NodeKind::Method,
                qualified: format!("Type{key}.Add"),
            })
            .collect();
        let reference = Reference {
            from: "x",
            from_kind: NodeKind::Method,
            imports: "",
            kind: EdgeKind::Calls,
            name: "Add",
            scope: Scope::Anywhere,
        };
        assert_eq!(targets(&reference, &candidates).len(), 0);
        assert_eq!(targets(&reference, &candidates[1..]).len(), 8);
    }

    #[test]
    fn names_without_parts_mean_nothing() {
        for name in ["", ".", "...", "\0"] {
            check("", EdgeKind::References, name, Scope::Nearest, &[]);
        }
    }
}
