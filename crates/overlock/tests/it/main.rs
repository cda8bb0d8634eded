//! The program as its users meet it: arguments, input and exit codes of the real binary.

// How the binary is run and what is asked of its answers.
mod program;

// One file each: what a command answers, to people and to machines.
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

// What is kept of runs, and what becomes of an answer that cannot be kept.
mod keeping;

// Stores that cannot be used, and what is said of them.
mod stores;

// The gateway as it is started and stopped.
#[cfg(unix)]
mod serve;
// What is said of settings that cannot hold.
#[cfg(unix)]
mod conflicts;
#[cfg(unix)]
mod serving;

// Many clients of the gateway at once: one that is killed loses nothing, one that is not never
// tires, and several on one store are as one.
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

// Where settings come from, and what is said of those that are wrong.
mod config;

// Many texts in one run: order, bad lines, memory.
mod batch;

// What must hold for every command: bad files, closed pipes, help.
mod everywhere;

// A million levels: every command answers as it does for two.
mod depth;

// What is seen on a terminal: no line breaks, and nothing is left over.
#[cfg(unix)]
mod terminal;

// The demo: any seed, any document, the same document at the end.
mod demo;
