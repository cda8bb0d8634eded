//! What is said when the gateway starts.

use std::net::SocketAddr;

use overlock_llm::{BackendError, ServerInfo};
use overlock_runs::Record;

use super::conflicts::Warning;
use super::found::Found;
use super::keys::Keys;
use crate::output::Notes;

/// What was taken, and where it listens.
pub(super) struct Greeting<'a> {
    pub(super) address: SocketAddr,
    pub(super) found: &'a Found,
    /// What the upstream is, or why it could not be asked.
    pub(super) server: Result<&'a ServerInfo, &'a BackendError>,
    /// Settings that do not do what they say.
    pub(super) warnings: Vec<Warning>,
    pub(super) keys: &'a Keys,
    pub(super) record: Record,
    /// The host that traces are sent to.
    pub(super) traces: Option<&'a str>,
    /// Where fewer are served than the settings say.
    pub(super) crowd: Option<Crowd>,
}

/// How many are served at once, because only so many files may be open.
pub(super) struct Crowd {
    pub(super) files: u64,
    pub(super) connections: usize,
}

/// A request that anybody can send at once.
const REQUEST: &str = r#"{"model": "overlock-demo", "response_format": {"type": "json_object"}, "messages": [{"role": "user", "content": "Write a long report"}]}"#;

impl Greeting<'_> {
    pub(super) fn tell(&self, notes: &mut Notes) {
        let Self { address, .. } = self;
        notes.line(format_args!("listening on http://{address}"));
        notes.line(format_args!("page: http://{address}/"));
        notes.line(format_args!("upstream: {}", self.found));
        match self.server {
            Ok(server) => {
                for finding in &server.findings {
                    notes.line(format_args!("  {finding}"));
                }
            }
            Err(error) => notes.line(format_args!(
                "  not reached ({error}); the first request asks it again what it is"
            )),
        }
        for warning in &self.warnings {
            warning.tell(notes);
        }
        notes.line(format_args!("recording of runs: {}", self.record.name()));
        if let Some(host) = self.traces {
            notes.line(format_args!("traces of chats: sent to {host}"));
        }
        if let Some(Crowd { files, connections }) = self.crowd {
            notes.line(format_args!(
                "clients at once: {connections}, because only {files} files may be open \
                 (`ulimit -n` raises that)"
            ));
        }
        notes.line("try:");
        notes.line(format_args!(
            "  curl http://{address}/v1/chat/completions \\"
        ));
        if let Some(key) = self.keys.in_shell() {
            notes.line(format_args!("    -H \"authorization: Bearer {key}\" \\"));
        }
        notes.line("    -H 'content-type: application/json' \\");
        notes.line(format_args!("    -d '{REQUEST}'"));
    }
}
