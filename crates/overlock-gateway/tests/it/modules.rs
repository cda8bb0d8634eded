use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module by its path in the crate, such as `chat::first`.
type Module = Vec<String>;

/// The source of every module without its tests.
fn modules(folder: &Path, at: &[String], found: &mut BTreeMap<Module, String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let stem = stem.expect("a name").to_owned();
        let child = [at, std::slice::from_ref(&stem)].concat();
        if path.is_dir() {
            modules(&path, &child, found);
        } else if path.extension().is_some_and(|it| it == "rs") && stem != "tests" {
            let module = if stem == "mod" || stem == "lib" {
                at.to_vec()
            } else {
                child
            };
            let source = fs::read_to_string(&path).expect("source text");
            let source = source.split("#[cfg(test)]\nmod tests").next();
            found.insert(module, source.unwrap_or_default().to_owned());
        }
    }
}

/// The paths that a list of imports such as `a::{b, c::{d, e}}` names.
fn expand(prefix: &[String], list: &str, paths: &mut Vec<Module>) {
    let (mut depth, mut start) = (0, 0);
    let mut items = Vec::new();
    for (at, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                items.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(&list[start..]);
    for item in items.into_iter().map(str::trim).filter(|it| !it.is_empty()) {
        let (path, group) = item.split_once('{').unwrap_or((item, ""));
        let path = path.split(" as ").next().unwrap_or_default();
        let segments = path.split("::").map(str::trim).filter(|it| !it.is_empty());
        let prefix = [prefix, &segments.map(str::to_owned).collect::<Vec<_>>()].concat();
        match group.trim_end().strip_suffix('}') {
            Some(group) => expand(&prefix, group, paths),
            None => paths.push(prefix),
        }
    }
}

/// The modules that a module uses, by its `use` items and by paths that begin with `crate`.
fn used_by(module: &Module, source: &str, all: &BTreeMap<Module, String>) -> BTreeSet<Module> {
    let mut paths = Vec::new();
    for item in source.split("use ").skip(1) {
        expand(&[], item.split(';').next().unwrap_or_default(), &mut paths);
    }
    for inline in source.split("crate::").skip(1) {
        let path = inline.split(|it: char| it != ':' && it != '_' && !it.is_alphanumeric());
        let path = format!("crate::{}", path.into_iter().next().unwrap_or_default());
        expand(&[], &path, &mut paths);
    }
    let absolute = paths.into_iter().filter_map(|path| {
        let mut from = module.clone();
        let mut rest = path.as_slice();
        match rest.first()?.as_str() {
            "crate" => {
                from.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {}
            // A child of the module, or another crate.
            _ if all.contains_key(&[module.as_slice(), &rest[..1]].concat()) => {}
            _ => return None,
        }
        while rest.first().is_some_and(|it| it == "super") {
            from.pop();
            rest = &rest[1..];
        }
        let mut path = [from.as_slice(), rest].concat();
        while !all.contains_key(&path) {
            path.pop()?;
        }
        Some(path)
    });
    absolute.collect()
}

/// The first cycle in a graph, if it has one.
fn cycle(edges: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn visit<'a>(
        node: &'a str,
        edges: &'a BTreeMap<String, BTreeSet<String>>,
        done: &mut BTreeSet<&'a str>,
        path: &mut Vec<&'a str>,
    ) -> Option<Vec<String>> {
        if let Some(at) = path.iter().position(|it| *it == node) {
            return Some(path[at..].iter().map(ToString::to_string).collect());
        }
        if !done.contains(node) {
            path.push(node);
            for next in edges.get(node).into_iter().flatten() {
                if let Some(found) = visit(next, edges, done, path) {
                    return Some(found);
                }
            }
            path.pop();
            done.insert(node);
        }
        None
    }
    let mut done = BTreeSet::new();
    edges
        .keys()
        .find_map(|node| visit(node, edges, &mut done, &mut Vec::new()))
}

/// The first cycle among the modules of one parent, each taken together with its children.
fn first_cycle(all: &BTreeMap<Module, String>) -> Option<Vec<String>> {
    let uses: Vec<(&Module, BTreeSet<Module>)> = all
        .iter()
        .map(|(module, source)| (module, used_by(module, source, all)))
        .collect();
    all.keys().find_map(|parent| {
        let child = |module: &Module| {
            let below = module.strip_prefix(parent.as_slice())?;
            below.first().cloned()
        };
        let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (module, used) in &uses {
            let Some(from) = child(module) else { continue };
            let to = used.iter().filter_map(&child).filter(|to| *to != from);
            edges.entry(from.clone()).or_default().extend(to);
        }
        let found = cycle(&edges)?;
        Some(
            found
                .into_iter()
                .map(|it| format!("{}::{it}", parent.join("::")))
                .collect(),
        )
    })
}

fn source_of_gateway() -> BTreeMap<Module, String> {
    let mut all = BTreeMap::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    modules(&folder, &[], &mut all);
    all
}

#[test]
fn modules_form_no_cycle() {
    assert_eq!(first_cycle(&source_of_gateway()), None);
}

#[test]
fn a_cycle_between_modules_is_found() {
    let module = |path: &str| path.split("::").map(str::to_owned).collect::<Module>();
    let source = |text: &str| text.to_owned();
    let mut all = BTreeMap::from([
        (Vec::new(), source("mod a;\nmod b;\nuse a::c::C;\n")),
        (module("a"), source("mod c;\nuse c::C;\n")),
        (
            module("a::c"),
            source("use std::fmt;\nuse crate::{b::B, other};\n"),
        ),
        (module("b"), source("pub struct B;\n")),
    ]);
    assert_eq!(first_cycle(&all), None);
    all.insert(module("b"), source("fn f() { crate::a::g() }\n"));
    assert_eq!(
        first_cycle(&all),
        Some(vec!["::a".to_owned(), "::b".to_owned()])
    );
    all.insert(module("b"), source("use super::a;\n"));
    assert_eq!(
        first_cycle(&all),
        Some(vec!["::a".to_owned(), "::b".to_owned()])
    );
}

#[test]
fn no_file_of_the_answer_path_is_longer_than_400_lines() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("crates");
    for folder in [
        "overlock-gateway/src/chat",
        "overlock-llm/src/wire",
        "overlock-llm/src/assembler",
    ] {
        let mut all = BTreeMap::new();
        modules(&root.join(folder), &[], &mut all);
        assert!(!all.is_empty(), "{folder}");
        for (module, source) in all {
            let lines = source.lines().count();
            assert!(
                lines <= 400,
                "{folder}: {} has {lines} lines",
                module.join("::")
            );
        }
    }
}
