//! Log entries of requests.
//!
//! They contain no headers, keys, prompts or answers. The model name is the only text from the
//! client, shortened and reduced to ASCII.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::Method;
use serde::Serialize;

/// One request.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct LogEntry {
    /// The end of the request, in RFC 3339 format.
    pub at: String,
    /// The method, if it is a known one.
    pub method: &'static str,
    /// The route, as in the table of routes.
    pub route: &'static str,
    /// The status; 499 if the client disconnected before there was one.
    pub status: u16,
    /// The duration.
    pub milliseconds: u64,
    /// The tokens of all prompts.
    pub input_tokens: u64,
    /// The tokens of all answers.
    pub output_tokens: u64,
    /// How often the answer was continued.
    pub continuations: u32,
    /// The requested model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How a chat answer ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<&'static str>,
    /// The name of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'static str>,
    /// The recorded run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Whether the client disconnected before the end.
    pub left: bool,
    /// The address of the client.
    pub client: SocketAddr,
}

impl fmt::Display for LogEntry {
    /// One human-readable line.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} {} {} {} {} ms",
            self.at, self.method, self.route, self.status, self.milliseconds
        )?;
        if let Some(model) = &self.model {
            write!(formatter, " {model}")?;
        }
        if let Some(outcome) = self.outcome {
            write!(
                formatter,
                " {outcome}, {} continuations, {} + {} tokens",
                self.continuations, self.input_tokens, self.output_tokens
            )?;
        }
        if let Some(error) = self.error {
            write!(formatter, ", {error}")?;
        }
        if let Some(run) = &self.run {
            write!(formatter, ", run {run}")?;
        }
        if self.left {
            formatter.write_str(", client disconnected")?;
        }
        write!(formatter, " ({})", self.client)
    }
}

/// The name of a known method; any other is client text and becomes `OTHER`.
pub(crate) fn method_name(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "OTHER",
    }
}

/// The current time in RFC 3339 format.
pub(crate) fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    rfc3339(since.unwrap_or_default())
}

fn rfc3339(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs();
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let milliseconds = since_1970.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

/// The date a number of days after 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    // Years begin in March here, so that a leap day is the last day of its year.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_times_as_rfc_3339() {
        let check = |milliseconds, expected: &str| {
            assert_eq!(rfc3339(Duration::from_millis(milliseconds)), expected);
        };
        check(0, "1970-01-01T00:00:00.000Z");
        check(951_782_400_000, "2000-02-29T00:00:00.000Z");
        check(1_709_164_799_999, "2024-02-28T23:59:59.999Z");
        check(1_709_251_199_000, "2024-02-29T23:59:59.000Z");
        check(4_107_542_400_000, "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn a_line_has_only_the_known_fields() {
        let entry = LogEntry {
            at: "2026-01-02T03:04:05.006Z".to_owned(),
            method: "POST",
            route: "/v1/chat/completions",
            status: 200,
            milliseconds: 1234,
            input_tokens: 10,
            output_tokens: 20,
            continuations: 3,
            model: Some("gpt-4o".to_owned()),
            outcome: Some("complete"),
            error: None,
            run: Some("019a8a3f-5c00-7d2e-9b1c-6f0a4e2d8c31".to_owned()),
            left: false,
            client: ([127, 0, 0, 1], 4000).into(),
        };
        assert_eq!(
            entry.to_string(),
            "2026-01-02T03:04:05.006Z POST /v1/chat/completions 200 1234 ms gpt-4o complete, 3 \
             continuations, 10 + 20 tokens, run 019a8a3f-5c00-7d2e-9b1c-6f0a4e2d8c31 (127.0.0.1:4000)"
        );
        let bare = LogEntry {
            model: None,
            outcome: None,
            error: Some("upstream_error"),
            run: None,
            left: true,
            ..entry
        };
        assert_eq!(
            bare.to_string(),
            "2026-01-02T03:04:05.006Z POST /v1/chat/completions 200 1234 ms, upstream_error, client \
             disconnected (127.0.0.1:4000)"
        );
    }
}
