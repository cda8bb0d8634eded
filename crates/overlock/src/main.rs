//! The command line of Overlock: reads what was asked, calls the library, says what came of it.
//!
//! Nothing is decided here that the library could decide. Results go to standard
//! output, everything else to standard error, and the exit code says which of three
//! ways a command ended (see [`ending`]).

mod batch;
mod commands;
mod config;
mod counter;
mod demo;
mod draw;
mod embedding;
mod ending;
mod input;
mod output;
mod runs;
mod signals;
mod strategies;
mod suggest;
mod traces;
mod upstream;

use std::process::ExitCode;

use clap::Parser;

use crate::commands::Cli;
use crate::output::Notes;

fn main() -> ExitCode {
    match Cli::parse().command.run() {
        Ok(ending) => ending.into(),
        Err(failure) => {
            Notes::new().failure(&failure);
            failure.code()
        }
    }
}
