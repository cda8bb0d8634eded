//! Measures the cost of gateways between a client and a model.
//!
//! Each runs in its own process between the same client and upstream, on loopback: a bare proxy, the
//! same proxy counting every request, our gateway, and LiteLLM. They are measured in turns, by the
//! CPU time of their processes. The cost of counting is the difference of the first two; measured
//! in a tight loop it would seem half as large, because of warm caches.

mod client;
mod litellm;
mod process;
mod servers;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Options;
use crate::clock::shown_time;
use crate::table::Table;
use client::{Answers, Streamed};
use process::Process;

/// The hidden command that runs one of the processes.
pub(crate) const CHILD: &str = "--gateway-party";

/// Runs a server until its standard input ends, or the client.
pub(crate) fn run_in_this_process(party: &str, arguments: &[String]) -> Result<()> {
    match (party, arguments) {
        ("upstream", []) => servers::upstream(),
        ("bare", [upstream]) => servers::bare(upstream),
        ("counting", [upstream]) => servers::counting(upstream),
        ("ours", [upstream]) => servers::ours(upstream, None),
        ("ours", [upstream, store]) => servers::ours(upstream, Some(store)),
        ("ask", [address, requests, connections]) => {
            client::ask(address, requests.parse()?, connections.parse()?)
        }
        ("stream", [address, streams]) => client::stream(address, streams.parse()?),
        _ => bail!("unknown process `{party}` with {arguments:?}"),
    }
}

/// The model in requests.
const MODEL: &str = "gpt-4o";

/// The request that the client sends.
fn request(streams: bool) -> Value {
    json!({
        "model": MODEL,
        "max_tokens": 400,
        "stream": streams,
        "stream_options": streams.then(|| json!({ "include_usage": true })),
        "messages": [
            { "role": "system", "content": "You are the assistant of a shop for garden tools. Answer \
              in two sentences at most, name the article and its price, and never promise a date of \
              delivery." },
            { "role": "user", "content": "Which of your rakes is right for a lawn with a lot of moss?" },
            { "role": "assistant", "content": "The scarifying rake R 40 for 34.90 lifts moss without \
              hurting the grass." },
            { "role": "user", "content": "Does it come with a handle, and how long is that handle? I \
              am rather tall, and my back does not like short ones." },
        ],
    })
}

/// The API key, which only LiteLLM requires.
const KEY: &str = "sk-measured-on-loopback-0123456789abcdefghij";

const CONNECTIONS: usize = 8;

/// A gateway and its measurements.
struct Between {
    name: String,
    process: Process,
    /// Fewer for LiteLLM, which is slow.
    requests: usize,
    streams: usize,
    at_rest: u64,
    rounds: Vec<Duration>,
    streamed: Vec<Streamed>,
}

impl Between {
    fn new(name: &str, process: Process, requests: usize, streams: usize) -> Result<Self> {
        // The first request loads a tokenizer and opens connections.
        client::asked(&process.address, CONNECTIONS, CONNECTIONS)
            .with_context(|| format!("{name} does not answer"))?;
        Ok(Self {
            name: name.to_owned(),
            at_rest: process.memory()?,
            process,
            requests,
            streams,
            rounds: Vec::new(),
            streamed: Vec::new(),
        })
    }

    fn round(&mut self) -> Result<()> {
        let before = self.process.cpu_time()?;
        let Answers { answered } =
            client::asked(&self.process.address, self.requests, CONNECTIONS)?;
        if answered != self.requests {
            bail!("{} answered {answered} of {}", self.name, self.requests);
        }
        let took = self.process.cpu_time()?.saturating_sub(before);
        self.rounds
            .push(took / u32::try_from(self.requests.max(1))?);
        self.streamed
            .push(client::streamed(&self.process.address, self.streams)?);
        Ok(())
    }

    /// The smallest CPU time for one request.
    fn least(&self) -> Duration {
        self.rounds.iter().min().copied().unwrap_or_default()
    }

    fn most(&self) -> Duration {
        self.rounds.iter().max().copied().unwrap_or_default()
    }

    fn first_byte(&self) -> Duration {
        let times = self.streamed.iter().map(|streamed| streamed.first_byte);
        times.min().unwrap_or_default()
    }

    fn total(&self) -> Duration {
        let times = self.streamed.iter().map(|streamed| streamed.total);
        times.min().unwrap_or_default()
    }

    fn longest(&self) -> Duration {
        let times = self.streamed.iter().map(|streamed| streamed.longest);
        times.max().unwrap_or_default()
    }
}

/// Sends the same requests through all gateways.
pub(crate) fn run(options: &Options) -> Result<()> {
    let (rounds, requests, streams) = if options.quick {
        (2, 2_000, 50)
    } else {
        (5, 4_000, 200)
    };
    let folder = TempDir::new()?;
    let store = folder.path().join("runs.db").display().to_string();
    let upstream = Process::own("upstream", &[])?;
    let base = upstream.address.as_str();

    let mut all = vec![
        Between::new(
            "bare hyper proxy",
            Process::own("bare", &[base])?,
            requests,
            streams,
        )?,
        Between::new(
            "the same, counting each request",
            Process::own("counting", &[base])?,
            requests,
            streams,
        )?,
        Between::new(
            "overlock-gateway, `record: metadata`",
            Process::own("ours", &[base, &store])?,
            requests,
            streams,
        )?,
        Between::new(
            "overlock-gateway, `record: off`",
            Process::own("ours", &[base])?,
            requests,
            streams,
        )?,
    ];
    let litellm = litellm::start(base, folder.path())
        .and_then(|process| Between::new("LiteLLM proxy", process, requests / 20, streams / 10));
    let missing = match litellm {
        Ok(between) => {
            all.push(between);
            None
        }
        Err(error) => Some(format!("LiteLLM proxy: not measured: {error:#}")),
    };
    for round in 1..=rounds {
        for between in &mut all {
            eprintln!("   round {round} of {rounds} through {}", between.name);
            between.round()?;
        }
    }
    print(&all, missing)
}

fn print(all: &[Between], missing: Option<String>) -> Result<()> {
    let [bare, counting, ..] = all else {
        bail!("nothing was measured");
    };
    let count = counting.least().saturating_sub(bare.least());
    let mut table = Table::new([
        "not streaming, CPU time for a request",
        "least",
        "most",
        "relative to the bare proxy",
        "the same without the count",
        "memory at rest",
        "after the load",
    ]);
    for between in all {
        let is_ours = between.name.starts_with("overlock");
        let counted = if is_ours { count } else { Duration::ZERO };
        table.row([
            between.name.clone(),
            shown_time(between.least()),
            shown_time(between.most()),
            times(between.least(), bare.least()),
            times(between.least().saturating_sub(counted), bare.least()),
            megabytes(between.at_rest),
            megabytes(between.process.memory()?),
        ]);
    }
    if let Some(reason) = &missing {
        table.row([reason.clone()]);
    }
    table.print("Gateway");

    let mut table = Table::new([
        "one short stream, medians",
        "first byte",
        "relative to the bare proxy",
        "total",
        "relative to the bare proxy",
        "longest of all",
    ]);
    for between in all {
        table.row([
            between.name.clone(),
            microseconds(between.first_byte()),
            times(between.first_byte(), bare.first_byte()),
            microseconds(between.total()),
            times(between.total(), bare.total()),
            microseconds(between.longest()),
        ]);
    }
    if let Some(reason) = missing {
        table.row([reason]);
    }
    table.print("Gateway, streaming");
    Ok(())
}

fn times(time: Duration, bare: Duration) -> String {
    format!("{:.2} ×", time.as_secs_f64() / bare.as_secs_f64().max(1e-9))
}

fn microseconds(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1_000_000))
}
