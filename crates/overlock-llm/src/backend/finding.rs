//! What was found out about a server.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

/// Something that was found out about a server, and what says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is about, such as `prefill`.
    pub subject: &'static str,
    /// What was found.
    pub value: String,
    /// Where that comes from, such as `GET /props`.
    pub source: String,
}

impl Display for Finding {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            subject,
            value,
            source,
        } = self;
        write!(formatter, "{subject}: {value} ({source})")
    }
}
