//! Measures documents, so that "identical" is something a reader can check.

use overlock_json::{Scalar, Scanner, Visitor};

/// What two identical documents have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measures {
    pub(crate) bytes: usize,
    /// How many strings, numbers and literals there are.
    pub(crate) values: usize,
    /// The checksum that `cksum` prints.
    pub(crate) checksum: u32,
}

impl Measures {
    pub(crate) fn of(document: &str) -> Self {
        let mut count = Count::default();
        Scanner::new().feed_with(document.as_bytes(), &mut count);
        Self {
            bytes: document.len(),
            values: count.values,
            checksum: checksum(document.as_bytes()),
        }
    }
}

/// Why a document cannot be played.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("is not UTF-8")]
    Encoding,
    #[error("is empty")]
    Empty,
    #[error("is not JSON: {0}")]
    Malformed(String),
    #[error("is cut itself, {0}")]
    Cut(String),
}

/// The document in a file: whole, valid, without the white space around it.
pub(crate) fn whole_document(bytes: &[u8]) -> Result<&str, Unusable> {
    let text = std::str::from_utf8(bytes).map_err(|_| Unusable::Encoding)?;
    let document = text
        .trim_start_matches('\u{feff}')
        .trim_matches([' ', '\n', '\r', '\t']);
    if document.is_empty() {
        return Err(Unusable::Empty);
    }
    let mut scanner = Scanner::new();
    scanner.feed(document.as_bytes());
    if let Some(syntax_error) = scanner.syntax_error() {
        return Err(Unusable::Malformed(syntax_error.to_string()));
    }
    match scanner.cut() {
        Some(cut) => Err(Unusable::Cut(crate::draw::cut_sentence(&cut))),
        None => Ok(document),
    }
}

#[derive(Default)]
struct Count {
    values: usize,
}

impl Visitor for Count {
    fn scalar(&mut self, _kind: Scalar) {
        self.values += 1;
    }
}

/// The checksum of POSIX `cksum`: a cyclic redundancy check of the bytes and their number.
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
    use super::{checksum, whole_document};

    #[test]
    fn the_checksum_is_the_one_cksum_prints() {
        assert_eq!(checksum(b""), 4_294_967_295);
        assert_eq!(checksum(b"123456789"), 930_766_865);
    }

    #[test]
    fn only_a_whole_document_can_be_played() {
        assert_eq!(whole_document(b"\xef\xbb\xbf [1]\n").ok(), Some("[1]"));
        for bytes in [&b""[..], b" \n", b"\xff", b"[1", b"[1,]", b"hello"] {
            assert!(whole_document(bytes).is_err(), "{bytes:?}");
        }
    }
}
