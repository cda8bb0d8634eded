//! How many files may be open at once? A connection is one.

/// Raises the limit as far as the system lets this program; what it is then, if there is one.
///
/// Most systems start a program with 1024, for the sake of old ones that cannot handle more, and
/// let it ask for what it needs.
#[cfg(unix)]
pub(super) fn allowed() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        // Some systems name a limit that they do not grant.
        Err(_) => limit.current,
    }
}

#[cfg(not(unix))]
pub(super) fn allowed() -> Option<u64> {
    None
}
