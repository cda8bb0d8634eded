//! The message at the start of the gateway.

use std::net::SocketAddr;

use overlock_llm::{BackendError, ServerInfo};
use overlock_runs::Record;

use super::chosen_upstream::ChosenUpstream;
use super::conflicts::Warning;
use super::keys::Keys;
use crate::output::Notes;

pub(super) struct StartupMessage<'a> {
    pub(super) address: SocketAddr,
    pub(super) upstream: &'a ChosenUpstream,
    /// What the upstream is, or why it could not be reached.
    pub(super) server: Result<&'a ServerInfo, &'a BackendError>,
    pub(super) warnings: Vec<Warning>,
    pub(super) keys: &'a Keys,
    pub(super) record: Record,
    /// The host that traces are sent to.
    pub(super) traces: Option<&'a str>,
    /// Set if it is lower than the configured one.
    pub(super) connection_limit: Option<ConnectionLimit>,
}

/// The number of connections that the limit of open files allows.
pub(super) struct ConnectionLimit {
    pub(super) files: u64,
    pub(super) connections: usize,
}

/// A request for the built-in model.
const REQUEST: &str = r#"{"model": "overlock-demo", "response_format": {"type": "json_object"}, "messages": [{"role": "user", "content": "Write a long report"}]}"#;

impl StartupMessage<'_> {
    pub(super) fn print(&self, notes: &mut Notes) {
        let Self { address, .. } = self;
        notes.line(format_args!("listening on http://{address}"));
        notes.line(format_args!("page: http://{address}/"));
        notes.line(format_args!("upstream: {}", self.upstream));
        match self.server {
            Ok(server) => {
                for finding in &server.findings {
                    notes.line(format_args!("  {finding}"));
                }
            }
            Err(error) => notes.line(format_args!(
                "  not reached ({error}); the first request tries again"
            )),
        }
        for warning in &self.warnings {
            warning.print(notes);
        }
        notes.line(format_args!("recording of runs: {}", self.record.name()));
        if let Some(host) = self.traces {
            notes.line(format_args!("traces: sent to {host}"));
        }
        if let Some(ConnectionLimit { files, connections }) = self.connection_limit {
            notes.line(format_args!(
                "connections: at most {connections}, because only {files} files may be open \
                 (`ulimit -n` raises the limit)"
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
