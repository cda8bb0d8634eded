//! Waits in tests for a condition, with a timeout.

use std::fmt::Debug;
use std::thread;
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};

/// The timeout: enough on a machine under heavy load, and short enough that a test fails instead of
/// hanging.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(2);

/// Calls `look` repeatedly until its value is as expected, and returns the value.
///
/// # Panics
///
/// After [`PATIENCE`], with `what` and the last value. The timeout includes the time of `look`.
pub async fn eventually<T: Debug, F: Future<Output = T>>(
    what: &str,
    look: impl FnMut() -> F,
    is_expected: impl FnMut(&T) -> bool,
) -> T {
    let result = look_for(PATIENCE, look, is_expected).await;
    result.unwrap_or_else(|last| panic!("{}", timeout_message(what, last.as_ref())))
}

/// [`eventually`] for synchronous tests. It does not interrupt a `look` that does not return.
///
/// # Panics
///
/// After [`PATIENCE`], with `what` and the last value.
#[track_caller]
pub fn eventually_blocking<T: Debug>(
    what: &str,
    look: impl FnMut() -> T,
    is_expected: impl FnMut(&T) -> bool,
) -> T {
    let result = look_for_blocking(PATIENCE, look, is_expected);
    result.unwrap_or_else(|last| panic!("{}", timeout_message(what, Some(&last))))
}

/// The output of a future that should finish in time.
///
/// # Panics
///
/// After [`PATIENCE`], with `what`.
pub async fn within_patience<T>(what: &str, waiting: impl Future<Output = T>) -> T {
    let done = timeout(PATIENCE, waiting).await;
    done.unwrap_or_else(|_| panic!("{}", timeout_message(what, None::<&()>)))
}

/// The first value as expected, or the last value.
async fn look_for<T, F: Future<Output = T>>(
    patience: Duration,
    mut look: impl FnMut() -> F,
    mut is_expected: impl FnMut(&T) -> bool,
) -> Result<T, Option<T>> {
    let mut last = None;
    let looking = async {
        loop {
            let seen = look().await;
            if is_expected(&seen) {
                return seen;
            }
            last = Some(seen);
            sleep(PAUSE).await;
        }
    };
    match timeout(patience, looking).await {
        Ok(value) => Ok(value),
        Err(_) => Err(last),
    }
}

fn look_for_blocking<T>(
    patience: Duration,
    mut look: impl FnMut() -> T,
    mut is_expected: impl FnMut(&T) -> bool,
) -> Result<T, T> {
    let until = Instant::now() + patience;
    loop {
        let seen = look();
        if is_expected(&seen) {
            return Ok(seen);
        }
        if Instant::now() >= until {
            return Err(seen);
        }
        thread::sleep(PAUSE);
    }
}

fn timeout_message(what: &str, last: Option<&impl Debug>) -> String {
    let seconds = PATIENCE.as_secs();
    let waited = format!("timed out after {seconds} s waiting for {what}");
    match last {
        Some(last) => format!("{waited}; last value: {last:?}"),
        None => waited,
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    const SHORT: Duration = Duration::from_millis(5);

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        runtime.expect("a runtime").block_on(future)
    }

    #[test]
    fn returns_the_first_expected_value() {
        let mut numbers = 1..;
        let value = eventually_blocking("a three", || numbers.next(), |it| *it >= Some(3));
        assert_eq!(value, Some(3));
        let mut numbers = 1..;
        let look = || ready(numbers.next());
        let value = eventually("a three", look, |it| *it >= Some(3));
        assert_eq!(block_on(value), Some(3));
        assert_eq!(block_on(within_patience("a three", async { 3 })), 3);
    }

    #[test]
    fn returns_the_last_value_after_the_timeout() {
        let seen = block_on(look_for(SHORT, async || 1, |_| false));
        assert_eq!(seen, Err(Some(1)));
        assert_eq!(look_for_blocking(SHORT, || 1, |_| false), Err(1));
        // A `look` that never returns does not block.
        let seen = block_on(look_for(SHORT, pending::<u8>, |_| true));
        assert_eq!(seen, Err(None));
        let message = timeout_message("two calls", Some(&1));
        assert_eq!(
            message,
            "timed out after 60 s waiting for two calls; last value: 1"
        );
        assert_eq!(
            timeout_message("a reply", None::<&()>),
            "timed out after 60 s waiting for a reply"
        );
    }
}
