//! Which nodes does a mention mean?
//!
//! The answer follows from the mention and from all nodes of its last name, and from nothing else:
//! neither from their order nor from what was there before. So the edges of an index that has been
//! changed a thousand times are those of one that is made anew.

use std::collections::BTreeSet;

use crate::nodes::{EdgeKind, NodeKind, Scope};

/// A name that so many different things bear says nothing of which one is meant.
const MOST_MEANINGS: usize = 8;

/// A name that so many nodes bear is not looked into: each of those who speak of it would have to be
/// held against each of them.
pub(crate) const MOST_BEARERS: u32 = 256;

/// One thing may be defined in several places, as a partial type is, but not in endlessly many.
const MOST_PLACES: usize = 32;

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// The qualified name of the node that speaks, and what it is.
    pub(crate) from: &'a str,
    pub(crate) from_kind: NodeKind,
    /// What its file imports, as [`kept_imports`] writes it.
    pub(crate) imports: &'a str,
    pub(crate) kind: EdgeKind,
    pub(crate) name: &'a str,
    pub(crate) scope: Scope,
}

/// A node of that last name.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// Where the engine keeps it.
    pub(crate) key: i64,
    pub(crate) id: String,
    pub(crate) kind: NodeKind,
    pub(crate) qualified: String,
}

/// The imports of a file as they are kept: one on a line, none of them twice.
pub(crate) fn kept_imports(imports: &[String]) -> String {
    let imports: BTreeSet<&str> = imports.iter().map(String::as_str).collect();
    imports.into_iter().collect::<Vec<_>>().join("\n")
}

/// What an edge says, now that it is known what it leads to: who is made from an interface implements
/// it, unless it is one itself.
pub(crate) fn said(wanted: &Wanted<'_>, target: &Candidate) -> EdgeKind {
    match (wanted.kind, wanted.from_kind, target.kind) {
        (EdgeKind::Inherits | EdgeKind::Implements, NodeKind::Type, NodeKind::Interface) => {
            EdgeKind::Implements
        }
        (EdgeKind::Inherits | EdgeKind::Implements, NodeKind::Type, NodeKind::Type)
        | (EdgeKind::Inherits | EdgeKind::Implements, NodeKind::Interface, _) => EdgeKind::Inherits,
        (kind, ..) => kind,
    }
}

/// What an edge of such a mention may say besides.
pub(crate) fn may_say(kind: EdgeKind) -> Option<EdgeKind> {
    match kind {
        EdgeKind::Inherits => Some(EdgeKind::Implements),
        EdgeKind::Implements => Some(EdgeKind::Inherits),
        _ => None,
    }
}

/// The last part of a name as it is looked up by, whatever its case: SQL and Visual Basic know no
/// difference, and who writes C# says the same name in the same way.
pub(crate) fn last_name(name: &str) -> String {
    parts(name).next_back().unwrap_or_default().to_lowercase()
}

/// A number for a last name in a repository, so that it is found without being compared. Two names
/// may have the same one.
pub(crate) fn fingerprint(repository: &str, last_name: &str) -> i64 {
    // FNV-1a, of which the uppermost bits are left out: numbers are kept in as few bytes as they need.
    let bytes = repository.bytes().chain([0]).chain(last_name.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    i64::try_from(hash >> 17).unwrap_or_default()
}

/// The nodes that are meant, of all that have the same last name or look as if.
pub(crate) fn meant<'a>(wanted: &Wanted<'_>, candidates: &'a [Candidate]) -> Vec<&'a Candidate> {
    if candidates.len() > MOST_BEARERS as usize {
        return Vec::new();
    }
    let fitting = candidates
        .iter()
        .filter(|candidate| can_mean(wanted, candidate.kind))
        .filter_map(|candidate| Some((fit(wanted, candidate)?, candidate)));
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
    best.truncate(MOST_PLACES);
    best
}

/// How well a node answers to a name; the better, the greater.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Fit {
    /// How many parts of its name are those of the mention.
    agreed: usize,
    /// Whether they are written alike.
    is_alike: bool,
    /// Whether its name can be said where the mention is.
    visible: Visible,
    /// How much of its name is that of the node that speaks.
    near: usize,
}

/// Where a type or a member can be named by as much of its name as a mention says.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Visible {
    /// Nowhere, as far as one file tells.
    Unknown,
    /// Where its namespace or type is imported.
    Imported,
    /// In the namespace or type it stands in.
    Around,
}

fn fit(wanted: &Wanted<'_>, candidate: &Candidate) -> Option<Fit> {
    let qualified = answers_to(wanted, candidate);
    let mut fit = Fit {
        agreed: 0,
        is_alike: true,
        visible: Visible::Unknown,
        near: 0,
    };
    for (said, found) in parts(wanted.name).rev().zip(parts(qualified).rev()) {
        if said != found {
            let [said, found] = [said, found].map(|part| part.chars().flat_map(char::to_lowercase));
            if !said.eq(found) {
                return None;
            }
            fit.is_alike = false;
        }
        fit.agreed += 1;
    }
    if fit.agreed == 0 {
        return None;
    }
    if wanted.scope == Scope::Nearest {
        let both = parts(wanted.from).zip(parts(qualified));
        fit.near = both.take_while(|(one, other)| one == other).count();
        fit.visible = visible(wanted, candidate.kind, qualified, &fit);
    }
    Some(fit)
}

/// The name that a node answers to: a constructor is called by that of its type, or by both.
fn answers_to<'a>(wanted: &Wanted<'_>, candidate: &'a Candidate) -> &'a str {
    let is_twice = |name: &str| {
        let mut last = parts(name).rev();
        let name = last.next();
        name.is_some() && name == last.next()
    };
    match candidate.qualified.rsplit_once('.') {
        Some((of_type, _))
            if wanted.kind == EdgeKind::Calls
                && candidate.kind == NodeKind::Method
                && is_twice(&candidate.qualified)
                && !is_twice(wanted.name) =>
        {
            of_type
        }
        _ => &candidate.qualified,
    }
}

fn visible(wanted: &Wanted<'_>, kind: NodeKind, qualified: &str, fit: &Fit) -> Visible {
    // Of tables and procedures nobody imports the schema.
    if !matches!(
        kind,
        NodeKind::Method | NodeKind::Type | NodeKind::Interface
    ) {
        return Visible::Unknown;
    }
    let count = parts(qualified).count().saturating_sub(fit.agreed);
    // A function at the top of a file is nobody else's.
    if kind == NodeKind::Method && fit.agreed == 1 && count == 0 {
        return Visible::Unknown;
    }
    if count <= fit.near {
        return Visible::Around;
    }
    let mut dots = qualified.rmatch_indices('.');
    let last = fit.agreed.saturating_sub(1);
    let around = dots.nth(last).map_or("", |(dot, _)| &qualified[..dot]);
    if wanted.imports.lines().any(|import| import == around) {
        return Visible::Imported;
    }
    Visible::Unknown
}

fn parts(name: &str) -> impl DoubleEndedIterator<Item = &str> {
    name.split('.').filter(|part| !part.is_empty())
}

/// Whether an edge can lead to such a node.
fn can_mean(wanted: &Wanted<'_>, node: NodeKind) -> bool {
    use NodeKind::{
        File, Function, Interface, Method, Procedure, Section, Table, Trigger, Type, View,
    };
    match wanted.kind {
        // A type is called where one of it is made.
        EdgeKind::Calls => matches!(node, Method | Type | Procedure | Function),
        EdgeKind::Inherits | EdgeKind::Implements => matches!(node, Type | Interface),
        EdgeKind::ReadsTable => matches!(node, Table | View | Function),
        EdgeKind::WritesTable => matches!(node, Table | View),
        // A name alone is that of a thing: who says `List` means no method of that name.
        EdgeKind::References if matches!(node, Method | Function) => wanted.name.contains('.'),
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
        let wanted = Wanted {
            from,
            from_kind: NodeKind::Method,
            imports,
            kind,
            name,
            scope,
        };
        let found = meant(&wanted, &candidates);
        let found: Vec<&str> = found.iter().map(|found| &*found.qualified).collect();
        assert_eq!(found, expected, "what {from} means by {name}");
        // In whatever order they come.
        let mut turned = candidates.clone();
        turned.reverse();
        let again = meant(&wanted, &turned);
        let again: Vec<&str> = again.iter().map(|found| &*found.qualified).collect();
        assert_eq!(again, expected);
    }

    #[test]
    fn a_name_alone_means_the_nearest() {
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
    fn what_is_imported_is_meant_where_nothing_nearer_is() {
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
        // All that is said of a name is its own.
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
    fn who_is_made_from_an_interface_implements_it() {
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
            let wanted = Wanted {
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
            assert_eq!(said(&wanted, &target), says, "{wanted:?}");
        }
    }

    #[test]
    fn a_member_of_something_unknown_means_all_that_are_called_so() {
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
    fn qualifiers_agree_as_far_as_both_have_them() {
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
    fn a_name_alone_is_no_method() {
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
    fn an_edge_leads_only_to_what_it_can() {
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
    fn a_name_that_everything_bears_means_nothing() {
        let candidates: Vec<Candidate> = (0..9)
            .map(|key| Candidate {
                key,
                id: key.to_string(),
                kind: NodeKind::Method,
                qualified: format!("Type{key}.Add"),
            })
            .collect();
        let wanted = Wanted {
            from: "x",
            from_kind: NodeKind::Method,
            imports: "",
            kind: EdgeKind::Calls,
            name: "Add",
            scope: Scope::Anywhere,
        };
        assert_eq!(meant(&wanted, &candidates).len(), 0);
        assert_eq!(meant(&wanted, &candidates[1..]).len(), 8);
    }

    #[test]
    fn hostile_names_mean_nothing() {
        for name in ["", ".", "...", "\0"] {
            check("", EdgeKind::References, name, Scope::Nearest, &[]);
        }
    }
}
