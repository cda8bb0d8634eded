//! Answers many texts in one run: one JSON object a line in, one a line out.
//!
//! The answers come in the order of the lines, every core works, and memory does not
//! grow with the number of lines: a reader deals out chunks of lines, workers answer
//! them, and each chunk carries the way back to its place. The writer waits at the
//! oldest place, and the number of places is bounded, so that a slow chunk holds the
//! reader up instead of filling memory.

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
use progress::Progress;

/// Answers every line of `source`. A line that cannot be answered gets its error at its
/// place, and the run ends [`Ending::Partial`].
pub(crate) fn run<A, R>(
    source: Box<dyn Read + Send>,
    name: &str,
    answer: A,
) -> Result<Ending, Failure>
where
    A: Fn(Object) -> Result<R, Refusal> + Send + Sync + 'static,
    R: Serialize,
{
    let workers = thread::available_parallelism().map_or(2, NonZero::get);
    let (to_workers, from_reader) = sync_channel(workers);
    let (to_writer, places) = sync_channel(workers * 2);
    let from_reader = Arc::new(Mutex::new(from_reader));
    let answer = Arc::new(answer);
    // The threads are not joined: once the reader of our output has gone, nobody waits
    // for a line that may never come.
    for _ in 0..workers {
        let from_reader = Arc::clone(&from_reader);
        let answer = Arc::clone(&answer);
        thread::spawn(move || work(&from_reader, answer.as_ref()));
    }
    thread::spawn(move || deal(source, &to_workers, &to_writer));
    write(&places, name)
}

/// A chunk on its way to a worker, and the place its answers go to.
struct Job {
    chunk: Chunk,
    place: SyncSender<Answers>,
}

/// What became of one chunk.
#[derive(Default)]
struct Answers {
    lines: Vec<u8>,
    /// How many there are, and how many bytes were asked.
    count: usize,
    bytes: usize,
    errors: usize,
    foreign_bytes: usize,
}

fn deal(
    source: Box<dyn Read + Send>,
    to_workers: &SyncSender<Job>,
    to_writer: &SyncSender<io::Result<Receiver<Answers>>>,
) {
    for chunk in Lines::new(source) {
        let sent = match chunk {
            Ok(chunk) => {
                let (place, answers) = sync_channel(1);
                // The place is taken first: it is what bounds the work under way.
                to_writer.send(Ok(answers)).is_ok() && to_workers.send(Job { chunk, place }).is_ok()
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
    answer: &impl Fn(Object) -> Result<R, Refusal>,
) {
    loop {
        let next = from_reader
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv();
        let Ok(Job { chunk, place }) = next else {
            return;
        };
        let mut answers = Answers::default();
        match chunk {
            Chunk::Lines(lines) => {
                answers.bytes = lines.len();
                let lines = lines.strip_suffix(b"\n").unwrap_or(&lines);
                for line in lines.split(|&byte| byte == b'\n') {
                    answers.take(line, answer);
                }
            }
            Chunk::TooLong => answers.refuse(&Refusal::unusable("the line is longer than 1 GiB")),
        }
        // A writer that has gone no longer wants the answers.
        let _ = place.send(answers);
    }
}

impl Answers {
    fn take<R: Serialize>(&mut self, line: &[u8], answer: &impl Fn(Object) -> Result<R, Refusal>) {
        let cleaned = clean_encoding(line);
        self.foreign_bytes += cleaned.dropped;
        match Object::parse(&cleaned.text, "line").and_then(answer) {
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
            .expect("memory takes every byte, and every key is a string");
        self.lines.push(b'\n');
    }
}

fn write(places: &Receiver<io::Result<Receiver<Answers>>>, name: &str) -> Result<Ending, Failure> {
    let mut results = Results::new();
    let mut progress = Progress::new();
    let mut errors = 0;
    let mut foreign_bytes = 0;
    for place in places {
        let answers = place
            .map_err(|source| Failure::Unreadable {
                name: name.into(),
                source,
            })?
            .recv()
            .map_err(|_| Failure::WorkerStopped)?;
        errors += answers.errors;
        foreign_bytes += answers.foreign_bytes;
        results.write_all(&answers.lines)?;
        results.flush()?;
        progress.add(answers.count, answers.bytes);
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
    Ok(Ending::whole_if(errors == 0))
}
