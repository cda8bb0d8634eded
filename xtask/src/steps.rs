//! Runs named steps one after the other, and says how long each took.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};

/// One thing that must succeed.
pub(crate) struct Step {
    /// The word by which it can be asked for alone.
    pub(crate) name: &'static str,
    /// What it shows when it succeeds.
    pub(crate) title: &'static str,
    /// Does it; what comes back is a remark for the summary.
    pub(crate) run: fn() -> Result<String>,
}

/// Runs the steps named, or all of them, and stops at the first that fails.
///
/// The summary is printed either way, with what was not reached.
pub(crate) fn run(steps: &[Step], names: &[String]) -> Result<()> {
    if let Some(unknown) = names
        .iter()
        .find(|name| steps.iter().all(|step| step.name != **name))
    {
        let known: Vec<_> = steps.iter().map(|step| step.name).collect();
        bail!(
            "there is no step `{unknown}`; there are {}",
            known.join(", ")
        );
    }
    let chosen: Vec<&Step> = steps
        .iter()
        .filter(|step| names.is_empty() || names.iter().any(|name| name == step.name))
        .collect();

    let begun = Instant::now();
    let mut table = Vec::new();
    let mut failure = None;
    for (index, step) in chosen.iter().enumerate() {
        if failure.is_some() {
            table.push(format!("  {:<8}   not run", step.name));
            continue;
        }
        eprintln!(
            "\n── {}/{} {}: {}",
            index + 1,
            chosen.len(),
            step.name,
            step.title
        );
        let step_begun = Instant::now();
        let result = (step.run)();
        let time = shown(step_begun.elapsed());
        match result {
            Ok(remark) => {
                eprintln!("── {} done in {time}", step.name);
                table.push(format!("  {:<8} {time:>9}   {remark}", step.name));
            }
            Err(error) => {
                table.push(format!("  {:<8} {time:>9}   FAILED", step.name));
                failure = Some((step.name, error));
            }
        }
    }

    println!("\n{}", table.join("\n"));
    println!("  {:<8} {:>9}\n", "total", shown(begun.elapsed()));
    match failure {
        None => Ok(()),
        Some((name, error)) => Err(anyhow!(
            "{error:#}\nhint: `cargo xtask test {name}` runs this step alone"
        )),
    }
}

fn shown(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 60 {
        format!("{:.1} s", time.as_secs_f64())
    } else {
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    }
}
