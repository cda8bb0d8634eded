//! The client, in a separate process with persistent connections.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use super::{CHILD, KEY, request};

/// The result of many requests.
pub(super) struct Answers {
    /// The number of complete answers.
    pub(super) answered: usize,
}

/// The result of consecutive streams.
pub(super) struct Streamed {
    /// The median time until the first byte of the body.
    pub(super) first_byte: Duration,
    /// The median time until the end.
    pub(super) total: Duration,
    /// The longest time of all.
    pub(super) longest: Duration,
}

/// Whether a server answers at an address.
pub(super) fn probe(address: &str) -> Result<()> {
    let asking = ask_one_by_one(address.to_owned(), 1);
    Runtime::new()?.block_on(asking).map(|_| ())
}

/// Sends requests over several connections, from another process.
pub(super) fn asked(address: &str, requests: usize, connections: usize) -> Result<Answers> {
    let report = in_a_child(&[
        "ask",
        address,
        &requests.to_string(),
        &connections.to_string(),
    ])?;
    let answered = report["answered"]
        .as_u64()
        .context("the client reported no result")?;
    Ok(Answers {
        answered: usize::try_from(answered)?,
    })
}

/// Requests streams over one connection, from another process.
pub(super) fn streamed(address: &str, streams: usize) -> Result<Streamed> {
    let report = in_a_child(&["stream", address, &streams.to_string()])?;
    let time = |name: &str| -> Result<Duration> {
        let seconds = report[name]
            .as_f64()
            .context("the client reported no result")?;
        Ok(Duration::from_secs_f64(seconds))
    };
    Ok(Streamed {
        first_byte: time("first_byte")?,
        total: time("total")?,
        longest: time("longest")?,
    })
}

fn in_a_child(arguments: &[&str]) -> Result<Value> {
    let output = Command::new(std::env::current_exe()?)
        .arg(CHILD)
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        bail!("the client ended with {}", output.status);
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Sends requests from this process and prints the number of answers.
pub(super) fn ask(address: &str, requests: usize, connections: usize) -> Result<()> {
    let answered = Runtime::new()?.block_on(async {
        let tasks: Vec<_> = (0..connections)
            .map(|place| {
                let share = requests / connections + usize::from(place < requests % connections);
                tokio::spawn(ask_one_by_one(address.to_owned(), share))
            })
            .collect();
        let mut answered = 0;
        for task in tasks {
            answered += task.await??;
        }
        anyhow::Ok(answered)
    })?;
    println!("{}", json!({ "answered": answered }));
    Ok(())
}

async fn ask_one_by_one(address: String, requests: usize) -> Result<usize> {
    let body = Bytes::from(request(false).to_string());
    let mut connection = Connection::open(&address).await?;
    for _ in 0..requests {
        let answer = connection.ask(body.clone()).await?;
        let answer = answer.into_body().collect().await?.to_bytes();
        let answer: Value = serde_json::from_slice(&answer)?;
        if answer["choices"][0]["finish_reason"] != "stop" {
            bail!("not an answer: {answer}");
        }
    }
    Ok(requests)
}

/// Requests streams from this process and prints their times.
pub(super) fn stream(address: &str, streams: usize) -> Result<()> {
    let (mut first_bytes, mut totals) = (Vec::new(), Vec::new());
    Runtime::new()?.block_on(async {
        let body = Bytes::from(request(true).to_string());
        let mut connection = Connection::open(address).await?;
        for _ in 0..streams {
            let begun = Instant::now();
            let mut answer = connection.ask(body.clone()).await?.into_body();
            let mut first_byte = None;
            let mut all = Vec::new();
            while let Some(frame) = answer.frame().await {
                first_byte.get_or_insert_with(|| begun.elapsed());
                if let Ok(data) = frame?.into_data() {
                    all.extend_from_slice(&data);
                }
            }
            if !all.ends_with(b"data: [DONE]\n\n") {
                bail!("incomplete stream: {}", String::from_utf8_lossy(&all));
            }
            first_bytes.push(first_byte.unwrap_or_default());
            totals.push(begun.elapsed());
        }
        Ok(())
    })?;
    let longest = totals.iter().max().copied().unwrap_or_default();
    let report = json!({
        "first_byte": median(first_bytes).as_secs_f64(),
        "total": median(totals).as_secs_f64(),
        "longest": longest.as_secs_f64(),
    });
    println!("{report}");
    Ok(())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// A persistent connection.
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: String,
}

impl Connection {
    async fn open(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self {
            sender,
            host: address.to_owned(),
        })
    }

    async fn ask(&mut self, body: Bytes) -> Result<Response<Incoming>> {
        self.sender.ready().await?;
        let request = Request::post("/v1/chat/completions")
            .header(HOST, &self.host)
            .header(CONTENT_TYPE, "application/json")
            .header(AUTHORIZATION, format!("Bearer {KEY}"))
            .body(Full::new(body))?;
        let response = self.sender.send_request(request).await?;
        if !response.status().is_success() {
            bail!("it answered {}", response.status());
        }
        Ok(response)
    }
}
