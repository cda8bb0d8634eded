//! Who collects traces, and what they are shown.

use std::env;

use overlock_runs::Traces;

use crate::ending::Failure;
use crate::output::Notes;
use crate::upstream::held;

/// What a collector is shown; often a key, so that it is in no file and on no command line.
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// How this service is called.
const SERVICE: &str = "OTEL_SERVICE_NAME";

/// Switches traces off, wherever they would be sent.
const DISABLED: &str = "OTEL_SDK_DISABLED";

/// How a collector is spoken to; the first that is set counts.
const PROTOCOLS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
];

/// How this program speaks to it.
const PROTOCOL: &str = "http/json";

/// Whether traces are wanted, by the environment. What it asks for and cannot have is noted.
pub(crate) fn may_be_sent(notes: &mut Notes) -> bool {
    if held(DISABLED).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        notes.note(format_args!("no traces are sent: `{DISABLED}` is `true`"));
        return false;
    }
    let set = PROTOCOLS.iter().find_map(|name| Some((name, held(name)?)));
    if let Some((name, protocol)) = set.filter(|(_, protocol)| protocol != PROTOCOL) {
        // Others on this machine may need it, and most collectors take both over HTTP.
        notes.note(format_args!(
            "`{name}` is `{protocol}`, but traces are sent only as `{PROTOCOL}`: the collector must \
             take that at its address"
        ));
    }
    true
}

/// The collector at an address, as the environment has the rest.
pub(crate) fn traces(url: &str) -> Result<Traces, Failure> {
    let mut traces = Traces::new(url);
    if let Some(service) = held(SERVICE) {
        traces.service = service;
    }
    let headers = env::var(HEADERS).unwrap_or_default();
    traces.headers = read(&headers).ok_or_else(|| Failure::Usage {
        // What it holds may be a key.
        message: format!("the environment variable `{HEADERS}` is no list of headers"),
        hint: "write it as `name=value,name=value`, with `%2C` for a comma in a value".into(),
    })?;
    Ok(traces)
}

/// The host of an address, since the rest may hold a key.
pub(crate) fn host(url: &str) -> &str {
    let after = url.split_once("://").map_or(url, |(_, after)| after);
    let authority = after.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default()
}

/// Headers as names and values with commas between them, the values as addresses are written.
fn read(text: &str) -> Option<Vec<(String, String)>> {
    let parts = text.split(',').map(str::trim);
    parts
        .filter(|part| !part.is_empty())
        .map(|part| {
            let (name, value) = part.split_once('=')?;
            Some((name.trim().to_owned(), decoded(value.trim())?))
        })
        .collect()
}

/// A text in which a byte may be written as `%` and two digits.
fn decoded(text: &str) -> Option<String> {
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
    fn headers_stand_between_commas() {
        let check = |text, expected: &[(&str, &str)]| {
            let headers = read(text).expect(text);
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
    fn what_is_no_header_is_a_mistake() {
        for text in ["key", "a=1,b", "a=%", "a=%4", "a=%+1", "a=%ff", "a=%é"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn only_the_host_of_an_address_is_told() {
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
