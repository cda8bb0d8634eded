use std::collections::BTreeSet;

use futures_util::future::AbortHandle;
use http_body_util::BodyExt;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use serde_json::Value;

use super::*;
use crate::handlers::openapi::DESCRIPTION;
use crate::reply::Body;
use crate::settings::{Settings, Upstream};

fn description() -> Value {
    serde_json::from_str(DESCRIPTION).expect("the description is JSON")
}

#[test]
fn the_description_has_exactly_the_routes() {
    let mut there = BTreeSet::new();
    for (_, allowed, path, _) in routes() {
        // What is forwarded is described once.
        let methods = match path {
            CHAT | RESPONSES | MESSAGES | COUNT_TOKENS => "POST",
            "/v1/models" => "GET",
            _ => allowed,
        };
        let methods = methods.split(", ").filter(|method| {
            let is_implied = *method == "OPTIONS" || *method == "HEAD" && allowed == GET;
            !is_implied
        });
        let described = path.replace("{*", "{");
        there.extend(methods.map(|method| format!("{} {described}", method.to_lowercase())));
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

fn gateway() -> Arc<Gateway> {
    let gateway = Gateway::new(Settings::new(Upstream::none()), None);
    Arc::new(gateway.expect("a gateway"))
}

/// The reply to a request, and its body.
async fn send(router: Router, method: &Method, path: &str) -> (Reply, String) {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = method.clone();
    *request.uri_mut() = path.parse().expect("a path");
    request.extensions_mut().insert(Peer {
        address: ([127, 0, 0, 1], 1).into(),
        hang_up: AbortHandle::new_pair().0,
    });
    let replied = TowerToHyperService::new(router).call(request).await;
    let (head, body) = replied.expect("it never fails").into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    let text = String::from_utf8_lossy(&body).into_owned();
    (Reply::from_parts(head, Body::empty()), text)
}

async fn check(method: &Method, path: &str, route: &str) {
    let gateway = gateway();
    send(router(&gateway), method, path).await;
    let counted = gateway.metrics.encoded();
    let line = format!("overlock_requests_total{{route=\"{route}\"");
    assert!(counted.contains(&line), "{method} {path}\n{counted}");
}

#[tokio::test]
async fn a_request_gets_its_route() {
    for (method, path, route) in [
        (Method::POST, CHAT, CHAT),
        (Method::GET, "/v1/models", "/v1/models"),
        (Method::HEAD, "/v1/models", "/v1/models"),
        (Method::GET, "/v1/models/gpt-4o", "/v1/{*path}"),
        (Method::DELETE, "/v1/files/file-1", "/v1/{*path}"),
        (
            Method::GET,
            "/api/runs/019a8a3f-5c00-7d2e-9b1c-6f0a4e2d8c31",
            "/api/runs/{id}",
        ),
        (Method::HEAD, "/health", "/health"),
        (Method::GET, "/", "/"),
        (Method::GET, "/page/style.css", "/page/{file}"),
    ] {
        check(&method, path, route).await;
    }
}

#[tokio::test]
async fn stored_completions_are_forwarded() {
    // There is no upstream.
    for method in [Method::GET, Method::DELETE] {
        let (reply, text) = send(router(&gateway()), &method, CHAT).await;
        assert_eq!(reply.status(), StatusCode::SERVICE_UNAVAILABLE, "{text}");
        assert!(reply.headers().get(ALLOW).is_none());
    }
}

#[tokio::test]
async fn unknown_paths_are_not_found() {
    for path in [
        "/page/",
        "/v1",
        "/v1/",
        "/v2/x",
        "/api/runs/",
        "/api/runs/a/b",
        "/healthy",
    ] {
        let (reply, text) = send(router(&gateway()), &Method::GET, path).await;
        assert_eq!(reply.status(), StatusCode::NOT_FOUND, "{path}");
        assert!(text.contains("unknown_url"), "{path}: {text}");
        check(&Method::GET, path, NO_ROUTE).await;
    }
}

#[tokio::test]
async fn another_method_gets_the_allowed_methods() {
    for (method, path, allowed) in [
        (Method::GET, "/api/cut", POST),
        (Method::POST, "/health", GET),
        (Method::PUT, "/api/runs", GET),
        (Method::TRACE, "/v1/models", ANY),
        (Method::OPTIONS, "/api/cut", POST),
    ] {
        let (reply, _) = send(router(&gateway()), &method, path).await;
        let status = if method == Method::OPTIONS { 204 } else { 405 };
        assert_eq!(reply.status(), status, "{method} {path}");
        assert_eq!(reply.headers()[ALLOW], allowed, "{method} {path}");
    }
}

#[tokio::test]
async fn rejects_paths_that_step_up() {
    for path in ["/v1/../health", "//v1/models", "/v1/%2e%2e/admin", "*"] {
        let (reply, text) = send(router(&gateway()), &Method::GET, path).await;
        assert_eq!(reply.status(), StatusCode::BAD_REQUEST, "{path}");
        assert!(text.contains("bad_path"), "{path}: {text}");
    }
}

#[tokio::test]
async fn a_panic_of_a_handler_is_an_error_reply() {
    async fn panics() {
        panic!("a handler panics")
    }
    let entrance = Entrance {
        gateway: gateway(),
        entry: Entry::Open,
        route: "/",
    };
    let methods = get(panics).layer(from_fn_with_state(entrance, enter));
    let (reply, text) = send(Router::new().route("/", methods), &Method::GET, "/").await;
    assert_eq!(reply.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert!(text.contains("server_error"), "{text}");
}
