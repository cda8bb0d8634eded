//! Tests of the binary: arguments, input, output and exit codes.

// Running the binary.
mod program;

// One file for each command: its output for people and as JSON.
mod chat;
mod close;
mod code;
mod complete;
mod cut;
mod fit;
mod index;
mod models;
mod pipelines;
mod render;
mod repair;
mod stitch;
mod tls;
mod tokens;

// What is recorded of runs, and answers that cannot be recorded.
mod keeping;

// The errors for stores that cannot be used.
mod stores;

// Starting and stopping the gateway.
#[cfg(unix)]
mod serve;
// Settings that contradict each other.
#[cfg(unix)]
mod conflicts;
#[cfg(unix)]
mod serving;

// Many clients of the gateway at once: a gateway that is killed, one under load, and several on one
// store.
#[cfg(unix)]
mod crowd;
#[cfg(unix)]
mod killed;
#[cfg(target_os = "linux")]
mod load;
#[cfg(unix)]
mod shared;

// A real server and a real model behind the gateway.
#[cfg(unix)]
mod real;

// The sources of settings, and the errors for invalid ones.
mod config;

// Many texts in one run: order, bad lines, memory.
mod batch;

// What all commands have in common: bad files, closed pipes, help.
mod everywhere;

// Documents with a million levels.
mod depth;

// Output on a terminal: no line wraps, and no progress line remains.
#[cfg(unix)]
mod terminal;

// The demo: any seed, any document, the same document at the end.
mod demo;
