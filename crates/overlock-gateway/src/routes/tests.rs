use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::handlers::openapi::DESCRIPTION;

fn description() -> Value {
    serde_json::from_str(DESCRIPTION).expect("the description is JSON")
}

#[test]
fn the_description_has_exactly_the_routes() {
    let mut there = BTreeSet::new();
    for route in ROUTES {
        let path = route.path.replace("{*", "{");
        for method in route.methods {
            there.insert(format!("{} {path}", method.as_str().to_lowercase()));
        }
    }
    let description = description();
    let paths = description["paths"].as_object().expect("paths");
    let mut described = BTreeSet::new();
    for (path, operations) in paths {
        let operations = operations.as_object().expect("operations");
        for name in operations.keys().filter(|name| *name != "parameters") {
            described.insert(format!("{name} {path}"));
        }
    }
    assert_eq!(described, there);
}

#[test]
fn the_description_uses_all_its_components_and_no_others() {
    fn look(value: &Value, whole: &Value, seen: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(target)) = members.get("$ref") {
                    let pointer = target.trim_start_matches('#');
                    assert!(whole.pointer(pointer).is_some(), "{target}");
                    seen.insert(pointer.to_owned());
                }
                members.values().for_each(|value| look(value, whole, seen));
            }
            Value::Array(items) => items.iter().for_each(|value| look(value, whole, seen)),
            _ => {}
        }
    }
    let description = description();
    let mut seen = BTreeSet::new();
    look(&description, &description, &mut seen);
    for kind in ["schemas", "responses"] {
        let held = description["components"][kind].as_object().expect("a map");
        for name in held.keys() {
            let pointer = format!("/components/{kind}/{name}");
            assert!(seen.contains(&pointer), "nothing refers to {pointer}");
        }
    }
}

#[test]
fn the_description_has_the_version_of_the_gateway() {
    assert_eq!(description()["info"]["version"], env!("CARGO_PKG_VERSION"));
}

#[track_caller]
fn check(method: &Method, path: &str, route: &str) {
    match Target::find(method, path) {
        Target::Route(found) => assert_eq!(found.path, route, "{method} {path}"),
        other => panic!("{method} {path} goes to {}", other.name()),
    }
}

#[test]
fn a_request_gets_the_first_matching_route() {
    check(
        &Method::POST,
        "/v1/chat/completions",
        "/v1/chat/completions",
    );
    check(&Method::GET, "/v1/models", "/v1/models");
    check(&Method::HEAD, "/v1/models", "/v1/models");
    check(&Method::GET, "/v1/models/gpt-4o", "/v1/{*path}");
    // Stored completions are forwarded to the upstream.
    check(&Method::GET, "/v1/chat/completions", "/v1/{*path}");
    check(&Method::DELETE, "/v1/files/file-1", "/v1/{*path}");
    check(
        &Method::GET,
        "/api/runs/019a8a3f-5c00-7d2e-9b1c-6f0a4e2d8c31",
        "/api/runs/{id}",
    );
    check(&Method::HEAD, "/health", "/health");
    check(&Method::GET, "/", "/");
    check(&Method::GET, "/page/style.css", "/page/{file}");
}

#[test]
fn unknown_paths_are_not_found() {
    for path in [
        "/page/",
        "/v1",
        "/v1/",
        "/v2/x",
        "/api/runs/",
        "/api/runs/a/b",
        "/healthy",
    ] {
        let target = Target::find(&Method::GET, path);
        assert!(matches!(target, Target::NotFound), "{path}");
    }
}

#[test]
fn another_method_gets_the_allowed_methods() {
    for (method, path) in [
        (Method::GET, "/api/cut"),
        (Method::POST, "/health"),
        (Method::PUT, "/api/runs"),
        (Method::TRACE, "/v1/models"),
    ] {
        let Target::OtherMethod(_, allowed) = Target::find(&method, path) else {
            panic!("{method} {path}");
        };
        assert!(!allowed.is_empty() && !allowed.contains(&&method));
    }
    let options = Target::find(&Method::OPTIONS, "/api/cut");
    assert!(matches!(options, Target::Options(..)));
}

#[test]
fn rejects_paths_that_step_up() {
    for path in ["/v1/../health", "//v1/models", "/v1/%2e%2e/admin", "*"] {
        let target = Target::find(&Method::GET, path);
        assert!(matches!(target, Target::BadPath), "{path}");
    }
}

#[tokio::test]
async fn a_panic_of_a_handler_is_an_error_reply() {
    let handled = without_panic(async { panic!("a handler panics") }).await;
    let error = handled.expect_err("a defect");
    assert_eq!(error.status, StatusCode::INTERNAL_SERVER_ERROR);
}

#[test]
fn every_path_of_the_table_is_plain() {
    for route in ROUTES {
        assert!(is_plain(route.path), "{}", route.path);
    }
}
