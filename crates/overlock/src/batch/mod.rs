//! Processes many texts in one run: one JSON object per line in, one per line out.
//!
//! Results come in the order of the lines, all cores are used, and memory does not grow with the
//! number of lines. A reader sends chunks of lines to workers; each chunk has a channel for its
//! results. The writer reads these channels in order, and their number is bounded, so that a slow
//! chunk blocks the reader instead of filling memory.

mod lines;
mod progress;

use std::io::{self, Read, Write};
use std::num::NonZero;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use overlock_json::clean_encoding;
use overlock_json::{Object, Refusal};
use serde::Serialize;

use crate::ending::{Ending, Failure};
use crate::output::{Notes, Results};
use lines::{Chunk, Lines};
use progress::BatchProgress;

/// Applies `process` to every line of `source`, whose keys are among `keys`. A line that fails gets an
/// error as its result, and the run ends with [`Ending::Partial`].
pub(crate) fn run<A, R>(
    source: Box<dyn Read + Send>,
    name: &str,
    keys: &'static [&'static str],
    process: A,
) -> Result<Ending, Failure>
where
    A: Fn(Object) -> Result<R, Refusal> + Send + Sync + 'static,
    R: Serialize,
{
    let workers = thread::available_parallelism().map_or(2, NonZero::get);
    let (to_workers, from_reader) = sync_channel(workers);
    let (to_writer, chunks) = sync_channel(workers * 2);
    let from_reader = Arc::new(Mutex::new(from_reader));
    let process = Arc::new(move |object: Object| object.only(keys).and_then(&process));
    // The threads are not joined: after our output was closed, a read of standard input may
    // block forever.
    for _ in 0..workers {
        let from_reader = Arc::clone(&from_reader);
        let process = Arc::clone(&process);
        thread::spawn(move || work(&from_reader, process.as_ref()));
    }
    thread::spawn(move || read(source, &to_workers, &to_writer));
    write(&chunks, name)
}

/// A chunk for a worker, and the channel for its results.
struct Job {
    chunk: Chunk,
    results: SyncSender<ChunkResults>,
}

#[derive(Default)]
struct ChunkResults {
    lines: Vec<u8>,
    /// The number of lines.
    count: usize,
    /// The size of the input.
    bytes: usize,
    errors: usize,
    /// How many bytes were dropped because they are not UTF-8.
    foreign_bytes: usize,
}

fn read(
    source: Box<dyn Read + Send>,
    to_workers: &SyncSender<Job>,
    to_writer: &SyncSender<io::Result<Receiver<ChunkResults>>>,
) {
    for chunk in Lines::new(source) {
        let sent = match chunk {
            Ok(chunk) => {
                let (results, from_worker) = sync_channel(1);
                // The writer first: its channel bounds the work in progress.
                to_writer.send(Ok(from_worker)).is_ok()
                    && to_workers.send(Job { chunk, results }).is_ok()
            }
            Err(error) => to_writer.send(Err(error)).is_ok(),
        };
        if !sent {
            return;
        }
    }
}

fn work<R: Serialize>(
    from_reader: &Mutex<Receiver<Job>>,
    process: &impl Fn(Object) -> Result<R, Refusal>,
) {
    loop {
        let next = from_reader
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv();
        let Ok(Job { chunk, results }) = next else {
            return;
        };
        let mut chunk_results = ChunkResults::default();
        match chunk {
            Chunk::Lines(lines) => {
                chunk_results.bytes = lines.len();
                let lines = lines.strip_suffix(b"\n").unwrap_or(&lines);
                for line in lines.split(|&byte| byte == b'\n') {
                    chunk_results.process(line, process);
                }
            }
            Chunk::TooLong => {
                chunk_results.refuse(&Refusal::unusable("the line is longer than 1 GiB"));
            }
        }
        // This fails only after the writer has stopped.
        let _ = results.send(chunk_results);
    }
}

impl ChunkResults {
    fn process<R: Serialize>(
        &mut self,
        line: &[u8],
        process: &impl Fn(Object) -> Result<R, Refusal>,
    ) {
        let cleaned = clean_encoding(line);
        self.foreign_bytes += cleaned.dropped;
        match Object::parse(&cleaned.text, "line").and_then(process) {
            Ok(result) => self.push(&result),
            Err(refusal) => self.refuse(&refusal),
        }
    }

    fn refuse(&mut self, refusal: &Refusal) {
        self.errors += 1;
        self.push(refusal);
    }

    fn push(&mut self, result: &impl Serialize) {
        self.count += 1;
        serde_json::to_writer(&mut self.lines, result)
            .expect("writing to memory does not fail, and every key is a string");
        self.lines.push(b'\n');
    }
}

fn write(
    chunks: &Receiver<io::Result<Receiver<ChunkResults>>>,
    name: &str,
) -> Result<Ending, Failure> {
    let mut results = Results::new();
    let mut progress = BatchProgress::new();
    let mut errors = 0;
    let mut foreign_bytes = 0;
    for from_worker in chunks {
        let chunk = from_worker
            .map_err(|source| Failure::Unreadable {
                name: name.into(),
                source,
            })?
            .recv()
            .map_err(|_| Failure::WorkerStopped)?;
        errors += chunk.errors;
        foreign_bytes += chunk.foreign_bytes;
        results.write_all(&chunk.lines)?;
        results.flush()?;
        progress.add(chunk.count, chunk.bytes);
        if results.is_closed() {
            break;
        }
    }
    drop(progress);
    if foreign_bytes > 0 {
        Notes::new().note(format_args!(
            "dropped {foreign_bytes} bytes that are not UTF-8 from {name}"
        ));
    }
    Ok(Ending::done_if(errors == 0))
}
