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
fn the_description_refers_only_to_what_it_holds() {
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
    match Way::find(method, path) {
        Way::To(found) => assert_eq!(found.path, route, "{method} {path}"),
        other => panic!("{method} {path} goes to {}", other.name()),
    }
}

#[test]
fn a_request_goes_to_the_first_route_that_has_it() {
    check(
        &Method::POST,
        "/v1/chat/completions",
        "/v1/chat/completions",
    );
    check(&Method::GET, "/v1/models", "/v1/models");
    check(&Method::HEAD, "/v1/models", "/v1/models");
    check(&Method::GET, "/v1/models/gpt-4o", "/v1/{*path}");
    // Stored completions are a matter of the upstream.
    check(&Method::GET, "/v1/chat/completions", "/v1/{*path}");
    check(&Method::DELETE, "/v1/files/file-1", "/v1/{*path}");
    check(&Method::GET, "/api/runs/1jmzq9z8r2k7d", "/api/runs/{id}");
    check(&Method::HEAD, "/health", "/health");
    check(&Method::GET, "/", "/");
    check(&Method::GET, "/page/style.css", "/page/{file}");
}

#[test]
fn what_is_not_there_is_not_found() {
    for path in [
        "/page/",
        "/v1",
        "/v1/",
        "/v2/x",
        "/api/runs/",
        "/api/runs/a/b",
        "/healthy",
    ] {
        let way = Way::find(&Method::GET, path);
        assert!(matches!(way, Way::Nowhere), "{path}");
    }
}

#[test]
fn another_method_is_told_which_there_are() {
    for (method, path) in [
        (Method::GET, "/api/cut"),
        (Method::POST, "/health"),
        (Method::PUT, "/api/runs"),
        (Method::TRACE, "/v1/models"),
    ] {
        let Way::OtherMethod(_, allowed) = Way::find(&method, path) else {
            panic!("{method} {path}");
        };
        assert!(!allowed.is_empty() && !allowed.contains(&&method));
    }
    let options = Way::find(&Method::OPTIONS, "/api/cut");
    assert!(matches!(options, Way::Options(..)));
}

#[test]
fn a_trick_goes_nowhere() {
    for path in ["/v1/../health", "//v1/models", "/v1/%2e%2e/admin", "*"] {
        let way = Way::find(&Method::GET, path);
        assert!(matches!(way, Way::Bad), "{path}");
    }
}

#[tokio::test]
async fn a_handler_that_panics_is_an_answer() {
    let handled = without_panic(async { panic!("this test wants to see what happens") }).await;
    let error = handled.expect_err("a defect");
    assert_eq!(error.status, StatusCode::INTERNAL_SERVER_ERROR);
}

#[test]
fn every_path_of_the_table_is_plain() {
    for route in ROUTES {
        assert!(is_plain(route.path), "{}", route.path);
    }
}
