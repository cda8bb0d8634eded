//! A real server and a real model: answers that the model completes without a token limit must be
//! complete through a gateway without configuration.
//!
//! `cargo xtask test models` sends a few prompts; `cargo xtask bench models` sends many in every arm,
//! and writes the table after each.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use overlock_llm::testing::eventually_blocking;
use serde_json::{Value, json};

use crate::program::TemporaryFile;
use crate::serving::Serving;

/// The variables with the server and the model.
const SERVER: &str = "OVERLOCK_LLAMA_SERVER";
const MODEL: &str = "OVERLOCK_GGUF";
/// The chat template, for a model without one.
const TEMPLATE: &str = "OVERLOCK_CHAT_TEMPLATE";
/// The file for the table of the benchmark.
const TABLE: &str = "OVERLOCK_TABLE";
/// The numbers of prompts and chats.
const PROMPTS: &str = "OVERLOCK_PROMPTS";
const CHATS: &str = "OVERLOCK_CHATS";

/// The token limit of an answer that is not cut.
const UNCUT: u64 = 700;

const TOPICS: [&str; 25] = [
    "European rivers",
    "planets of the solar system",
    "kitchen tools",
    "programming languages",
    "birds of the forest",
    "board games",
    "musical instruments",
    "famous bridges",
    "spices",
    "trees",
    "dog breeds",
    "kinds of cheese",
    "chess openings",
    "mountains",
    "cloud formations",
    "car parts",
    "office furniture",
    "garden vegetables",
    "world capitals",
    "chemical elements",
    "olympic sports",
    "types of bread",
    "database systems",
    "fabrics",
    "seabirds",
];

/// A request for a document of some shape about some topic.
fn prompt(number: usize) -> (String, Value) {
    let topic = TOPICS[number % TOPICS.len()];
    let text = |most: u64| json!({ "type": "string", "minLength": 1, "maxLength": most });
    let object = |members: Value| {
        let names: Vec<&String> = members.as_object().expect("members").keys().collect();
        json!({
            "type": "object", "properties": members, "required": names,
            "additionalProperties": false,
        })
    };
    let some = |least: u64, most: u64, item: Value| json!({ "type": "array", "minItems": least, "maxItems": most, "items": item });
    let (asks, schema) = match number / TOPICS.len() % 6 {
        0 => (
            format!("List six {topic} with a short description and a size."),
            object(json!({ "items": some(6, 6, object(json!({
                "name": text(24), "description": text(60), "size": { "type": "integer" },
            }))) })),
        ),
        1 => (
            format!("Write a short report about {topic} with a title and three sections."),
            object(json!({
                "title": text(60),
                "sections": some(3, 3, object(json!({ "heading": text(40), "body": text(160) }))),
            })),
        ),
        2 => (
            format!("Rank {topic} in a table of ten rows with a name, a score and a flag."),
            some(
                10,
                10,
                object(json!({
                    "name": text(20), "score": { "type": "number" }, "good": { "type": "boolean" },
                })),
            ),
        ),
        3 => (
            format!("Make a plan to learn about {topic}: five tasks with a status and tags."),
            object(json!({ "tasks": some(5, 5, object(json!({
                "task": text(50),
                "status": { "enum": ["open", "doing", "done"] },
                "tags": some(1, 3, text(12)),
            }))) })),
        ),
        4 => (
            format!("Group {topic} into two groups, each with two members and a reason."),
            object(json!({ "groups": some(2, 2, object(json!({
                "group": text(24),
                "members": some(2, 2, object(json!({ "name": text(24), "reason": text(60) }))),
            }))) })),
        ),
        _ => (
            format!("Write a quiz of four questions about {topic}, each with three answers."),
            object(json!({ "questions": some(4, 4, object(json!({
                "question": text(80), "answers": some(3, 3, text(30)),
                "right": { "type": "integer", "minimum": 0, "maximum": 2 },
            }))) })),
        ),
    };
    (asks, schema)
}

struct Prompt {
    asks: String,
    schema: Value,
    /// The token limit of one answer.
    max_tokens: u64,
    streams: bool,
}

impl Prompt {
    fn new(number: usize) -> Self {
        let (asks, schema) = prompt(number);
        Self {
            asks,
            schema,
            max_tokens: 16 + (number as u64 * 7) % 49,
            streams: number % 2 == 1,
        }
    }

    fn request(&self, max_tokens: u64) -> Value {
        json!({
            "model": "local",
            "messages": [{ "role": "user", "content": self.asks }],
            "max_tokens": max_tokens,
            "temperature": 0,
            "response_format": {
                "type": "json_schema",
                "json_schema": { "name": "document", "strict": true, "schema": self.schema },
            },
        })
    }

    fn is_valid(&self, content: &str) -> bool {
        let value = serde_json::from_str::<Value>(content);
        value.is_ok_and(|value| jsonschema::is_valid(&self.schema, &value))
    }
}

/// The answer to one prompt in one arm.
#[derive(Default)]
struct Reply {
    content: String,
    finish: String,
    input: u64,
    output: u64,
    cached: u64,
    calls: u64,
    /// The recorded run, if it came through a gateway.
    run: Option<Value>,
}

impl Reply {
    /// The steps of its run; none without a gateway.
    fn steps(&self) -> &[Value] {
        let steps = self.run.as_ref().and_then(|run| run["steps"].as_array());
        steps.map_or(&[], Vec::as_slice)
    }

    fn add(&mut self, value: &Value) {
        let usage = &value["usage"];
        let figure = |place: &str| usage.pointer(place).and_then(Value::as_u64).unwrap_or(0);
        self.input += figure("/prompt_tokens");
        self.output += figure("/completion_tokens");
        self.cached += figure("/prompt_tokens_details/cached_tokens");
        self.calls += 1;
    }
}

/// The results of an arm for all prompts that the model completes uncut.
#[derive(Default)]
struct Arm {
    name: &'static str,
    asked: usize,
    whole: usize,
    /// Those with the finish reason `stop` that are not complete.
    false_stops: Vec<String>,
    unfinished: Vec<String>,
    /// Those that are complete, but differ from the uncut answer.
    other_texts: usize,
    /// Those of them with a seam that the server does not reproduce, even if all calls are repeated
    /// in order.
    wrong_seams: Vec<String>,
    /// The number of answers for each kind of seam, and of rejected ones.
    seams: BTreeMap<String, usize>,
    paid: u64,
    paid_uncut: u64,
    /// The tokens of the last reply, if it is complete.
    last_paid: Option<u64>,
    input: u64,
    cached: u64,
    calls: u64,
}

/// A ratio with one decimal.
fn tenths(part: u64, whole: u64) -> String {
    let tenths = part * 10 / whole.max(1);
    format!("{}.{}", tenths / 10, tenths % 10)
}

impl Arm {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    fn add(&mut self, server: &LlamaServer, prompt: &Prompt, reply: &Reply, uncut: &Reply) {
        self.asked += 1;
        let is_whole = prompt.is_valid(&reply.content);
        let description = || {
            let limit = prompt.max_tokens;
            format!("{} ({limit} tokens): {}", prompt.asks, reply.content)
        };
        match (reply.finish == "stop", is_whole) {
            (true, true) => self.whole += 1,
            (true, false) => self.false_stops.push(description()),
            (false, _) => self.unfinished.push(description()),
        }
        if is_whole && reply.content != uncut.content {
            self.other_texts += 1;
            if !server.writes_again(prompt, reply, uncut) {
                self.wrong_seams.push(description());
            }
        }
        for step in reply.steps() {
            let result = &step["result"];
            let kind = result["seam"].as_str().unwrap_or("refused");
            *self.seams.entry(kind.to_owned()).or_default() += 1;
        }
        let is_complete = is_whole && reply.finish == "stop";
        self.last_paid = is_complete.then_some(reply.input + reply.output);
        self.paid += reply.input + reply.output;
        self.paid_uncut += uncut.input + uncut.output;
        self.input += reply.input;
        self.cached += reply.cached;
        self.calls += reply.calls.max(reply.steps().len() as u64);
    }

    fn row(&self) -> String {
        format!(
            "| {} | {} of {} | {} | {} | {} | {} | {} % | {} | {} |",
            self.name,
            self.whole,
            self.asked,
            self.false_stops.len(),
            self.other_texts,
            self.wrong_seams.len(),
            tenths(self.paid, self.paid_uncut),
            self.cached * 100 / self.input.max(1),
            tenths(self.calls, self.asked as u64),
            self.seams_by_kind(),
        )
    }

    fn seams_by_kind(&self) -> String {
        let seams = self.seams.iter().filter(|(kind, _)| *kind != "first");
        let seams: Vec<String> = seams
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        seams.join(", ")
    }
}

const HEAD: &str = "| arm | whole | `stop` but not whole | other text than uncut | wrong seams | \
                    tokens paid | prompt tokens from the cache | calls | seams |\n\
                    |---|---|---|---|---|---|---|---|---|";

/// A `llama-server` on a free port. Dropping it stops it.
struct LlamaServer {
    child: Child,
    address: String,
    log: TemporaryFile,
}

impl LlamaServer {
    fn start(window: usize) -> Self {
        let program = env::var(SERVER).expect("cargo xtask test models says where it is");
        let model = env::var(MODEL).expect("cargo xtask test models says where it is");
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener
            .local_addr()
            .expect("an address")
            .port()
            .to_string();
        drop(listener);
        let folder = std::path::Path::new(&program).parent().expect("a folder");
        let log = TemporaryFile::new(&format!("llama-{port}.log"), "");
        let errors = fs::File::create(log.path()).expect("a file");
        let template = env::var(TEMPLATE).ok();
        let template = template
            .iter()
            .flat_map(|file| ["--chat-template-file", file]);
        let child = Command::new(&program)
            .env("LD_LIBRARY_PATH", folder)
            .args(template)
            .args(["-m", &model, "--alias", "local", "--host", "127.0.0.1"])
            .args(["--port", &port, "-c", &window.to_string()])
            // Several threads wait for each other in a loop, which is slow beside other work.
            .args(["-t", "1"])
            .args(["--parallel", "1", "--device", "none"])
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .expect("the server starts");
        let mut server = Self {
            child,
            address: format!("127.0.0.1:{port}"),
            log,
        };
        eventually_blocking(
            "the model is loaded",
            || {
                let ended = server.child.try_wait().expect("it is a child");
                assert!(ended.is_none(), "llama-server ended: {ended:?}");
                let is_there = TcpStream::connect(&server.address).is_ok();
                is_there && exchange(&server.address, "GET /health", "").0 == 200
            },
            |is_ready| *is_ready,
        );
        server
    }

    fn ask(&self, request: &Value) -> Value {
        let (status, answer) = self.post(request);
        assert_eq!(status, 200, "{answer}");
        answer
    }

    fn post(&self, request: &Value) -> (u16, Value) {
        let request = request.to_string();
        let (status, body) = exchange(&self.address, "POST /v1/chat/completions", &request);
        (status, serde_json::from_str(&body).expect("JSON"))
    }

    /// The number of requests that it has refused for their size, from its log.
    fn refused_for_size(&self) -> usize {
        let log = fs::read_to_string(self.log.path()).expect("its log");
        log.matches("exceeds the available context size").count()
    }

    /// Whether the server reproduces the text after the seam before the first difference from the
    /// uncut answer: with the same call, or when all calls up to there are repeated.
    ///
    /// A prefill can be split into other tokens than the model wrote, so that the server continues
    /// with other text. Its output also depends on how much of the prompt is in its cache, and so on
    /// earlier calls; only the same calls in the same order show that.
    fn writes_again(&self, prompt: &Prompt, reply: &Reply, uncut: &Reply) -> bool {
        let same = common_len(&reply.content, &uncut.content);
        let offsets = reply.steps().iter().filter_map(offset);
        let Some(seam) = offsets.filter(|offset| *offset <= same).max() else {
            // Without a gateway there are no seams.
            return reply.run.is_none();
        };
        let before = &reply.content[..seam];
        self.written_len(prompt, prompt.max_tokens, before, reply) > same
            || self.replayed_len(prompt, reply, seam) > same
    }

    /// How much of a document the server reproduces if all calls up to a seam are repeated.
    fn replayed_len(&self, prompt: &Prompt, reply: &Reply, seam: usize) -> usize {
        let (mut most, mut before) = (prompt.max_tokens, 0);
        for step in reply.steps() {
            let written = self.written_len(prompt, most, &reply.content[..before], reply);
            match offset(step) {
                Some(offset) if offset == seam => return written,
                Some(offset) => {
                    let added = step["result"]["added_bytes"].as_u64().unwrap_or(0);
                    before = offset + usize::try_from(added).expect("a length");
                    most = prompt.max_tokens;
                }
                // An answer of only white space; the next one may be longer.
                None => most *= 4,
            }
        }
        0
    }

    /// The length of the common prefix of the document and what the server writes after `before`.
    fn written_len(&self, prompt: &Prompt, most: u64, before: &str, reply: &Reply) -> usize {
        let Some(said) = self.after_prefill(prompt, most, before) else {
            return 0;
        };
        let said = text(&said["choices"][0]["message"]["content"]);
        let said = said.strip_prefix(before).unwrap_or(&said).trim_start();
        let joined = reply.content[before.len()..].trim_start();
        reply.content.len() - joined.len() + common_len(joined, said)
    }

    /// Continues a document with this many tokens; `None` if the server refuses it, because some
    /// documents cannot be split into tokens that its grammar accepts.
    fn after_prefill(&self, prompt: &Prompt, most: u64, document: &str) -> Option<Value> {
        let mut request = prompt.request(most);
        if !document.is_empty() {
            let messages = request["messages"].as_array_mut().expect("messages");
            messages.push(json!({ "role": "assistant", "content": document }));
        }
        let (status, answer) = self.post(&request);
        (status == 200).then_some(answer)
    }

    /// The answer of one call.
    fn once(&self, request: &Value) -> Reply {
        let value = self.ask(request);
        let choice = &value["choices"][0];
        let mut reply = Reply {
            content: text(&choice["message"]["content"]),
            finish: text(&choice["finish_reason"]),
            ..Reply::default()
        };
        reply.add(&value);
        reply
    }

    /// A simple continuation without a gateway: the document so far is the prefill of the next call.
    fn in_a_loop(&self, prompt: &Prompt) -> Reply {
        let mut reply = Reply::default();
        for _ in 0..50 {
            let after = self.after_prefill(prompt, prompt.max_tokens, &reply.content);
            let Some(value) = after else {
                "refused".clone_into(&mut reply.finish);
                break;
            };
            reply.add(&value);
            let choice = &value["choices"][0];
            let said = text(&choice["message"]["content"]);
            let news = said
                .strip_prefix(&*reply.content)
                .unwrap_or(&said)
                .to_owned();
            reply.content += &news;
            reply.finish = text(&choice["finish_reason"]);
            if reply.finish == "stop" || news.is_empty() {
                break;
            }
        }
        reply
    }
}

impl Drop for LlamaServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The offset where a step joined its answer, if it did.
fn offset(step: &Value) -> Option<usize> {
    usize::try_from(step["result"]["offset"].as_u64()?).ok()
}

/// The length of the common prefix of two texts.
fn common_len(one: &str, other: &str) -> usize {
    let same = one.bytes().zip(other.bytes());
    same.take_while(|(a, b)| a == b).count()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// One request and its answer, chunked or not.
fn exchange(address: &str, request: &str, body: &str) -> (u16, String) {
    let (_, status, body) = exchange_with_head(address, request, body);
    (status, body)
}

fn exchange_with_head(address: &str, request: &str, body: &str) -> (String, u16, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let head = format!(
        "{request} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("it reads");
    stream.write_all(body.as_bytes()).expect("it reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let is_chunked = head.to_lowercase().contains("transfer-encoding: chunked");
    let body = if is_chunked {
        joined(body)
    } else {
        body.to_owned()
    };
    (head.to_owned(), status.expect("a status"), body)
}

fn joined(mut chunks: &str) -> String {
    let mut body = String::new();
    while let Some((length, rest)) = chunks.split_once("\r\n") {
        let length = usize::from_str_radix(length.trim(), 16).unwrap_or(0);
        if length == 0 {
            break;
        }
        // The bytes were collected before they were decoded.
        body.push_str(&rest[..length]);
        chunks = &rest[length + 2..];
    }
    body
}

/// Sends a prompt through a gateway.
fn through(gateway: &Serving, prompt: &Prompt) -> Reply {
    let mut request = prompt.request(prompt.max_tokens);
    if prompt.streams {
        request["stream"] = json!(true);
        request["stream_options"] = json!({ "include_usage": true });
    }
    let (head, status, body) = exchange_with_head(
        &gateway.address,
        "POST /v1/chat/completions",
        &request.to_string(),
    );
    assert_eq!(status, 200, "{body}");
    let mut reply = Reply {
        run: Some(recorded(gateway, &head)),
        ..Reply::default()
    };
    if !prompt.streams {
        let value: Value = serde_json::from_str(&body).expect("JSON");
        let choice = &value["choices"][0];
        reply.content = text(&choice["message"]["content"]);
        reply.finish = text(&choice["finish_reason"]);
        reply.add(&value);
        return reply;
    }
    for line in body.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let Ok(value) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let choice = &value["choices"][0];
        reply.content += choice["delta"]["content"].as_str().unwrap_or_default();
        if let Some(finish) = choice["finish_reason"].as_str() {
            finish.clone_into(&mut reply.finish);
        }
        if value["usage"].is_object() {
            reply.add(&value);
        }
    }
    reply
}

/// The record of the run in a response head, once it is written.
fn recorded(gateway: &Serving, head: &str) -> Value {
    let run = head
        .lines()
        .find_map(|line| line.strip_prefix("x-overlock-run: "));
    let path = format!("GET /api/runs/{}", run.expect("the name of the run"));
    let (_, run) = eventually_blocking(
        "the run is recorded",
        || exchange(&gateway.address, &path, ""),
        |(status, run)| *status == 200 && run.contains("\"ended_at\""),
    );
    serde_json::from_str(&run).expect("JSON")
}

fn gateway(server: &LlamaServer, name: &str, config: &str) -> (Serving, TemporaryFile) {
    let file = TemporaryFile::new(&format!("{name}.toml"), config);
    let upstream = format!("http://{}/v1", server.address);
    let arguments = [
        "--upstream",
        &upstream,
        "--config",
        file.path(),
        "--log",
        "off",
    ];
    (Serving::start(name, &arguments, &[]), file)
}

fn prompts() -> usize {
    let count = env::var(PROMPTS).ok().and_then(|count| count.parse().ok());
    count.unwrap_or(24)
}

/// The prompts to send, spread over all topics and shapes.
fn numbers(count: usize) -> impl Iterator<Item = usize> {
    let all = TOPICS.len() * 6;
    (0..count).map(move |place| (place * 31) % all + all * (place / all))
}

#[test]
#[ignore = "needs llama-server and a model: run cargo xtask test models"]
fn what_a_real_model_completes_is_complete_through_the_gateway() {
    let server = LlamaServer::start(4096);
    let (gateway, _config) = gateway(&server, "real", "");
    let mut arm = Arm::new("Overlock, no configuration");
    for number in numbers(prompts()) {
        let prompt = Prompt::new(number);
        let uncut = server.once(&prompt.request(UNCUT));
        if uncut.finish == "stop" && prompt.is_valid(&uncut.content) {
            arm.add(&server, &prompt, &through(&gateway, &prompt), &uncut);
        }
    }
    println!("{HEAD}\n{}", arm.row());
    assert!(arm.asked >= prompts() / 2, "the model finishes too little");
    assert_eq!(arm.false_stops, Vec::<String>::new());
    assert_eq!(arm.unfinished, Vec::<String>::new());
    assert_eq!(arm.wrong_seams, Vec::<String>::new());
}

/// A sentence in eight languages, most of which substitute tokenizers undercount.
const SENTENCES: [&str; 8] = [
    "The harbour was quiet before the first boats came in. ",
    "Die Donaudampfschifffahrtsgesellschaft veröffentlichte gestern ihren Jahresbericht. ",
    "Les élèves étudiaient l'évolution des énergies renouvelables. ",
    "Вчера вечером мы долго обсуждали расписание поездов. ",
    "昨日の会議では、新しい計画について長い議論がありました。",
    "어제 회의에서 우리는 새로운 계획을 오랫동안 논의했습니다. ",
    "ناقشنا أمس جدول المواعيد الجديد للقطارات في المدينة. ",
    "कल शाम हमने रेलगाड़ियों की नई समय-सारणी पर चर्चा की। ",
];

/// A chat with a pseudorandom length and languages, and a short last message.
fn chat(number: usize) -> Value {
    // A multiplicative hash is random enough to vary lengths and languages.
    let draw = |place: usize, most: usize| {
        let mixed = ((number * 64 + place) as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        usize::try_from(mixed >> 40).expect("24 bits") % most
    };
    let turns = 2 * (1 + draw(0, 12));
    let mut messages: Vec<Value> = (0..turns)
        .map(|turn| {
            let sentence = SENTENCES[(number + draw(2 * turn + 1, 2)) % SENTENCES.len()];
            let role = if turn % 2 == 0 { "user" } else { "assistant" };
            json!({ "role": role, "content": sentence.repeat(1 + draw(2 * turn + 2, 16)) })
        })
        .collect();
    let last = SENTENCES[number % SENTENCES.len()];
    messages.push(json!({ "role": "user", "content": last }));
    json!({ "model": "local", "messages": messages, "max_tokens": 4, "temperature": 0 })
}

fn check_chats(count: usize) {
    let server = LlamaServer::start(1024);
    let (gateway, _config) = gateway(&server, "real-chats", "");
    let mut trimmed = 0;
    for number in 0..count {
        let request = chat(number).to_string();
        let (head, status, body) =
            exchange_with_head(&gateway.address, "POST /v1/chat/completions", &request);
        assert_eq!(status, 200, "chat {number}: {body}");
        trimmed += usize::from(head.contains("x-overlock-dropped-messages"));
    }
    let refused = server.refused_for_size();
    println!(
        "{count} chats in eight languages: {trimmed} trimmed, {refused} refused for their size"
    );
    assert_eq!(refused, 0, "the server refused requests for their size");
}

#[test]
#[ignore = "needs llama-server and a model: run cargo xtask test models"]
fn what_a_chat_in_any_language_is_trimmed_to_fits_the_real_window() {
    let count = env::var(CHATS).ok().and_then(|count| count.parse().ok());
    check_chats(count.unwrap_or(16));
}

/// The arms of the benchmark. Prompts that the model does not complete are skipped.
struct Arms {
    /// Without a gateway.
    uncut: Arm,
    cut: Arm,
    by_loop: Arm,
    /// With a gateway; the first has no configuration.
    gateways: Vec<Arm>,
    sent: usize,
    /// The prompts that the loop and the first gateway both complete, and the tokens that one uncut
    /// answer, the loop and the gateway paid for them.
    both: usize,
    paid: [u64; 3],
}

impl Arms {
    fn new(gateways: impl Iterator<Item = &'static str>) -> Self {
        Self {
            uncut: Arm::new("the model uncut"),
            cut: Arm::new("the model cut, no gateway"),
            by_loop: Arm::new("a loop of twenty lines"),
            gateways: gateways.map(Arm::new).collect(),
            sent: 0,
            both: 0,
            paid: [0; 3],
        }
    }

    /// Compares the last prompt of the loop and the gateway.
    fn compare(&mut self) {
        let paid = [&self.uncut, &self.by_loop, &self.gateways[0]].map(|arm| arm.last_paid);
        if let [Some(uncut), Some(by_loop), Some(gateway)] = paid {
            self.both += 1;
            for (sum, paid) in self.paid.iter_mut().zip([uncut, by_loop, gateway]) {
                *sum += paid;
            }
        }
    }

    fn table(&self) -> String {
        let mut table = format!("{} prompts\n{HEAD}", self.sent);
        for arm in [&self.uncut, &self.cut, &self.by_loop]
            .into_iter()
            .chain(&self.gateways)
        {
            let _ = write!(table, "\n{}", arm.row()); // a string takes everything
        }
        let [uncut, by_loop, gateway] = self.paid;
        let _ = write!(
            table,
            "\ntokens paid for the {} prompts that both complete: loop {}, Overlock {}\n",
            self.both,
            tenths(by_loop, uncut),
            tenths(gateway, uncut),
        );
        let first = &self.gateways[0];
        for description in first.false_stops.iter().chain(&first.unfinished) {
            let _ = writeln!(table, "not whole: {description}");
        }
        for description in self.gateways.iter().flat_map(|arm| &arm.wrong_seams) {
            let _ = writeln!(table, "wrong seam: {description}");
        }
        table
    }
}

#[test]
#[ignore = "measures: run cargo xtask bench models"]
fn bench_of_real_models() {
    let server = LlamaServer::start(4096);
    let (default, _none) = gateway(&server, "real-default", "");
    let strategy = |name: &str| format!("[complete]\nstrategy = \"{name}\"\n");
    let (overlap, _overlap) = gateway(&server, "real-overlap", &strategy("overlap"));
    let (remainder, _remainder) = gateway(&server, "real-remainder", &strategy("remainder"));
    let gateways = [
        ("Overlock, no configuration", &default),
        ("Overlock, `strategy = \"overlap\"`", &overlap),
        ("Overlock, `strategy = \"remainder\"`", &remainder),
    ];
    let mut arms = Arms::new(gateways.iter().map(|(name, _)| *name));
    let file = env::var(TABLE).expect("cargo xtask bench models says where it is");
    for (place, number) in numbers(prompts()).enumerate() {
        let prompt = Prompt::new(number);
        arms.sent = place + 1;
        let uncut = server.once(&prompt.request(UNCUT));
        if uncut.finish != "stop" || !prompt.is_valid(&uncut.content) {
            continue;
        }
        let cut = server.once(&prompt.request(prompt.max_tokens));
        let by_loop = server.in_a_loop(&prompt);
        arms.uncut.add(&server, &prompt, &uncut, &uncut);
        arms.cut.add(&server, &prompt, &cut, &uncut);
        arms.by_loop.add(&server, &prompt, &by_loop, &uncut);
        for (at, (_, gateway)) in gateways.iter().enumerate() {
            // The other strategies are measured on a fifth of the prompts.
            if at == 0 || place % 5 == 0 {
                arms.gateways[at].add(&server, &prompt, &through(gateway, &prompt), &uncut);
            }
        }
        arms.compare();
        // What was measured is not lost if the rest is not.
        fs::write(&file, arms.table()).expect("the folder exists");
        println!("{}", arms.gateways[0].row());
    }
    println!("{}", arms.table());
}
