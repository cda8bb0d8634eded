//! Measures how long conversations are fitted, and checks the results.
//!
//! A conversation of a thousand messages, about 240,000 tokens, with tool calls and their results,
//! is reduced to 32,000. Each peer gets it in its own representation. The results are recounted by
//! `tiktoken` and checked for calls without a result.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use overlock_budget::{Cached, ChatCounter, Encoding, Extras, Models, Plan, PlanOptions, plan};
use overlock_llm::wire::chat::ChatRequest;
use serde_json::{Value, json};

use crate::Options;
use crate::agents;
use crate::clock::{best_of, once, shown_time};
use crate::counting::{english, shuffled};
use crate::outside::{peers_folder, python_environment};
use crate::random::Random;
use crate::table::Table;

const MESSAGES: usize = 1000;
const LIMIT: u64 = 32_000;
const SCRIPT: &str = include_str!("fitting.py");
const PACKAGES: [&str; 5] = [
    "langchain==1.4.7",
    "langchain-core==1.7.2",
    "litellm==1.106.2",
    "mpmath==1.3.0",
    "tiktoken==0.14.0",
];

/// Fits the conversation with all peers.
pub(crate) fn run(options: &Options) -> Result<()> {
    let runs = if options.quick { 3 } else { 9 };
    let conversation = conversation(MESSAGES)?;
    let request = read(&conversation)?;
    let ours = Ours::new();

    let planned = ours.plan(&request)?;
    let sent = request.clone().rewrite(&planned)["messages"].take();
    let cold = best_of(runs, || ours.plan(&request));
    let (again, next) = ours.next_turn(&conversation, runs)?;

    let mut table = Table::new([
        "fitting 1,000 messages into 32,000 tokens",
        "time",
        "ours is faster by",
        "kept",
        "tokens, recounted",
        "calls torn from results",
    ]);
    let peers = ask_peers(&conversation, &sent);
    let recount = peers
        .as_ref()
        .ok()
        .and_then(|rows| rows.first())
        .cloned()
        .unwrap_or_default();
    table.row(row("overlock-budget", cold, cold, &recount));
    for (name, time) in [
        ("overlock-budget, the same again", again),
        ("overlock-budget, the next turn", next),
    ] {
        table.row([
            name.to_owned(),
            shown_time(time),
            format!(
                "{:.0} × the first",
                cold.as_secs_f64() / time.as_secs_f64().max(1e-9)
            ),
        ]);
    }
    match &peers {
        Ok(rows) => {
            for peer in &rows[1..] {
                let time = Duration::from_secs_f64(peer["seconds"].as_f64().unwrap_or_default());
                table.row(row(
                    peer["name"].as_str().unwrap_or_default(),
                    time,
                    cold,
                    peer,
                ));
            }
        }
        Err(error) => table.row([format!("LangChain, LiteLLM: not installed: {error:#}")]),
    }
    table.print("Fitting a conversation");
    if peers.is_ok() {
        let folder = peers_folder()?.join("fitting");
        agents::run(&python_environment(&folder, &PACKAGES)?, &folder)?;
    }

    let time = ten_thousand_items()?;
    println!("\n10,000 items negotiated in {}.", shown_time(time));
    Ok(())
}

/// Our planner.
struct Ours {
    found: overlock_budget::Found,
    options: PlanOptions,
}

impl Ours {
    fn new() -> Self {
        let found = Models::default().find("gpt-4o");
        let options = PlanOptions {
            window: LIMIT,
            margin: Some(0),
            ..PlanOptions::for_model(&found.model)
        };
        Self { found, options }
    }

    /// Plans without a cache.
    fn plan(&self, request: &ChatRequest) -> Result<Plan> {
        let counter = ChatCounter::for_model(&self.found);
        Ok(plan(request, &Extras::default(), &counter, &self.options)?)
    }

    /// Plans with the conversation in the cache: again, and with one more turn.
    fn next_turn(&self, conversation: &Value, runs: usize) -> Result<(Duration, Duration)> {
        let request = read(conversation)?;
        let mut longer = conversation.clone();
        let messages = longer["messages"]
            .as_array_mut()
            .context("it has messages")?;
        messages.push(json!({ "role": "assistant", "content": "That is how it was, as far as anybody remembers." }));
        messages.push(json!({ "role": "user", "content": "And what came of it in the end?" }));
        let longer = read(&longer)?;
        let (mut same, mut next) = (Duration::MAX, Duration::MAX);
        for _ in 0..runs {
            let cached = Cached::new(Encoding::O200kBase, 64_000_000);
            let counter = ChatCounter::with_counter(&self.found, &cached);
            let plan = |request| plan(request, &Extras::default(), &counter, &self.options);
            plan(&request)?;
            same = same.min(once(|| plan(&request)).0);
            next = next.min(once(|| plan(&longer)).0);
        }
        Ok((same, next))
    }
}

fn read(conversation: &Value) -> Result<ChatRequest> {
    Ok(ChatRequest::from_value(conversation.clone())?)
}

fn row(name: &str, time: Duration, ours: Duration, figures: &Value) -> [String; 6] {
    let tokens = figures["tokens"].as_u64();
    let recounted = match tokens {
        None => "not recounted".to_owned(),
        Some(tokens) if tokens > LIMIT => {
            format!(
                "{tokens} ({:.1} % over)",
                100.0 * (tokens - LIMIT) as f64 / LIMIT as f64
            )
        }
        Some(tokens) => tokens.to_string(),
    };
    [
        name.to_owned(),
        shown_time(time),
        format!("{:.0} ×", time.as_secs_f64() / ours.as_secs_f64().max(1e-9)),
        figures["kept"].to_string(),
        recounted,
        figures["orphans"].to_string(),
    ]
}

fn ask_peers(conversation: &Value, sent: &Value) -> Result<Vec<Value>> {
    eprintln!("   fitting with LangChain and LiteLLM");
    let folder = peers_folder()?;
    let python = python_environment(&folder.join("fitting"), &PACKAGES)?;
    let [script, request, ours] =
        ["fit.py", "request.json", "kept.json"].map(|name| folder.join("fitting").join(name));
    fs::write(&script, SCRIPT)?;
    fs::write(&request, conversation.to_string())?;
    fs::write(&ours, sent.to_string())?;
    let output = Command::new(python)
        .arg(script)
        .arg(request)
        .arg(LIMIT.to_string())
        .arg(ours)
        .output()?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!(
            "it ended with {}: {}",
            output.status,
            errors.lines().last().unwrap_or_default()
        );
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// A conversation in which every third answer uses a tool.
fn conversation(messages: usize) -> Result<Value> {
    let sentences = english()?;
    let mut random = Random::new(11);
    let mut text = |bytes: usize, seed: usize| {
        let long = shuffled(&sentences, " ", bytes + seed % 200);
        long[..long.floor_char_boundary(bytes + random.below(bytes))].to_owned()
    };
    let mut all = vec![json!({ "role": "system", "content": text(600, 0) })];
    let mut turn = 0;
    while all.len() + 4 < messages {
        all.push(json!({ "role": "user", "content": text(500, turn) }));
        if turn % 3 == 0 {
            let id = format!("call_{turn}");
            let arguments = json!({ "query": text(60, turn) }).to_string();
            all.push(json!({ "role": "assistant", "content": null, "tool_calls": [
                { "id": id, "type": "function", "function": { "name": "search", "arguments": arguments } },
            ] }));
            all.push(json!({ "role": "tool", "tool_call_id": id, "content": text(1500, turn) }));
        }
        all.push(json!({ "role": "assistant", "content": text(700, turn) }));
        turn += 1;
    }
    while all.len() < messages {
        let role = if all.len() % 2 == messages % 2 {
            "assistant"
        } else {
            "user"
        };
        all.push(json!({ "role": role, "content": text(500, turn) }));
    }
    Ok(json!({ "model": "gpt-4o", "max_tokens": 1, "messages": all }))
}

fn ten_thousand_items() -> Result<Duration> {
    use overlock_budget::{FlexOptions, Item, flex};
    let mut random = Random::new(3);
    let items: Vec<Item> = (0..10_000)
        .map(|index| Item {
            shrink: 1 + index % 5,
            priority: i32::try_from(random.below(50)).unwrap_or_default(),
            ..Item::droppable("item", random.below(2000) as u64)
        })
        .collect();
    let options = FlexOptions {
        window: 4_000_000,
        gap: 100,
    };
    flex(&items, &options)?;
    Ok(best_of(9, || flex(&items, &options)))
}
