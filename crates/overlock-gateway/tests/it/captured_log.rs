//! The log of a test.
//!
//! All tests of a process share one subscriber, because those of single threads race when they come
//! and go: an event can then be lost.

use std::io::{self, Write};
use std::sync::{Mutex, Once};
use std::thread::{self, ThreadId};

use serde_json::Value;

/// The log from its start on.
pub(crate) struct CapturedLog {
    /// The thread whose lines it has; `None` for all.
    pub(crate) thread: Option<ThreadId>,
    first: usize,
}

static LINES: Mutex<Vec<(ThreadId, Value)>> = Mutex::new(Vec::new());

/// Takes one line at a time.
struct Lines;

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let value = serde_json::from_slice(line).expect("a line is JSON");
        let mut lines = LINES.lock().expect("no panic");
        lines.push((thread::current().id(), value));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl CapturedLog {
    pub(crate) fn start() -> Self {
        static SUBSCRIBER: Once = Once::new();
        SUBSCRIBER.call_once(|| {
            let lines = tracing_subscriber::fmt().json().flatten_event(true);
            let subscriber = lines.with_writer(|| Lines).finish();
            let set = tracing::subscriber::set_global_default(subscriber);
            set.expect("it is set once");
        });
        Self {
            thread: Some(thread::current().id()),
            first: LINES.lock().expect("no panic").len(),
        }
    }

    /// The lines so far.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let lines = LINES.lock().expect("no panic");
        let lines = lines[self.first..].iter();
        let own = lines.filter(|(thread, _)| self.thread.is_none_or(|own| own == *thread));
        own.map(|(_, line)| line.clone()).collect()
    }
}
