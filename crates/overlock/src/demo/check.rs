//! Checks the document of the demo, and computes figures that a reader can verify.

use overlock_json::{Scalar, Scanner, Visitor};

/// Figures of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DocumentStats {
    pub(crate) bytes: usize,
    /// The number of strings, numbers and literals.
    pub(crate) values: usize,
    /// The checksum that `cksum` prints.
    pub(crate) checksum: u32,
}

impl DocumentStats {
    pub(crate) fn of(document: &str) -> Self {
        let mut count = ValueCounter::default();
        Scanner::new().feed_with(document.as_bytes(), &mut count);
        Self {
            bytes: document.len(),
            values: count.values,
            checksum: checksum(document.as_bytes()),
        }
    }
}

/// Why a document cannot be used in the demo.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnusableDocument {
    #[error("is not UTF-8")]
    Encoding,
    #[error("is empty")]
    Empty,
    #[error("is not JSON: {0}")]
    Malformed(String),
    #[error("is incomplete, {0}")]
    Cut(String),
}

/// The complete, valid document in a file, without the white space around it.
pub(crate) fn complete_document(bytes: &[u8]) -> Result<&str, UnusableDocument> {
    let text = std::str::from_utf8(bytes).map_err(|_| UnusableDocument::Encoding)?;
    let document = text
        .trim_start_matches('\u{feff}')
        .trim_matches([' ', '\n', '\r', '\t']);
    if document.is_empty() {
        return Err(UnusableDocument::Empty);
    }
    let mut scanner = Scanner::new();
    scanner.feed(document.as_bytes());
    if let Some(syntax_error) = scanner.syntax_error() {
        return Err(UnusableDocument::Malformed(syntax_error.to_string()));
    }
    match scanner.cut() {
        Some(cut) => Err(UnusableDocument::Cut(crate::draw::cut_sentence(&cut))),
        None => Ok(document),
    }
}

#[derive(Default)]
struct ValueCounter {
    values: usize,
}

impl Visitor for ValueCounter {
    fn scalar(&mut self, _kind: Scalar) {
        self.values += 1;
    }
}

/// The checksum of POSIX `cksum`: a CRC of the bytes and their number.
fn checksum(bytes: &[u8]) -> u32 {
    let table: [u32; 256] = std::array::from_fn(|index| {
        let mut remainder = u32::try_from(index).unwrap_or(0) << 24;
        for _ in 0..8 {
            let carry = remainder >> 31;
            remainder = (remainder << 1) ^ (carry * 0x04C1_1DB7);
        }
        remainder
    });
    let add = |sum: u32, byte: u8| (sum << 8) ^ table[usize::from(sum.to_be_bytes()[0] ^ byte)];
    let mut sum = bytes.iter().fold(0, |sum, &byte| add(sum, byte));
    let mut length = bytes.len();
    while length > 0 {
        sum = add(sum, length.to_le_bytes()[0]);
        length >>= 8;
    }
    !sum
}

#[cfg(test)]
mod tests {
    use super::{checksum, complete_document};

    #[test]
    fn the_checksum_is_the_one_cksum_prints() {
        assert_eq!(checksum(b""), 4_294_967_295);
        assert_eq!(checksum(b"123456789"), 930_766_865);
    }

    #[test]
    fn accepts_only_complete_documents() {
        assert_eq!(complete_document(b"\xef\xbb\xbf [1]\n").ok(), Some("[1]"));
        for bytes in [&b""[..], b" \n", b"\xff", b"[1", b"[1,]", b"hello"] {
            assert!(complete_document(bytes).is_err(), "{bytes:?}");
        }
    }
}
