//! The collector of traces, configured by the standard `OTEL_…` variables.

use std::env;

use overlock_runs::Traces;

use crate::config::Config;
use crate::ending::Failure;
use crate::output::Notes;
use crate::upstream::non_empty_variable;

/// Read only from the environment, because headers often contain a key.
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

const SERVICE: &str = "OTEL_SERVICE_NAME";

const DISABLED: &str = "OTEL_SDK_DISABLED";

/// The first one that is set applies.
const PROTOCOLS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
];

/// The only supported protocol.
const PROTOCOL: &str = "http/json";

/// The collector of traces, if there is one and the environment does not disable it.
pub(crate) fn collector(config: &Config, notes: &mut Notes) -> Result<Option<Traces>, Failure> {
    let url = config.serve.traces_url.as_deref();
    url.filter(|_| is_enabled(notes)).map(traces).transpose()
}

/// Whether the environment enables traces. Notes an unsupported protocol.
fn is_enabled(notes: &mut Notes) -> bool {
    if non_empty_variable(DISABLED).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        notes.note(format_args!("no traces are sent: `{DISABLED}` is `true`"));
        return false;
    }
    let set = PROTOCOLS
        .iter()
        .find_map(|name| Some((name, non_empty_variable(name)?)));
    if let Some((name, protocol)) = set.filter(|(_, protocol)| protocol != PROTOCOL) {
        // Not an error: the variable may be meant for other programs, and most collectors accept
        // both protocols over HTTP.
        notes.note(format_args!(
            "`{name}` is `{protocol}`, but traces are sent as `{PROTOCOL}`, which the collector must \
             accept"
        ));
    }
    true
}

/// The collector at an address, with the other options from the environment.
fn traces(url: &str) -> Result<Traces, Failure> {
    let mut traces = Traces::new(url);
    if let Some(service) = non_empty_variable(SERVICE) {
        traces.service = service;
    }
    let headers = env::var(HEADERS).unwrap_or_default();
    traces.headers = parse_headers(&headers).ok_or_else(|| Failure::Usage {
        // The value is not shown, because it may contain a key.
        message: format!("the environment variable `{HEADERS}` is not a list of headers"),
        hint: "write it as `name=value,name=value`, with `%2C` for a comma in a value".into(),
    })?;
    Ok(traces)
}

/// The host of an address, without other parts that may contain a key.
pub(crate) fn host(url: &str) -> &str {
    let after = url.split_once("://").map_or(url, |(_, after)| after);
    let authority = after.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default()
}

/// Parses `name=value,name=value` with percent-encoded values.
fn parse_headers(text: &str) -> Option<Vec<(String, String)>> {
    let parts = text.split(',').map(str::trim);
    parts
        .filter(|part| !part.is_empty())
        .map(|part| {
            let (name, value) = part.split_once('=')?;
            Some((name.trim().to_owned(), percent_decoded(value.trim())?))
        })
        .collect()
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..2)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_headers_at_commas() {
        let check = |text, expected: &[(&str, &str)]| {
            let headers = parse_headers(text).expect(text);
            let headers: Vec<_> = headers
                .iter()
                .map(|(name, value)| (&**name, &**value))
                .collect();
            assert_eq!(headers, expected, "{text}");
        };
        check("", &[]);
        check("api-key=abc", &[("api-key", "abc")]);
        check(
            " a=1, authorization = Basic%20eDp5== ,",
            &[("a", "1"), ("authorization", "Basic eDp5==")],
        );
        check("a=1%2C2%c3%a9", &[("a", "1,2é")]);
    }

    #[test]
    fn refuses_invalid_headers() {
        for text in ["key", "a=1,b", "a=%", "a=%4", "a=%+1", "a=%ff", "a=%é"] {
            assert_eq!(parse_headers(text), None, "{text}");
        }
    }

    #[test]
    fn shows_only_the_host_of_an_address() {
        for url in [
            "http://here:4318/v1/traces",
            "https://user:secret@here:4318/",
            "http://here:4318?key=secret@x",
            "here:4318",
        ] {
            assert_eq!(host(url), "here:4318");
        }
    }
}
