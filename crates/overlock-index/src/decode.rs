//! Decodes the bytes of a file as UTF-8, UTF-16 or Windows-1252.
//!
//! No byte of a text is dropped: invalid ones become replacement characters.

/// The decoded content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// UTF-8, or UTF-16 with a byte order mark.
    Text(String),
    /// Not UTF-8, so read as Windows-1252, which has a character for every byte.
    Guessed(String),
    /// Not text.
    Binary(Vec<u8>),
}

/// How much of a file is searched for zero bytes, which text does not have.
const CHECKED_BYTES: usize = 8 * 1024;

/// Decodes the bytes of a file.
pub fn decode(bytes: Vec<u8>) -> Decoded {
    match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => return Decoded::Text(utf16(rest, u16::from_le_bytes)),
        [0xfe, 0xff, rest @ ..] => return Decoded::Text(utf16(rest, u16::from_be_bytes)),
        _ => {}
    }
    if bytes[..bytes.len().min(CHECKED_BYTES)].contains(&0) {
        return Decoded::Binary(bytes);
    }
    match String::from_utf8(bytes) {
        Ok(text) => Decoded::Text(match text.strip_prefix('\u{feff}') {
            Some(text) => text.to_owned(),
            None => text,
        }),
        Err(error) => Decoded::Guessed(
            error
                .as_bytes()
                .iter()
                .map(|&byte| windows_1252(byte))
                .collect(),
        ),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let pairs = bytes.chunks_exact(2);
    let half = pairs
        .remainder()
        .iter()
        .map(|_| char::REPLACEMENT_CHARACTER);
    let units = pairs.map(|pair| unit([pair[0], pair[1]]));
    char::decode_utf16(units)
        .map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER))
        .chain(half)
        .collect()
}

fn windows_1252(byte: u8) -> char {
    const FROM_80: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž',
        '\u{8f}', '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}',
        'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => FROM_80[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::{Decoded, decode};

    #[track_caller]
    fn check(bytes: &[u8], expected: &Decoded) {
        assert_eq!(&decode(bytes.to_vec()), expected, "{bytes:?}");
    }

    #[test]
    fn decodes_the_encodings_of_source_files() {
        let text = |text: &str| Decoded::Text(text.to_owned());
        check("é".as_bytes(), &text("é"));
        check(b"\xef\xbb\xbfa", &text("a"));
        check(b"\xff\xfea\0\xe9\0", &text("aé"));
        check(b"\xfe\xff\0a\xd8\0", &text("a\u{fffd}"));
        check(b"\xff\xfea\0b", &text("a\u{fffd}"));
        check(b"M\xfcller \x80", &Decoded::Guessed("Müller €".to_owned()));
        check(b"\x89PNG\0\0", &Decoded::Binary(b"\x89PNG\0\0".to_vec()));
        check(b"", &text(""));
    }
}
