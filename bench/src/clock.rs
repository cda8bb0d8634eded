//! Measures CPU time over all threads.

use std::hint::black_box;
use std::time::Duration;

use cpu_time::ProcessTime;

/// The smallest CPU time of several runs. Results are dropped outside the measurement.
pub(crate) fn best_of<T>(runs: usize, mut run: impl FnMut() -> T) -> Duration {
    (0..runs.max(1))
        .map(|_| once(&mut run).0)
        .min()
        .unwrap_or_default()
}

/// The CPU time of one run, and what it returned.
pub(crate) fn once<T>(run: impl FnOnce() -> T) -> (Duration, T) {
    let begun = ProcessTime::now();
    let result = black_box(run());
    (begun.elapsed(), result)
}

/// A rate in megabytes (of a million bytes) per second.
pub(crate) fn rate(bytes: usize, time: Duration) -> f64 {
    bytes as f64 / 1e6 / time.as_secs_f64().max(1e-9)
}

/// A rate with about three digits.
pub(crate) fn shown_rate(rate: f64) -> String {
    match rate {
        rate if rate >= 10_000.0 => format!("{:.1} GB/s", rate / 1e3),
        rate if rate >= 1_000.0 => format!("{:.2} GB/s", rate / 1e3),
        rate if rate >= 10.0 => format!("{rate:.0} MB/s"),
        rate => format!("{rate:.1} MB/s"),
    }
}

/// A time with about three digits.
pub(crate) fn shown_time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        seconds if seconds >= 1.0 => format!("{seconds:.2} s"),
        seconds if seconds >= 1e-3 => format!("{:.1} ms", seconds * 1e3),
        seconds => format!("{:.0} µs", seconds * 1e6),
    }
}
