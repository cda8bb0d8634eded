//! The command line of Overlock: parses the arguments, calls the libraries, prints the results.
//!
//! All logic that could be in a library is there. Results go to standard output, everything else to
//! standard error. [`ending`] has the exit codes.

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
