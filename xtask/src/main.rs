//! Which chore of the repository is asked for?
//!
//! `cargo xtask` alone says what there is. Each chore has a file of its own.

mod bench;
mod clients;
mod described;
mod documents;
mod fuzz;
mod judges;
mod llama;
mod load;
mod models;
mod packages;
mod page;
mod passed;
mod postgres;
mod programs;
mod python;
mod shell;
mod steps;
mod test;
mod texts;
mod tools;

use std::process::ExitCode;

const HELP: &str = "\
The chores of this repository.

usage: cargo xtask <chore>

  test [STEP …]    format, lint and test: needs Rust and a C compiler;
                   test programs that passed as they are now are not run again
  test --full      all that a change must pass; installs what it needs under target/
  test --long      the same with new random seeds and much more time
  fuzz [--seconds N] [TARGET …]
                   looks for inputs that break a law, N seconds a target (60)
  bench [--quick] [--data DIR] [--differences] [TABLE …]
                   measures the library beside its peers and prints the tables
  bench python [--quick]
                   the same for the Python package
  bench models [--prompts N]
                   cuts a real model off behind a real server, in every arm
  models           draws the table of models again from the packages it comes from
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((chore, rest)) = arguments.split_first() else {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    };
    let result = match chore.as_str() {
        "test" => test::run(rest),
        "fuzz" => fuzz::run(rest),
        "bench" => bench::run(rest),
        "models" => models::run(rest),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        unknown => {
            eprintln!("error: there is no chore `{unknown}`\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
