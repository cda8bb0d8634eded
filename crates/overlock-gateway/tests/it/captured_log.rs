//! The log of a test.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tracing::subscriber::{DefaultGuard, set_default};

/// The log of this thread, from now on until this is dropped.
pub(crate) struct CapturedLog {
    text: Text,
    _default: DefaultGuard,
}

#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl CapturedLog {
    pub(crate) fn start() -> Self {
        let text = Text::default();
        let writer = text.clone();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_writer(move || writer.clone());
        Self {
            text,
            _default: set_default(subscriber.finish()),
        }
    }

    /// The lines so far.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let text = self.text.0.lock().expect("no panic").clone();
        let lines = text
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        lines
            .map(|line| serde_json::from_slice(line).expect("a line is JSON"))
            .collect()
    }
}
