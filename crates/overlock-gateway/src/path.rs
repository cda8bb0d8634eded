//! Rejects ambiguous paths.
//!
//! A forwarded path must stay below the address of the upstream, however the upstream decodes it. A
//! path with `..` in any encoding is rejected, not normalised.

use std::borrow::Cow;

/// Whether every server reads a path in the same way.
pub(crate) fn is_plain(path: &str) -> bool {
    if !path.starts_with('/') {
        return false;
    }
    let Some(decoded) = fully_decoded(path) else {
        return false;
    };
    let mut segments = decoded[1..]
        .split(|&byte| byte == b'/' || byte == b'\\')
        .peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        let steps = matches!(segment, b"." | b"..");
        if steps || (segment.is_empty() && !is_last) || segment.iter().any(u8::is_ascii_control) {
            return false;
        }
    }
    true
}

/// The path after the decoding of several servers in a row; `None` if an escape is invalid or too
/// deeply nested.
fn fully_decoded(path: &str) -> Option<Cow<'_, [u8]>> {
    const SERVERS: usize = 4;
    let mut bytes = Cow::Borrowed(path.as_bytes());
    for _ in 0..SERVERS {
        if !bytes.contains(&b'%') {
            return Some(bytes);
        }
        bytes = Cow::Owned(decoded(&bytes)?);
    }
    None
}

/// Decodes every escape once.
pub(crate) fn decoded(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter();
    while let Some(&byte) = rest.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
        let value = digit(rest.next())? * 16 + digit(rest.next())?;
        decoded.push(u8::try_from(value).ok()?);
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::is_plain;

    #[test]
    fn accepts_plain_paths() {
        for path in [
            "/",
            "/v1/models",
            "/v1/models/",
            "/v1/models/meta-llama%2FLlama-3.1",
            "/v1/models/gpt-4o:latest",
            "/v1/files/file-1/content",
            "/v1/x/...",
            "/v1/.well-known",
            "/v1/a%20b",
        ] {
            assert!(is_plain(path), "{path}");
        }
    }

    #[test]
    fn rejects_paths_that_step_up() {
        for path in [
            "",
            "*",
            "v1/models",
            "//",
            "/v1//models",
            "/v1/../x",
            "/v1/./x",
            "/v1/..",
            "/v1/%2e%2e/x",
            "/v1/%2E./x",
            "/v1/.%2e%2fx",
            "/v1/a%2f..%2f..%2fx",
            "/v1/%252e%252e/x",
            "/v1/%25252e%25252e/x",
            "/v1/..\\x",
            "/v1/%5c..%5cx",
            "/v1/x%00",
            "/v1/x%0d%0ahost:y",
            "/v1/%",
            "/v1/%zz",
            "/v1/%2",
            "/v1/%252525252525252e",
        ] {
            assert!(!is_plain(path), "{path}");
        }
    }
}
