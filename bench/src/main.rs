//! Measures Overlock and its peers and prints the tables.
//!
//! Figures are CPU times, the best of several, all in one run on one machine, so that their ratios
//! are meaningful. No time is asserted. Tables go to standard output, progress to standard error.

mod agents;
mod clock;
mod closing;
mod code;
mod counting;
mod documents;
mod files;
mod fitting;
mod gateway;
mod hostile;
mod nesting;
mod outside;
mod peers;
mod random;
mod repairing;
mod scanning;
mod stitching;
mod store;
mod suites;
mod table;
mod tokens;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// The options of the command line.
pub(crate) struct Options {
    /// Smaller documents and fewer cuts.
    quick: bool,
    /// The folder of the recorded suites.
    data: Option<PathBuf>,
    /// The folder of repositories with source code, or of files with JSON instances.
    corpus: Option<PathBuf>,
    /// Lists every suite case, seam and file where our result differs.
    differences: bool,
    /// The tables to print; all if none is named.
    tables: Vec<String>,
}

type Measure = fn(&Options) -> Result<()>;

const TABLES: &[(&str, Measure)] = &[
    ("scan", scanning::scan),
    ("fragments", scanning::fragments),
    ("closing", closing::run),
    ("nesting", nesting::run),
    ("stitching", stitching::run),
    ("repair", repairing::run),
    ("suites", suites::run),
    ("counting", counting::run),
    ("files", files::run),
    ("fitting", fitting::run),
    ("code", code::run),
    ("store", store::run),
    ("gateway", gateway::run),
];

const HELP: &str = "\
usage: cargo xtask bench [--quick] [--data DIR] [--corpus DIR] [--differences] [TABLE …]

tables: scan, fragments, closing, nesting, stitching, repair, suites, counting,
        files, fitting, code, store, gateway (all of them if none is named)

  --quick         smaller documents and fewer cuts
  --data DIR      where the recorded repair suites are (default: ../shared/data, if it is there)
  --corpus DIR    where repositories with source text are, a folder for each (the table `code`
                  needs it), or files of JSON instances (for `stitching`)
  --differences   list every case of a suite, every seam and every file in which ours comes to something else
";

fn main() -> Result<()> {
    let begun = Instant::now();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [command, peer, shape, levels] = arguments.as_slice()
        && command == nesting::CHILD
    {
        return nesting::close_in_this_process(peer, shape, levels.parse()?);
    }
    if let [command, counter, path] = arguments.as_slice()
        && command == counting::CHILD
    {
        return counting::count_in_this_process(begun, counter, path);
    }
    if let [command, party, rest @ ..] = arguments.as_slice()
        && command == gateway::CHILD
    {
        return gateway::run_in_this_process(party, rest);
    }
    let Some(options) = parse(&arguments)? else {
        print!("{HELP}");
        return Ok(());
    };
    for (name, table) in TABLES {
        if options.tables.is_empty() || options.tables.iter().any(|chosen| chosen == name) {
            table(&options).with_context(|| format!("could not measure the table `{name}`"))?;
        }
    }
    Ok(())
}

fn parse(arguments: &[String]) -> Result<Option<Options>> {
    let mut options = Options {
        quick: false,
        data: Some(PathBuf::from("../shared/data")).filter(|folder| folder.is_dir()),
        corpus: None,
        differences: false,
        tables: Vec::new(),
    };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--quick" => options.quick = true,
            "--differences" => options.differences = true,
            "--data" => {
                let folder = arguments.next().context("`--data` needs a folder")?;
                options.data = Some(PathBuf::from(folder));
            }
            "--corpus" => {
                let folder = arguments.next().context("`--corpus` needs a folder")?;
                options.corpus = Some(PathBuf::from(folder));
            }
            "--help" | "-h" => return Ok(None),
            table if TABLES.iter().any(|(name, _)| *name == table) => {
                options.tables.push(table.to_owned());
            }
            unknown => bail!("there is no table or option `{unknown}`\n\n{HELP}"),
        }
    }
    Ok(Some(options))
}
