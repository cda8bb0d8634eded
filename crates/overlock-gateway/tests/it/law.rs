use overlock_llm::assembler::UnsentOnly;
use overlock_llm::testing::Behaviour;
use overlock_llm::wire::Protocol;
use overlock_runs::Record;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use crate::door::{Door, TestResponse, report, script, serve_with};
use crate::fake::{Fake, FakeReply};
use crate::messages::{self, Block};
use crate::responses::{self, Item};

/// The request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Json,
    StrictSchema,
    Anything,
    Text,
    ToolCall,
}

/// The reply of the upstream to one call.
#[derive(Clone, Debug)]
struct Reply {
    text: String,
    finish: &'static str,
}

#[derive(Clone, Debug)]
struct Case {
    protocol: Protocol,
    wanted: Wanted,
    replies: Vec<Reply>,
    /// The characters in an event of the first answer.
    piece: usize,
    /// The bytes in a frame of every answer.
    frame: usize,
}

/// The response to a client, and the record.
#[derive(Debug, Default, PartialEq)]
struct Delivered {
    content: String,
    arguments: String,
    finish: Vec<Value>,
    error: Option<Value>,
    outcome: String,
    reason: String,
    continuations: String,
    usage: Value,
    report: Value,
    calls: usize,
    record: Value,
}

impl Wanted {
    fn request(self, stream: bool) -> Value {
        let mut request = json!({
            "model": "gpt-4o", "stream": stream, "max_tokens": 1000,
            "messages": [{ "role": "user", "content": "Write the report." }],
        });
        if stream {
            request["stream_options"] = json!({ "include_usage": true });
        }
        match self {
            Self::Anything | Self::Text => {}
            Self::Json => request["response_format"] = json!({ "type": "json_object" }),
            Self::StrictSchema => {
                let schema = json!({ "type": "object", "required": ["title"] });
                let schema = json!({ "name": "report", "strict": true, "schema": schema });
                request["response_format"] =
                    json!({ "type": "json_schema", "json_schema": schema });
            }
            Self::ToolCall => {
                let parameters = json!({ "type": "object", "properties": {} });
                let function = json!({ "name": "write", "parameters": parameters });
                request["tools"] = json!([{ "type": "function", "function": function }]);
            }
        }
        request
    }

    /// The same request in Responses.
    fn responses_request(self, stream: bool) -> Value {
        let mut request = json!({
            "model": "gpt-4o", "stream": stream, "max_output_tokens": 1000,
            "input": "Write the report.",
        });
        match self {
            Self::Anything | Self::Text => {}
            Self::Json => request["text"] = json!({ "format": { "type": "json_object" } }),
            Self::StrictSchema => {
                let schema = json!({ "type": "object", "required": ["title"] });
                request["text"] = json!({ "format": {
                    "type": "json_schema", "name": "report", "strict": true, "schema": schema,
                } });
            }
            Self::ToolCall => {
                let parameters = json!({ "type": "object", "properties": {} });
                request["tools"] = json!([{
                    "type": "function", "name": "write", "parameters": parameters, "strict": false,
                }]);
            }
        }
        request
    }

    /// The same request in Messages, which has no format without a schema.
    fn messages_request(self, stream: bool) -> Value {
        let mut request = json!({
            "model": "gpt-4o", "stream": stream, "max_tokens": 1000,
            "messages": [{ "role": "user", "content": "Write the report." }],
        });
        let format =
            |schema: Value| json!({ "format": { "type": "json_schema", "schema": schema } });
        match self {
            Self::Anything | Self::Text => {}
            Self::Json => request["output_config"] = format(json!({})),
            Self::StrictSchema => {
                let schema = json!({ "type": "object", "required": ["title"] });
                request["output_config"] = format(schema);
            }
            Self::ToolCall => {
                let schema = json!({ "type": "object", "properties": {} });
                request["tools"] = json!([{ "name": "write", "input_schema": schema }]);
            }
        }
        request
    }

    fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Text => &[("x-overlock-continue", "text")],
            _ => &[],
        }
    }

    /// The message of an answer, or a piece of it.
    fn message(self, text: &str, is_first: bool) -> Value {
        if self != Self::ToolCall {
            return json!({ "role": "assistant", "content": text });
        }
        let mut call = json!({ "index": 0, "function": { "arguments": text } });
        if is_first {
            call["id"] = json!("call-1");
            call["type"] = json!("function");
            call["function"]["name"] = json!("write");
        }
        json!({ "role": "assistant", "content": null, "tool_calls": [call] })
    }
}

const USAGE: [(&str, u64); 3] = [
    ("prompt_tokens", 10),
    ("completion_tokens", 5),
    ("total_tokens", 15),
];

fn usage() -> Value {
    let members = USAGE.map(|(name, tokens)| (name.to_owned(), json!(tokens)));
    Value::Object(Map::from_iter(members))
}

impl Case {
    /// The replies of an upstream that speaks Responses.
    fn responses(&self, is_streamed: bool) -> Vec<FakeReply> {
        let text = |reply: &Reply| Item::Text(reply.text.clone());
        let first = &self.replies[0];
        let item = match self.wanted {
            Wanted::ToolCall => Item::Call(first.text.clone()),
            _ => text(first),
        };
        let first = if is_streamed {
            responses::stream(&[item], first.finish, self.piece)
        } else {
            FakeReply::json(200, &responses::object(&[item], first.finish))
        };
        let later = self.replies[1..].iter();
        let later = later.map(|reply| responses::stream(&[text(reply)], reply.finish, 7));
        let replies = std::iter::once(first).chain(later);
        let mut replies: Vec<FakeReply> = replies.map(|it| it.in_frames(self.frame)).collect();
        replies.push(no_more());
        replies
    }

    /// The replies of an upstream that speaks Messages. With tools, it always streams.
    fn messages(&self, is_streamed: bool) -> Vec<FakeReply> {
        let reason = |finish, calls| match finish {
            "length" => "max_tokens",
            _ if calls => "tool_use",
            _ => "end_turn",
        };
        let first = &self.replies[0];
        let calls = self.wanted == Wanted::ToolCall;
        let block = if calls {
            Block::Call(first.text.clone())
        } else {
            Block::Text(first.text.clone())
        };
        let first = if is_streamed || calls {
            messages::stream(&[block], reason(first.finish, calls), self.piece)
        } else {
            FakeReply::json(
                200,
                &messages::object(&[block], reason(first.finish, calls)),
            )
        };
        let later = self.replies[1..].iter().map(|reply| {
            let block = Block::Text(reply.text.clone());
            messages::stream(&[block], reason(reply.finish, false), 7)
        });
        let replies = std::iter::once(first).chain(later);
        let mut replies: Vec<FakeReply> = replies.map(|it| it.in_frames(self.frame)).collect();
        replies.push(no_more());
        replies
    }

    /// The replies; the first is a stream or one object.
    fn replies(&self, is_streamed: bool) -> Vec<FakeReply> {
        if self.protocol == Protocol::Messages {
            return self.messages(is_streamed);
        }
        if self.protocol == Protocol::Responses {
            return self.responses(is_streamed);
        }
        let mut later: Vec<FakeReply> = self.replies[1..]
            .iter()
            .map(|reply| streamed(Wanted::Text, reply, 7).in_frames(self.frame))
            .collect();
        let first = &self.replies[0];
        let first = if is_streamed {
            streamed(self.wanted, first, self.piece)
        } else {
            let mut message = self.wanted.message(&first.text, true);
            if let Some(call) = message.pointer_mut("/tool_calls/0") {
                call.as_object_mut().expect("an object").remove("index");
            }
            FakeReply::choices(&json!([
                { "index": 0, "message": message, "finish_reason": first.finish }
            ]))
        };
        later.insert(0, first.in_frames(self.frame));
        later.push(no_more());
        later
    }

    async fn delivered(&self, is_streamed: bool) -> Delivered {
        let upstream = Fake::start(self.replies(is_streamed)).await;
        let store = overlock_store::in_memory().expect("a store");
        let address = serve_with(&upstream.base, Some(store), |settings| {
            settings.record = Record::Full;
            // A stream cannot be closed: `UnsentOnly::ClosePartial`.
            settings.close_partial = false;
            settings.upstream.api = self.protocol;
        });
        let door = Door {
            address: address.await,
            upstream,
        };
        let headers = self.wanted.headers();
        let got = match self.protocol {
            Protocol::ChatCompletions => {
                door.chat(&self.wanted.request(is_streamed), headers).await
            }
            Protocol::Responses => {
                let request = self.wanted.responses_request(is_streamed);
                door.respond(&request, headers).await
            }
            Protocol::Messages => {
                let request = self.wanted.messages_request(is_streamed);
                door.message(&request, headers).await
            }
        };
        let mut delivered = Delivered::read(&got, door.upstream.requests().len());
        let run = got.header("x-overlock-run").to_owned();
        let record = door.get(&format!("/api/runs/{run}?text=true")).await.json();
        delivered.record = recorded(&record);
        delivered
    }
}

/// The last reply is repeated, so it must end the run.
fn no_more() -> FakeReply {
    FakeReply::json(400, &json!({ "error": { "message": "no more" } }))
}

/// An answer as events, each with a few characters.
fn streamed(wanted: Wanted, reply: &Reply, piece: usize) -> FakeReply {
    let characters: Vec<char> = reply.text.chars().collect();
    let pieces = characters.chunks(piece).enumerate();
    let mut choices: Vec<Value> = pieces
        .map(|(place, piece)| {
            let text = String::from_iter(piece);
            json!({ "index": 0, "delta": wanted.message(&text, place == 0) })
        })
        .collect();
    if choices.is_empty() {
        choices.push(json!({ "index": 0, "delta": wanted.message("", true) }));
    }
    choices.push(json!({ "index": 0, "delta": {}, "finish_reason": reply.finish }));
    let mut said = FakeReply::stream(&choices);
    let usage = json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o",
        "choices": [], "usage": usage(),
    });
    let end = format!("data: {usage}\n\ndata: [DONE]\n\n");
    said.body = said.body.replace("data: [DONE]\n\n", &end);
    said
}

impl Delivered {
    fn read(got: &TestResponse, calls: usize) -> Self {
        let mut delivered = Self {
            calls,
            outcome: got.header("x-overlock-outcome").to_owned(),
            reason: got.header("x-overlock-reason").to_owned(),
            continuations: got.header("x-overlock-continuations").to_owned(),
            ..Self::default()
        };
        if got.header("content-type").starts_with("application/json") {
            let object = got.json();
            if object["object"] == "response" {
                delivered.take_response(&object);
            } else if object["type"] == "message" {
                delivered.take_message(&object);
            } else {
                delivered.take(&object, "message");
            }
            return delivered;
        }
        if got.body.starts_with("event: message_start") {
            delivered.take_message(&messages::checked(&got.body));
        } else if got.body.starts_with("event: ") {
            delivered.take_response(&responses::checked(&got.body));
        }
        for event in got.body.split_terminator("\n\n") {
            if let Some(comment) = event.strip_prefix(": overlock ") {
                for (name, value) in comment.split(' ').filter_map(|it| it.split_once('=')) {
                    match name {
                        "outcome" => value.clone_into(&mut delivered.outcome),
                        "reason" => value.clone_into(&mut delivered.reason),
                        "continuations" => value.clone_into(&mut delivered.continuations),
                        _ => {}
                    }
                }
            }
            match event.strip_prefix("data: ") {
                None | Some("[DONE]") => {}
                Some(data) => delivered.take(&serde_json::from_str(data).expect("JSON"), "delta"),
            }
        }
        delivered
    }

    /// Whether the client got a prefix of the text that was accepted by the record.
    fn is_prefix_of_accepted(&self) -> bool {
        let steps = self.record["steps"].as_array();
        let added = steps.into_iter().flatten();
        let added = added.filter_map(|step| step["result"]["added"].as_str());
        let accepted: String = added.collect();
        accepted.starts_with(&self.content) && accepted.starts_with(&self.arguments)
    }

    fn take_response(&mut self, response: &Value) {
        self.usage = response["usage"].clone();
        self.report = response["overlock"].clone();
        self.error = response.get("error").filter(|it| !it.is_null()).cloned();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        for item in response["output"].as_array().into_iter().flatten() {
            self.content.push_str(&text(&item["content"][0]["text"]));
            self.arguments.push_str(&text(&item["arguments"]));
        }
        self.finish.push(match response["status"].as_str() {
            Some("completed") => json!("stop"),
            _ => response["incomplete_details"]["reason"].clone(),
        });
    }

    /// An input that is cut is empty.
    fn take_message(&mut self, message: &Value) {
        self.usage = message["usage"].clone();
        self.report = message["overlock"].clone();
        for block in message["content"].as_array().into_iter().flatten() {
            let text = block["text"].as_str().unwrap_or_default();
            self.content.push_str(text);
            let input = block["input"].as_object().filter(|input| !input.is_empty());
            if input.is_some() {
                self.arguments.push_str(&block["input"].to_string());
            }
        }
        self.finish.push(match message["stop_reason"].as_str() {
            Some("end_turn" | "tool_use") => json!("stop"),
            _ => message["stop_reason"].clone(),
        });
    }

    fn take(&mut self, said: &Value, at: &str) {
        for (member, place) in [("usage", &mut self.usage), ("overlock", &mut self.report)] {
            if let Some(value) = said.get(member) {
                place.clone_from(value);
            }
        }
        if let Some(error) = said.get("error") {
            self.error = Some(error.clone());
        }
        for choice in said["choices"].as_array().into_iter().flatten() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let message = &choice[at];
            self.content.push_str(&text(&message["content"]));
            let arguments = &message["tool_calls"][0]["function"]["arguments"];
            self.arguments.push_str(&text(arguments));
            if at == "message" || !choice["finish_reason"].is_null() {
                self.finish.push(choice["finish_reason"].clone());
            }
        }
    }
}

/// A record without ids, times and addresses, which differ from run to run.
fn recorded(record: &Value) -> Value {
    match record {
        Value::Object(members) => {
            let members = members.iter().filter(|(name, _)| {
                !matches!(
                    name.as_str(),
                    "id" | "at" | "upstream" | "request" | "stream" | "worker"
                ) && !name.ends_with("_at")
                    && !name.ends_with("_ms")
            });
            Value::Object(
                members
                    .map(|(name, it)| (name.clone(), recorded(it)))
                    .collect(),
            )
        }
        Value::Array(values) => values.iter().map(recorded).collect(),
        Value::String(text) if text.starts_with("127.0.0.1:") => {
            json!(text.trim_start_matches(|character: char| !character.is_whitespace()))
        }
        value => value.clone(),
    }
}

fn documents() -> impl Strategy<Value = String> {
    let rows = "{\"title\": \"t\", \"rows\": [{\"a\": 1, \"b\": \"x\"}, {\"a\": 1, \"b\": \"x\"}, \
                {\"a\": 2, \"b\": \"x\"}, {\"a\": 1, \"b\": \"xy\"}]}";
    let fixed = select(vec![
        rows.to_owned(),
        "{\"title\": \"t\"}".to_owned(),
        "[1, 2, 3, 4, 55, 666, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]".to_owned(),
        "{\"rows\": [\"without a title\", \"é 🚀\"]}".to_owned(),
        "{'title': 'single', rows: [1, 2,], }".to_owned(),
        "Some prose without any document, which goes on for a while and ends.".to_owned(),
    ]);
    prop_oneof![2 => (100..900_usize).prop_map(report), 3 => fixed]
}

/// The last characters of a text.
fn tail(text: &str, count: usize) -> &str {
    let start = text.char_indices().rev().nth(count.saturating_sub(1));
    &text[start.map_or(0, |(at, _)| at)..]
}

/// The model's continuations of a document that is cut somewhere.
fn rests(document: &str, at: usize) -> impl Strategy<Value = Reply> + use<> {
    let (kept, rest) = document.split_at(at);
    let (kept, rest) = (kept.to_owned(), rest.to_owned());
    let overlap = select(vec![10_usize, 40, 80, 200]);
    (0..11_u8, overlap, select(vec!["stop", "length"])).prop_map(move |(way, overlap, finish)| {
        let tail = tail(&kept, overlap);
        let half = rest.floor_char_boundary(rest.len() / 2);
        let text = match way {
            0 | 1 => format!("{tail}{rest}"),
            2 => rest.clone(),
            3 => format!("{tail}{tail}{rest}"),
            4 => format!("{kept}{rest}"),
            5 => format!("{kept}{rest}").replacen("title", "heading", 1),
            6 => format!("```json\n{tail}{rest}\n```"),
            7 => "I am sorry, I cannot go on.".to_owned(),
            8 => String::new(),
            9 => "{\"other\": [1]}".to_owned(),
            _ => format!("{tail}{}", &rest[..half]),
        };
        Reply { text, finish }
    })
}

fn cases() -> impl Strategy<Value = Case> {
    let wanted = select(vec![
        Wanted::Json,
        Wanted::StrictSchema,
        Wanted::Anything,
        Wanted::Text,
        Wanted::ToolCall,
    ]);
    let before = select(vec![
        String::new(),
        "\n  ".to_owned(),
        "Sure, here [it] is:\n".to_owned(),
        "```json\n".to_owned(),
        format!("{}\n", "This is a long introduction. ".repeat(20)),
    ]);
    let after = select(vec![
        "",
        "",
        "\n```",
        "\n\nThat is all.",
        "\n{\"b\": 2}",
        " ",
    ]);
    let cut = prop_oneof![3 => any::<prop::sample::Index>().prop_map(Some), 1 => Just(None)];
    let sizes = (1..40_usize, select(vec![1_usize, 2, 3, 10, 100, 10_000]));
    let protocol = select(vec![
        Protocol::ChatCompletions,
        Protocol::Responses,
        Protocol::Messages,
    ]);
    let first = ((protocol, wanted), before, documents(), after, cut, sizes);
    first.prop_flat_map(
        |((protocol, wanted), before, document, after, cut, (piece, frame))| {
            let (end, finish) = match cut {
                Some(cut) => {
                    let at = cut.index(document.len().max(1));
                    (document.floor_char_boundary(at), "length")
                }
                None => (document.len(), "stop"),
            };
            let after = if cut.is_some() { "" } else { after };
            let text = [&before, &document[..end], after].concat();
            let first = Reply { text, finish };
            let later = prop::collection::vec(rests(&document, end), 0..4);
            later.prop_map(move |later| Case {
                protocol,
                wanted,
                replies: [vec![first.clone()], later].concat(),
                piece,
                frame,
            })
        },
    )
}

/// What the answer that is not streamed could do and the stream could not, if they differ.
fn exception(whole: &Delivered, streamed: &Delivered) -> Option<UnsentOnly> {
    let is_reason = |reason| streamed.reason == reason;
    if is_reason("schema-violation") && whole.calls == streamed.calls + 1 {
        return Some(UnsentOnly::CorrectSchema);
    }
    if is_reason("repeating") || whole.reason == "repeating" {
        return Some(UnsentOnly::RemoveLoop);
    }
    // The stream had sent bytes that the repaired document does not begin with.
    let is_stopped = is_reason("not-continued") && streamed.calls == 1;
    let is_other = !whole.content.starts_with(&streamed.content);
    (is_stopped && is_other).then_some(UnsentOnly::Replace)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, max_shrink_iters: 60, ..ProptestConfig::default() })]

    #[test]
    fn streaming_changes_nothing_but_the_time_of_arrival(case in cases()) {
        let runtime = Runtime::new().expect("a runtime");
        let (whole, streamed) = runtime.block_on(async {
            let whole = case.delivered(false).await;
            (whole, case.delivered(true).await)
        });
        match exception(&whole, &streamed).filter(|_| whole != streamed) {
            None => prop_assert_eq!(&whole, &streamed),
            Some(exception) => {
                let is_complete = streamed.finish.contains(&json!("stop"));
                prop_assert!(!is_complete && streamed.outcome != "complete", "{:?}", exception);
                prop_assert!(streamed.is_prefix_of_accepted(), "{:?}: {:?}", exception, streamed);
            }
        }
    }
}

#[tokio::test]
async fn every_behaviour_of_a_model_gives_the_same_answer_streamed_and_not() {
    let document = report(2500);
    for behaviour in Behaviour::ALL {
        for breath in [180, 700] {
            let mut answers = Vec::new();
            for stream in [false, true] {
                let script = script(&document, breath, &[behaviour]);
                let door = Door::open(script, &[]).await;
                let request = Wanted::Json.request(stream);
                let got = door.chat(&request, &[]).await;
                answers.push(Delivered::read(&got, door.upstream.calls()));
            }
            let name = behaviour.name();
            assert_eq!(answers[0], answers[1], "{name}, {breath} bytes at a time");
        }
    }
}

/// The response for a cut first answer and these continuations, which must be the same streamed and
/// not.
async fn delivered_alike(first: &str, rests: &[&str]) -> Delivered {
    delivered_alike_as(Wanted::Json, first, rests).await
}

async fn delivered_alike_as(wanted: Wanted, first: &str, rests: &[&str]) -> Delivered {
    let reply = |text: &str, finish| Reply {
        text: text.to_owned(),
        finish,
    };
    let mut replies = vec![reply(first, "length")];
    replies.extend(rests.iter().map(|rest| reply(rest, "stop")));
    let mut case = Case {
        protocol: Protocol::Responses,
        wanted,
        replies,
        piece: 3,
        frame: 1,
    };
    let responses = case.delivered(false).await;
    assert_eq!(responses, case.delivered(true).await);
    case.protocol = Protocol::Messages;
    let messages = case.delivered(false).await;
    assert_eq!(messages, case.delivered(true).await);
    case.protocol = Protocol::ChatCompletions;
    let whole = case.delivered(false).await;
    assert_eq!(whole, case.delivered(true).await);
    assert_eq!(
        (&whole.content, &whole.arguments, &whole.outcome),
        (&responses.content, &responses.arguments, &responses.outcome)
    );
    if whole.outcome == "complete" {
        assert_eq!(
            (messages.outcome, messages.content),
            (whole.outcome.clone(), whole.content.clone())
        );
    }
    whole
}

#[tokio::test]
async fn a_document_that_begins_only_in_a_later_answer_is_the_same_streamed_and_not() {
    let document = "{\"title\": \"Changes\", \"text\": \"In March\"}";
    for first in [
        "",
        "\n    \t \t",
        "Sure, here it is:\n",
        "<think>Let me see",
    ] {
        for rests in [vec![document], vec!["\n ", document]] {
            let got = delivered_alike(first, &rests).await;
            assert_eq!(got.content, document, "{first:?}");
            assert_eq!(got.outcome, "complete");
        }
        let got = delivered_alike(first, &["\n", ""]).await;
        assert_eq!(
            (got.content.as_str(), got.outcome.as_str()),
            (first, "failed")
        );
    }
}

#[tokio::test]
async fn a_doubled_overlap_is_never_joined_twice() {
    let rest = "livery query and cut the time of the nightly export in half\"}";
    let first = "{\"title\": \"Changes\", \"text\": \"In March the team has improved de";
    for length in [30, 50] {
        let overlap = tail(first, length);
        let doubled = format!("{overlap}{overlap}{rest}");
        let got = delivered_alike(first, &[&doubled]).await;
        assert!(!got.content.contains("improved deIn March"), "{got:?}");
        assert!(got.outcome != "complete", "{got:?}");
        for wanted in [Wanted::Json, Wanted::ToolCall] {
            let rests = [doubled.as_str(), &format!("{overlap}{rest}")];
            let got = delivered_alike_as(wanted, first, &rests).await;
            assert_eq!(got.content + &got.arguments, format!("{first}{rest}"));
            assert_eq!(got.outcome, "complete");
        }
    }
}

#[tokio::test]
async fn a_reworded_restart_has_the_same_result_streamed_and_not() {
    let first = "{\"items\":[{\"t\":\"red fox\"},{\"t\":\"jay\"},{\"";
    let reworded = "{\"items\":[{\"t\":\"a red fox\"},{\"t\":\"jay\"},{\"t\":\"owl\"}]}";
    let complete = format!("{first}t\":\"owl\"}}]}}");
    for wanted in [Wanted::Json, Wanted::ToolCall] {
        for rests in [&[reworded][..], &[reworded; 3]] {
            let got = delivered_alike_as(wanted, first, rests).await;
            let text = got.content + &got.arguments;
            assert!(!text.contains("a red fox"), "{text}");
            assert!(got.outcome != "complete", "{text}");
        }
        let got = delivered_alike_as(wanted, first, &[reworded, &complete]).await;
        assert_eq!(got.content + &got.arguments, complete);
        assert_eq!(got.outcome, "complete");
    }
}
