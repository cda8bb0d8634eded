//! Runs the steps of a test, and prints the time and budget of each.
//!
//! Steps that build run one after the other, because cargo allows one build at a time. Steps that
//! mostly wait (for a download, a browser, a timer) run at the same time in a second lane.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::shell::{self, target};

/// One step of a test.
pub(crate) struct Step {
    /// The name on the command line.
    pub(crate) name: &'static str,
    /// What it checks, as a statement.
    pub(crate) title: &'static str,
    pub(crate) tier: Tier,
    pub(crate) lane: Lane,
    /// The step whose build or download this one uses; it runs first, if both are selected.
    pub(crate) after: Option<&'static str>,
    /// The minutes it may take on two cores, from an empty target folder.
    pub(crate) budget: f64,
    /// Returns a remark for the table.
    pub(crate) run: fn(Depth) -> Result<String>,
}

/// When a step is run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tier {
    /// In every test: needs Rust and a C compiler.
    Quick,
    /// With `--full`: installs what it needs.
    Full,
}

/// Steps of one lane do not run at the same time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    Build,
    Wait,
}

/// Makes tests cover everything that the gate only samples.
pub(crate) const LONG_VARIABLE: &str = "OVERLOCK_LONG";

/// How much is tested.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// As [`Self::Gate`], but unchanged test programs that passed are not run again.
    Quick,
    /// A fixed seed, so that the result depends on the tree alone.
    Gate,
    /// New seeds, which are printed, and much more time.
    Long,
}

struct Report {
    time: Duration,
    result: Result<String>,
}

/// Runs all steps, even if some fail, and prints the table.
pub(crate) fn run(steps: &[&Step], depth: Depth) -> Result<()> {
    let begun = Instant::now();
    let is_logged = [Lane::Build, Lane::Wait]
        .iter()
        .all(|lane| steps.iter().any(|step| step.lane == *lane));
    let board = Board::default();
    thread::scope(|scope| {
        for lane in [Lane::Build, Lane::Wait] {
            let board = &board;
            scope.spawn(move || {
                for step in steps.iter().filter(|step| step.lane == lane) {
                    let before = step
                        .after
                        .filter(|before| steps.iter().any(|step| step.name == *before));
                    board.wait_for(before);
                    board.report(step.name, run_step(step, depth, is_logged));
                }
            });
        }
    });
    let reports = board
        .reports
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    print!("\n{}", table(steps, &reports, begun.elapsed()));
    let failed: Vec<_> = steps
        .iter()
        .filter(|step| {
            reports
                .get(step.name)
                .is_none_or(|report| report.result.is_err())
        })
        .map(|step| step.name)
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    bail!(
        "{} of {} steps failed: {}\nhint: `cargo xtask test {}` runs a single step",
        failed.len(),
        steps.len(),
        failed.join(", "),
        failed[0]
    );
}

fn run_step(step: &Step, depth: Depth, is_logged: bool) -> Report {
    eprintln!("── {}: {}", step.name, step.title);
    let log = is_logged.then(|| log_path(step.name));
    let begun = Instant::now();
    let result = shell::log_to(log.clone()).and_then(|()| (step.run)(depth));
    let time = begun.elapsed();
    match &result {
        Ok(_) => eprintln!("── {}: passed in {}", step.name, shown(time)),
        Err(error) => {
            if let Some(log) = log {
                eprint!("{}", shell::tail(&log));
            }
            eprintln!("── {}: FAILED after {}: {error:#}", step.name, shown(time));
        }
    }
    Report { time, result }
}

fn log_path(name: &str) -> PathBuf {
    target(&format!("test-logs/{name}.log"))
}

/// The reports of finished steps; other steps can wait for them.
#[derive(Default)]
struct Board {
    reports: Mutex<HashMap<&'static str, Report>>,
    changed: Condvar,
}

impl Board {
    fn report(&self, name: &'static str, report: Report) {
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        reports.insert(name, report);
        self.changed.notify_all();
    }

    fn wait_for(&self, name: Option<&str>) {
        let Some(name) = name else { return };
        let reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        drop(
            self.changed
                .wait_while(reports, |reports| !reports.contains_key(name)),
        );
    }
}

fn table(steps: &[&Step], reports: &HashMap<&str, Report>, total: Duration) -> String {
    let mut lines = vec![format!("  {:<10} {:>12} {:>8}", "step", "time", "budget")];
    for step in steps {
        let Some(Report { time, result }) = reports.get(step.name) else {
            lines.push(format!("  {:<10} {:>12}", step.name, "not run"));
            continue;
        };
        let budget = Duration::from_secs_f64(step.budget * 60.0);
        let over = if *time > budget { " over" } else { "" };
        let remark = match result {
            Ok(remark) => remark.clone(),
            Err(error) => format!("FAILED: {}", first_line(&format!("{error:#}"))),
        };
        lines.push(format!(
            "  {:<10} {:>12} {:>4} min{over:<5}  {remark}",
            step.name,
            shown(*time),
            step.budget,
        ));
    }
    let budget: f64 = steps.iter().map(|step| step.budget).sum();
    let budget = (budget * 10.0).round() / 10.0;
    lines.push(format!(
        "  {:<10} {:>12} {budget:>4} min",
        "total",
        shown(total)
    ));
    lines.join("\n") + "\n"
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn shown(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 60 {
        format!("{:.1} s", time.as_secs_f64())
    } else {
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &'static str, lane: Lane, run: fn(Depth) -> Result<String>) -> Step {
        Step {
            name,
            title: "",
            tier: Tier::Quick,
            lane,
            after: None,
            budget: 1.0,
            run,
        }
    }

    #[test]
    fn runs_all_steps_after_a_failure() {
        let steps = [
            step("fails", Lane::Build, |_| bail!("a reason\nand more")),
            step("passes", Lane::Build, |_| Ok("a remark".to_owned())),
        ];
        let error = run(&steps.each_ref(), Depth::Gate).expect_err("one failed");
        assert_eq!(
            error.to_string(),
            "1 of 2 steps failed: fails\nhint: `cargo xtask test fails` runs a single step"
        );
    }

    #[test]
    fn the_table_shows_times_budgets_and_failures() {
        let steps = [
            step("fails", Lane::Build, |_| bail!("unused")),
            step("passes", Lane::Build, |_| bail!("unused")),
            step("lost", Lane::Build, |_| bail!("unused")),
        ];
        let report = |seconds, result| Report {
            time: Duration::from_secs(seconds),
            result,
        };
        let reports = HashMap::from([
            ("fails", report(3, Err(anyhow::anyhow!("why\nmore")))),
            ("passes", report(61, Ok("9 passed".to_owned()))),
        ]);
        assert_eq!(
            table(&steps.each_ref(), &reports, Duration::from_secs(64)),
            "  step               time   budget\n\
             \x20 fails             3.0 s    1 min       FAILED: why\n\
             \x20 passes       1 min 01 s    1 min over  9 passed\n\
             \x20 lost            not run\n\
             \x20 total        1 min 04 s    3 min\n"
        );
    }

    #[test]
    fn a_step_starts_after_the_one_it_names() {
        static ORDER: Mutex<Vec<&str>> = Mutex::new(Vec::new());
        fn note(name: &'static str) -> String {
            ORDER.lock().expect("not poisoned").push(name);
            String::new()
        }
        let mut second = step("second", Lane::Wait, |_| Ok(note("second")));
        second.after = Some("first");
        let first = step("first", Lane::Build, |_| Ok(note("first")));
        run(&[&second, &first], Depth::Gate).expect("both pass");
        assert_eq!(*ORDER.lock().expect("not poisoned"), ["first", "second"]);
    }
}
