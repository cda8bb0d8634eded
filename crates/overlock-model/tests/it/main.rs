//! Runs with a model behind them, from the request to the document.

// A scripted model behind a server, with all that can go wrong between.
mod http;
// A scripted model in the same process.
mod scripted;

use futures_util::future::BoxFuture;
use overlock_model::{Continuation, Observe};

/// Puts together what is told of a document while it arrives.
#[derive(Default)]
struct Listener {
    told: String,
    pieces: usize,
}

impl Observe for Listener {
    fn certain<'a>(&'a mut self, text: &'a str) -> BoxFuture<'a, ()> {
        self.told.push_str(text);
        self.pieces += 1;
        Box::pin(std::future::ready(()))
    }
}

impl Listener {
    /// What was told was never taken back, and is all there is.
    #[track_caller]
    fn check(&self, run: &Continuation, live: bool) {
        let settled = run.base().map_or(0, overlock_json::Base::settled_len);
        let expected = if live { &run.text()[..settled] } else { "" };
        assert!(self.told == expected, "{:?} {expected:?}", self.told);
    }
}

/// A report with sections of several kinds, of about so many bytes.
fn report(bytes: usize) -> String {
    let mut text = String::from("{\"title\": \"Überblick – 概要\", \"sections\": [");
    for number in 0.. {
        let section = format!(
            "\n  {{\"id\": \"section-{number}\", \"content_type\": \"table\", \"rows\": [[\"a{number}\", {}, true], [\"b{number}\", -{number}.5e3, null]], \"note\": \"Zeile \\\"{number}\\\"\\n\\u00e9 🚀 {}\"}},",
            number * 7919,
            number * 31,
        );
        text.push_str(&section);
        if text.len() >= bytes {
            break;
        }
    }
    text.pop();
    text + "\n]}\n"
}
