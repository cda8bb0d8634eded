use hyper::{Method, StatusCode};
use overlock_budget::{Model, Models, Prices};
use overlock_gateway::{Gateway, Settings, Upstream};
use overlock_llm::ContinuationOptions;
use overlock_store::{NewRun, RunId};
use serde_json::{Value, json};

use crate::door::{Door, TestResponse, serve, serve_gateway, serve_with};
use crate::fake::{Fake, FakeReply};

async fn door() -> Door<()> {
    Door {
        address: serve("http://127.0.0.1:1/v1", |_| {}).await,
        upstream: (),
    }
}

impl Door<()> {
    async fn ask_api(&self, name: &str, request: &Value) -> TestResponse {
        let path = format!("/api/{name}");
        let body = request.to_string();
        self.send(Method::POST, &path, &[], &body).await
    }
}

#[tokio::test]
async fn answers_objects() {
    let door = door().await;
    let text = "{\"title\": \"Report\", \"rows\": [1, 2";
    let closed = door.ask_api("close", &json!({ "text": text })).await.json();
    assert_eq!(closed["json"], "{\"title\": \"Report\", \"rows\": [1]}");
    assert_eq!(closed["complete"], false);
    let repaired = door
        .ask_api("repair", &json!({ "text": "{a: 'b',}" }))
        .await
        .json();
    assert_eq!(repaired["json"], "{\"a\": \"b\"}");
    let cut = door.ask_api("cut", &json!({ "text": text })).await.json();
    assert_eq!(cut["cut"]["path"], "/rows/1");
    let rendered = door
        .ask_api("render", &json!({ "text": text, "budget": 0 }))
        .await
        .json();
    let shown = rendered["rendered"].as_str().expect("a text");
    assert!(!shown.contains("Report"), "{shown}");
    let parts = json!({ "parts": [text, ", 2, 3]}"], "protocol": "prefill" });
    let stitched = door.ask_api("stitch", &parts).await.json();
    assert_eq!(stitched["seams"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn strict_leaves_out_what_stops_halfway() {
    let door = door().await;
    let text = "{\"a\": 1, \"b\": \"hal";
    for (strict, json) in [(false, "{\"a\": 1, \"b\": \"hal\"}"), (true, "{\"a\": 1}")] {
        let request = json!({ "text": text, "strict": strict });
        assert_eq!(door.ask_api("close", &request).await.json()["json"], json);
    }
}

#[tokio::test]
async fn a_whole_number_may_be_written_with_a_point() {
    let door = door().await;
    let fit = |tokens: &str| {
        format!(
            r#"{{"model": "gpt-4", "max_tokens": {tokens}, "messages": [{{"role": "user", "content": "Hi"}}]}}"#
        )
    };
    let render = |limit: &str| format!(r#"{{"text": "[1, 2", "limit": {limit}}}"#);
    for (number, status) in [
        ("300", 200),
        ("300.0", 200),
        ("3e2", 200),
        ("300.5", 400),
        ("-300.0", 400),
    ] {
        let fitted = door.send(Method::POST, "/api/fit", &[], &fit(number)).await;
        assert_eq!(fitted.status, status, "{number}: {}", fitted.body);
        if status == 200 {
            assert_eq!(fitted.json()["requested"], 300, "{number}");
        }
        let rendered = door
            .send(Method::POST, "/api/render", &[], &render(number))
            .await;
        assert_eq!(rendered.status, status, "{number}: {}", rendered.body);
    }
}

#[tokio::test]
async fn a_request_is_fitted() {
    let door = door().await;
    let request = json!({
        "model": "gpt-4",
        "max_tokens": 100_000,
        "messages": [{ "role": "user", "content": "Hello" }],
    });
    let fitted = door.ask_api("fit", &request).await;
    assert_eq!(fitted.status, StatusCode::OK);
    let fitted = fitted.json();
    assert_eq!(fitted["fits"], true);
    assert_eq!(
        fitted["request"]["max_tokens"],
        fitted["adjusted_max_tokens"]
    );
    assert_eq!(
        fitted["limit"],
        json!({ "asked": 100_000, "sent": fitted["adjusted_max_tokens"] })
    );
    let mut too_large = request;
    too_large["messages"][0]["content"] = json!("word ".repeat(20_000));
    let refused = door.ask_api("fit", &too_large).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    let refused = refused.json();
    assert_eq!(refused["fits"], false);
    assert_eq!(refused["error"]["code"], "context-length-exceeded");
}

#[tokio::test]
async fn shows_a_fitted_request_as_it_is_sent() {
    for (model, members) in [
        ("gpt-4", ""),
        ("gpt-4", r#", "seed": 12345678901234567890123"#),
        ("gpt-4", r#", "max_tokens": 100000"#),
        ("gpt-4", r#", "max_completion_tokens": 20"#),
        ("gpt-4o", r#", "stream": true"#),
    ] {
        let door = Door::to_fake(vec![FakeReply::content("Hi", "stop")]).await;
        let request = format!(
            r#"{{ "model": "{model}", "messages": [{{"role": "user", "content": "Hi"}}]{members} }}"#
        );
        let fitted = door
            .send(Method::POST, "/api/fit", &[], &request)
            .await
            .json();
        let path = "/v1/chat/completions";
        door.send(Method::POST, path, &[], &request).await;
        let requests = door.upstream.requests();
        let sent = &requests[0];
        assert_eq!(fitted["sent"], sent.text, "{members}");
        let limits = [
            &sent.body["max_tokens"],
            &sent.body["max_completion_tokens"],
        ];
        let limit = limits.into_iter().find(|limit| !limit.is_null());
        assert_eq!(
            fitted["limit"]["sent"],
            *limit.unwrap_or(&Value::Null),
            "{members}"
        );
        // The negotiated request has one in any case, as on the command line.
        assert!(fitted["request"].to_string().contains("max_"), "{members}");
    }
}

#[tokio::test]
async fn reports_errors_in_objects() {
    let door = door().await;
    let long = "[1, ".repeat(40_000);
    for (name, body, status, code) in [
        ("close", "", 400, "bad-request"),
        ("close", "[1]", 400, "bad-request"),
        ("close", "{\"text\": ", 400, "bad-request"),
        ("close", "{}", 400, "bad-request"),
        ("close", "{\"text\": 1}", 400, "bad-request"),
        ("close", "{\"text\": \"no JSON here\"}", 422, "no-json"),
        (
            "render",
            "{\"text\": \"[1\", \"limit\": 3}",
            400,
            "bad-request",
        ),
        (
            "render",
            "{\"text\": \"[1\", \"cut_value\": \"x\"}",
            400,
            "bad-request",
        ),
        ("stitch", "{\"parts\": []}", 400, "bad-request"),
        ("fit", "{\"messages\": []}", 400, "bad-request"),
        ("fit", "{\"messages\": 1}", 400, "bad-request"),
        ("cut", &long, 400, "bad-request"),
    ] {
        let got = door
            .send(Method::POST, &format!("/api/{name}"), &[], body)
            .await;
        assert_eq!(got.status, status, "{name} {}", got.body);
        let error = &got.json()["error"];
        assert_eq!(error["code"], code, "{error}");
        let message = error["message"].as_str().expect("a text");
        assert!(!message.contains("line is"), "{message}");
    }
}

#[tokio::test]
async fn answers_each_of_several_questions_as_if_alone() {
    let door = door().await;
    let large = json!({
        "model": "gpt-4",
        "messages": [{ "role": "user", "content": "word ".repeat(20_000) }],
    });
    for (name, body) in [
        ("cut", json!({ "text": "{\"rows\": [1, 2" })),
        ("cut", json!({ "text": "hello" })),
        ("close", json!({ "text": "" })),
        ("close", json!({})),
        ("repair", json!({ "text": "{a: 'b',}" })),
        ("render", json!({ "text": "[1, 2", "budget": 0 })),
        ("stitch", json!({ "parts": ["[1, 2", "2, 3]"] })),
        ("fit", large),
        ("fit", json!({ "messages": 1 })),
    ] {
        let alone = door.ask_api(name, &body).await.json();
        let beside = if name == "repair" { "close" } else { "repair" };
        let questions = json!({ name: body, beside: { "text": "[1, 2" } });
        let several = door.ask_api("several", &questions).await;
        assert_eq!(several.status, StatusCode::OK, "{questions}");
        assert_eq!(several.json()[name], alone, "{questions}");
        assert!(several.json()[beside]["json"].is_string(), "{questions}");
    }
}

#[tokio::test]
async fn several_questions_share_one_text() {
    let door = door().await;
    let text = "{\"rows\": [\"North\", \"So";
    let parts = json!({ "parts": ["North\", \"South\"]}"] });
    let questions = json!({
        "text": text,
        "cut": {}, "close": {}, "repair": { "text": "{a: 1" }, "render": { "budget": 0 },
        "stitch": parts,
    });
    let several = door.ask_api("several", &questions).await.json();
    for (name, alone) in [
        ("cut", json!({ "text": text })),
        ("close", json!({ "text": text })),
        ("repair", json!({ "text": "{a: 1" })),
        ("render", json!({ "text": text, "budget": 0 })),
        ("stitch", json!({ "parts": [text, parts["parts"][0]] })),
    ] {
        let alone = door.ask_api(name, &alone).await.json();
        assert!(alone["error"].is_null(), "{alone}");
        assert_eq!(several[name], alone, "{name}");
    }
    for wrong in [json!({ "text": 1, "cut": {} }), json!({ "most": "a" })] {
        let got = door.ask_api("several", &wrong).await;
        assert_eq!(got.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
}

#[tokio::test]
async fn shortens_long_values_to_their_ends() {
    let door = door().await;
    let text = format!("['é{}ü', 'a', 'b', 1", "word ".repeat(20));
    let questions = json!({ "text": text, "most": 10, "cut": {}, "close": {}, "repair": {} });
    let reported = door.ask_api("several", &questions).await.json();
    assert_eq!(
        reported["close"]["json"],
        json!({ "beginning": "[\"éword wo", "ending": " \"a\", \"b\"]", "length": 116 })
    );
    assert_eq!(reported["close"]["dropped"], "/3");
    assert_eq!(reported["cut"]["cut"]["path"], "/3");
    assert_eq!(
        reported["cut"]["hierarchy_context"]["ending"],
        "a\", \"b\", 1"
    );
    assert_eq!(reported["cut"]["cut_off_element"], "1");
    let few = json!({ "text": text, "most": 3, "repair": {} });
    let fixes = &door.ask_api("several", &few).await.json()["repair"]["fixes"];
    assert_eq!(fixes["beginning"].as_array().map(Vec::len), Some(3));
    assert_eq!(fixes["length"], 4);
}

#[tokio::test]
async fn rejects_unknown_questions() {
    let door = door().await;
    for body in ["", "[]", "{\"cut\": ", "{\"nothing\": {}}"] {
        let got = door.send(Method::POST, "/api/several", &[], body).await;
        assert_eq!(got.status, StatusCode::BAD_REQUEST, "{body}: {}", got.body);
        assert_eq!(got.json()["error"]["code"], "bad-request", "{body}");
    }
}

#[tokio::test]
async fn a_long_text_is_answered_as_a_short_one() {
    let door = door().await;
    let text = format!("[{}", "\"a line of text\", ".repeat(20_000));
    let closed = door.ask_api("close", &json!({ "text": text })).await.json();
    let value: Value =
        serde_json::from_str(closed["json"].as_str().expect("a text")).expect("valid");
    assert_eq!(value.as_array().map(Vec::len), Some(20_000));
}

#[tokio::test]
async fn recorded_runs_are_listed_and_shown() {
    let store = overlock_store::in_memory().expect("a store");
    let ids: Vec<RunId> = (0..3)
        .map(|number| RunId::new(1000 + number, number))
        .collect();
    for (id, at) in ids.iter().zip(1000..) {
        let options = ContinuationOptions::default();
        let run = NewRun {
            id,
            at,
            model: "gpt-4o",
            request: "{\"model\": \"gpt-4o\"}",
            options: &serde_json::to_string(&options).expect("plain"),
            conditions: "{}",
        };
        store.begin(&run).expect("it is recorded");
    }
    let settings = Settings::new(Upstream::none());
    let gateway = Gateway::new(settings, Some(store)).expect("a gateway");
    let door = Door {
        address: serve_gateway(gateway).await,
        upstream: (),
    };
    let listed = door.get("/api/runs?limit=2").await.json();
    let names: Vec<_> = listed.as_array().expect("a list").iter().collect();
    assert_eq!(names.len(), 2);
    assert_eq!(names[0]["id"], ids[2].as_str());
    let shown = door.get(&format!("/api/runs/{}", ids[0])).await.json();
    assert_eq!(shown["id"], ids[0].as_str());
    assert_eq!(shown["request"]["model"], "gpt-4o");
    assert_eq!(shown["steps"], json!([]));
    let nothing = "?missing=nothing";
    let there = door.get(&format!("/api/runs/{}{nothing}", ids[0])).await;
    assert_eq!(there.json(), shown);
    for id in ["00000000-0000-7000-8000-000000000000", "nonsense"] {
        let got = door.get(&format!("/api/runs/{id}{nothing}")).await;
        assert_eq!((got.status, got.json()), (StatusCode::OK, Value::Null));
        let got = door.get(&format!("/api/runs/{id}/events{nothing}")).await;
        assert_eq!((got.status, &*got.body), (StatusCode::NO_CONTENT, ""));
    }
    for (path, status) in [
        (
            "/api/runs/00000000-0000-7000-8000-000000000000?missing=error",
            404,
        ),
        (
            "/api/runs/00000000-0000-7000-8000-000000000000?missing=maybe",
            400,
        ),
        ("/api/runs/00000000-0000-7000-8000-000000000000/events", 404),
        (
            "/api/runs/00000000-0000-7000-8000-000000000000/events?missing=maybe",
            400,
        ),
        ("/api/runs/00000000-0000-7000-8000-000000000000", 404),
        ("/api/runs/nonsense", 404),
        ("/api/runs?limit=0", 400),
        ("/api/runs?limit=many", 400),
    ] {
        assert_eq!(door.get(path).await.status, status, "{path}");
    }
}

#[tokio::test]
async fn without_a_store_there_are_no_runs() {
    let got = door().await.get("/api/runs").await;
    assert_eq!(got.status, StatusCode::NOT_FOUND);
    assert_eq!(got.json()["error"]["code"], "not-recorded");
}

#[tokio::test]
async fn the_description_is_served() {
    let got = door().await.get("/openapi.json").await;
    assert_eq!(got.json()["openapi"], "3.1.0");
}

#[tokio::test]
async fn a_run_has_a_cost_only_with_prices() {
    let price = |text: &str| text.parse().expect("a price");
    let prices = Prices {
        input: price("0.1"),
        output: price("0.7"),
        cached_input: Some(price("0.03")),
    };
    let model = Model {
        prices: Some(prices),
        ..Model::default()
    };
    let mut said = FakeReply::content("All is well.", "stop");
    let mut reported: Value = serde_json::from_str(&said.body).expect("JSON");
    reported["usage"] = json!({
        "prompt_tokens": 1003, "completion_tokens": 7, "total_tokens": 1010,
        "prompt_tokens_details": { "cached_tokens": 3 },
    });
    said.body = reported.to_string();
    let upstream = Fake::start(vec![said]).await;
    let store = overlock_store::in_memory().expect("a store");
    let set = |settings: &mut Settings| {
        settings.models = Models::with_own([("mine".to_owned(), model)]);
        settings.currency = "EUR".to_owned();
    };
    let address = serve_with(&upstream.base, Some(store), set).await;
    let door = Door { address, upstream };
    let ask = async |model: &str, stream: bool| {
        let message = json!({ "role": "user", "content": "How is it?" });
        let request = json!({ "model": model, "messages": [message], "stream": stream });
        let got = door.chat(&request, &[]).await;
        assert_eq!(got.status, StatusCode::OK, "{}", got.body);
        let runs = door.get("/api/runs").await.json();
        let id = got.header("x-overlock-run");
        let shown = door.get(&format!("/api/runs/{id}")).await.json();
        let mut listed = runs.as_array().expect("a list").iter();
        let listed = listed.find(|run| run["id"] == id).expect("it is listed");
        assert_eq!(listed["cost"], shown["cost"]);
        shown
    };
    // 1000 × 0.1 + 3 × 0.03 + 7 × 0.7, for a million.
    let cost = json!({ "amount": "0.00010499", "currency": "EUR" });
    for (model, stream) in [("mine", false), ("mine", true), ("host/mine:latest", false)] {
        let run = ask(model, stream).await;
        assert_eq!(run["cost"], cost, "{model} {run}");
        assert_eq!(run["cached_tokens"], 3, "{run}");
    }
    for other in ["mine-too", "gpt-4o"] {
        let run = ask(other, false).await;
        assert_eq!(run.get("cost"), None, "{run}");
    }
}
