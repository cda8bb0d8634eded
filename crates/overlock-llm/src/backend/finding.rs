//! A fact about a server, with its source.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

/// A fact about a server, with its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The topic, such as `prefill`.
    pub subject: &'static str,
    /// The fact.
    pub value: String,
    /// The source, such as `GET /props`.
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
