//! Closes documents with a million levels.
//!
//! Each peer runs in a separate process, because most overflow their stack.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::Options;
use crate::clock::{once, shown_time};
use crate::peers::CLOSERS;
use crate::table::Table;

/// The hidden command that closes in this process.
pub(crate) const CHILD: &str = "--close-nested";

const SHAPES: &[&str] = &["[", "{\"a\":"];
const PATIENCE: Duration = Duration::from_secs(20);

/// Closes deep nesting with every peer.
pub(crate) fn run(options: &Options) -> Result<()> {
    let levels = if options.quick { 100_000 } else { 1_000_000 };
    let mut table = Table::new(["nesting, never closed", "levels", "`[`", "`{\"a\":`"]);
    for peer in CLOSERS {
        eprintln!("   nesting with {}", peer.name);
        let mut cells = vec![peer.name.to_owned(), levels.to_string()];
        for shape in SHAPES {
            cells.push(close_in_a_child(peer.name, shape, levels)?);
        }
        table.row(cells);
    }
    table.print("Nesting");
    Ok(())
}

/// Closes `levels` repeats of `shape` and prints how long that took.
pub(crate) fn close_in_this_process(peer: &str, shape: &str, levels: usize) -> Result<()> {
    let peer = CLOSERS
        .iter()
        .find(|known| known.name == peer)
        .context("there is no such peer")?;
    let text = shape.repeat(levels);
    let (time, closed) = once(|| peer.run(&text));
    // The innermost member has no value and may be dropped; all levels must be there.
    let deep = closed.is_some_and(|closed| {
        let open = shape.as_bytes()[0];
        let count = |wanted: u8| closed.bytes().filter(|byte| *byte == wanted).count();
        count(open) + 1 >= levels && count(open) == count(open + 2)
    });
    if !deep {
        bail!("refused");
    }
    println!("{}", shown_time(time));
    Ok(())
}

fn close_in_a_child(peer: &str, shape: &str, levels: usize) -> Result<String> {
    let mut child = Command::new(std::env::current_exe()?)
        .args([CHILD, peer, shape, &levels.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            let output = child.wait_with_output()?;
            return Ok(match status.code() {
                Some(0) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
                Some(_) => "refused or wrong".to_owned(),
                None => "stack overflow".to_owned(),
            });
        }
        if begun.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Ok(format!("over {} s", PATIENCE.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
