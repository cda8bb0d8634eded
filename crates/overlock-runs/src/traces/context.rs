//! Trace context as in the W3C header `traceparent`.

use std::hash::{BuildHasher, RandomState};

use hyper::header::{HeaderMap, HeaderName, HeaderValue};

/// Identifies a span and its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace; never 0.
    pub trace: u128,
    /// The span; never 0.
    pub span: u64,
    /// Whether the client that started the trace wants it to be recorded.
    pub is_sampled: bool,
}

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

impl TraceContext {
    /// Starts a trace.
    pub fn new_trace() -> Self {
        Self {
            trace: u128::from(random_id()) << 64 | u128::from(random_id()),
            span: random_id(),
            is_sampled: true,
        }
    }

    /// A child span.
    #[must_use]
    pub fn child(self) -> Self {
        Self {
            span: random_id(),
            ..self
        }
    }

    /// Reads the context from the headers, if there is exactly one valid one.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(TRACEPARENT).iter();
        match (values.next(), values.next()) {
            (Some(only), None) => Self::read(only.to_str().ok()?),
            _ => None,
        }
    }

    /// Sets the headers of an upstream request, replacing a client's.
    #[expect(
        clippy::missing_panics_doc,
        reason = "hexadecimal digits are plain text"
    )]
    pub fn inject(self, headers: &mut HeaderMap) {
        let continues = Self::of(headers).is_some_and(|client| client.trace == self.trace);
        if !continues {
            // The state belongs to another trace.
            headers.remove(TRACESTATE);
        }
        let value = HeaderValue::from_str(&self.written());
        let value = value.expect("hexadecimal digits are plain text");
        headers.insert(TRACEPARENT, value);
    }

    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let version = digits(parts.next()?, 2)?;
        let trace = digits(parts.next()?, 32)?;
        let span = digits(parts.next()?, 16)?;
        let flags = digits(parts.next()?, 2)?;
        // Later versions may have more fields; version 0xff is invalid.
        let has_more = parts.next().is_some();
        if trace == 0 || span == 0 || version == 0xff || (version == 0 && has_more) {
            return None;
        }
        Some(Self {
            trace,
            span: u64::try_from(span).ok()?,
            is_sampled: flags & 1 == 1,
        })
    }

    fn written(self) -> String {
        let Self { trace, span, .. } = self;
        format!(
            "00-{trace:032x}-{span:016x}-{:02x}",
            u8::from(self.is_sampled)
        )
    }
}

/// Parses a number of exactly so many lower-case hexadecimal digits.
fn digits(text: &str, count: usize) -> Option<u128> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != count || !text.bytes().all(is_digit) {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

/// A random id, from the random keys of a hash map, which spares a dependency.
fn random_id() -> u64 {
    RandomState::new().hash_one(0).max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(u128, u64, bool)>) {
        let read = TraceContext::read(text);
        let read = read.map(|context| (context.trace, context.span, context.is_sampled));
        assert_eq!(read, expected, "{text}");
    }

    #[test]
    fn reads_a_parent() {
        let (trace, span) = (
            0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c,
            0xb7ad_6b71_6920_3331,
        );
        let ids = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331";
        check(&format!("00-{ids}-01"), Some((trace, span, true)));
        check(&format!("00-{ids}-00"), Some((trace, span, false)));
        check(&format!("00-{ids}-03"), Some((trace, span, true)));
        check(
            &format!("cc-{ids}-01-what-the-future"),
            Some((trace, span, true)),
        );
        check(&format!("00-{ids}-01-more"), None);
        check(&format!("ff-{ids}-01"), None);
        check(&format!("00-{}-01", ids.to_uppercase()), None);
        check(&format!("00-{}-b7ad6b7169203331-01", "0".repeat(32)), None);
        check(
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            None,
        );
        check(
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            None,
        );
        check("", None);
    }

    #[test]
    fn trace_state_stays_with_its_trace() {
        let mut headers = HeaderMap::new();
        let client = TraceContext::new_trace();
        client.inject(&mut headers);
        headers.insert(TRACESTATE, HeaderValue::from_static("a=1"));
        let child = client.child();
        child.inject(&mut headers);
        assert_eq!(TraceContext::of(&headers), Some(child));
        assert!(headers.contains_key(TRACESTATE));
        TraceContext::new_trace().inject(&mut headers);
        assert!(!headers.contains_key(TRACESTATE));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(trace in 1_u128.., span in 1_u64.., is_sampled: bool) {
            let context = TraceContext { trace, span, is_sampled };
            prop_assert_eq!(TraceContext::read(&context.written()), Some(context));
        }

        #[test]
        fn accepts_only_well_formed_parents(text in "[0-9a-f+é-]{0,70}") {
            if let Some(context) = TraceContext::read(&text) {
                prop_assert_eq!(&context.written()[2..52], &text[2..52]);
            }
        }
    }
}
