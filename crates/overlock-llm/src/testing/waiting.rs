//! Waits in tests for something that happens elsewhere, and fails if it does not happen.

use std::fmt::Debug;
use std::thread;
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};

/// How long a test waits for anything: enough on a machine under heavy load, and short enough that
/// a test that waits in vain fails instead of hanging.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(2);

/// Looks repeatedly until what is seen is as expected, and returns it.
///
/// # Panics
///
/// After [`PATIENCE`], with what was waited for and what was seen last. The time that a look takes
/// counts as well.
pub async fn eventually<T: Debug, F: Future<Output = T>>(
    what: &str,
    look: impl FnMut() -> F,
    is_expected: impl FnMut(&T) -> bool,
) -> T {
    let found = look_for(PATIENCE, look, is_expected).await;
    found.unwrap_or_else(|last| panic!("{}", in_vain(what, last.as_ref())))
}

/// The same as [`eventually`] for tests that are not asynchronous. It waits for a look that does
/// not return.
///
/// # Panics
///
/// After [`PATIENCE`], with what was waited for and what was seen last.
#[track_caller]
pub fn eventually_blocking<T: Debug>(
    what: &str,
    look: impl FnMut() -> T,
    is_expected: impl FnMut(&T) -> bool,
) -> T {
    let found = look_for_blocking(PATIENCE, look, is_expected);
    found.unwrap_or_else(|last| panic!("{}", in_vain(what, Some(&last))))
}

/// The output of a future that is expected to finish.
///
/// # Panics
///
/// After [`PATIENCE`], with what was waited for.
pub async fn within_patience<T>(what: &str, waiting: impl Future<Output = T>) -> T {
    let done = timeout(PATIENCE, waiting).await;
    done.unwrap_or_else(|_| panic!("{}", in_vain(what, None::<&()>)))
}

/// What is as expected, or what was seen last.
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
        Ok(found) => Ok(found),
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

fn in_vain(what: &str, last: Option<&impl Debug>) -> String {
    let seconds = PATIENCE.as_secs();
    let waited = format!("waited {seconds} s in vain for {what}");
    match last {
        Some(last) => format!("{waited}; last seen: {last:?}"),
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
    fn returns_the_first_value_that_is_as_expected() {
        let mut numbers = 1..;
        let found = eventually_blocking("a three", || numbers.next(), |it| *it >= Some(3));
        assert_eq!(found, Some(3));
        let mut numbers = 1..;
        let look = || ready(numbers.next());
        let found = eventually("a three", look, |it| *it >= Some(3));
        assert_eq!(block_on(found), Some(3));
        assert_eq!(block_on(within_patience("a three", async { 3 })), 3);
    }

    #[test]
    fn gives_up_with_what_was_seen_last() {
        let seen = block_on(look_for(SHORT, async || 1, |_| false));
        assert_eq!(seen, Err(Some(1)));
        assert_eq!(look_for_blocking(SHORT, || 1, |_| false), Err(1));
        // A look that never returns is no reason to hang.
        let seen = block_on(look_for(SHORT, pending::<u8>, |_| true));
        assert_eq!(seen, Err(None));
        let told = in_vain("two calls", Some(&1));
        assert_eq!(told, "waited 60 s in vain for two calls; last seen: 1");
        assert_eq!(
            in_vain("a reply", None::<&()>),
            "waited 60 s in vain for a reply"
        );
    }
}
