//! The chores of this repository, one file for each. `cargo xtask` lists them.

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

  test [STEP …]    format, lint and test; needs Rust and a C compiler;
                   test programs that passed and have not changed are not run again
  test --full      run everything a change must pass; installs tools under target/
  test --long      the same with new random seeds and much more time
  fuzz [--seconds N] [TARGET …]
                   run the fuzz targets, N seconds each (default 60)
  bench [--quick] [--data DIR] [--differences] [TABLE …]
                   measure the libraries and their peers, and print the tables
  bench python [--quick]
                   the same for the Python package
  bench models [--prompts N] [--model smollm2|gemma]
                   measure continuations of real models; the tables are in
                   target/real-models
  models           generate the table of models from its sources
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
            eprintln!("error: unknown chore `{unknown}`\n\n{HELP}");
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
