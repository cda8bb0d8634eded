//! The limit of open files. Every connection counts as one.

/// Raises the limit as far as the system allows and returns it; `None` without a limit.
///
/// Most systems start a program with 1024, because old programs cannot handle more, and let it raise
/// the limit.
#[cfg(unix)]
pub(super) fn raise_limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        // Some systems report a maximum that they do not grant.
        Err(_) => limit.current,
    }
}

#[cfg(not(unix))]
pub(super) fn raise_limit() -> Option<u64> {
    None
}
