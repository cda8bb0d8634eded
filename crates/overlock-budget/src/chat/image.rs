//! Estimates the tokens of pictures, recordings and files.
//!
//! Pictures have a documented formula over their size, which the first bytes of an included picture
//! contain. For a linked picture, the largest size is assumed. Recordings and files have rules of
//! thumb.

/// The tokens of pictures for a model.
#[derive(Clone, Copy, Debug)]
pub(super) struct PictureCost {
    /// For every picture.
    base: u64,
    /// For every tile of 512 by 512 of one in high detail.
    tile: u64,
}

impl PictureCost {
    /// The documented costs of the model of this entry, or those of most models.
    pub(super) fn for_entry(entry: Option<&str>) -> Self {
        // A picture costs as much money for the small model as for the large one.
        if entry.is_some_and(|entry| entry.contains("gpt-4o-mini")) {
            return Self {
                base: 2833,
                tile: 5667,
            };
        }
        Self {
            base: 85,
            tile: 170,
        }
    }

    /// The tokens of a picture, from its file in Base64, if included, and whether it is in low detail.
    pub(super) fn picture(self, base64: Option<&str>, is_coarse: bool) -> u64 {
        if is_coarse {
            return self.base;
        }
        let size = base64.and_then(|data| size(&beginning(data)));
        self.base + self.tile * size.map_or(MOST_TILES, tiles)
    }
}

const SQUARE: u64 = 2048;
const SHORT_SIDE: u64 = 768;
const TILE: u64 = 512;
/// The tiles of the largest picture of the formula: 2048 by 768.
const MOST_TILES: u64 = 8;

/// Scaled into a square first, then to its short side, never up.
fn tiles((width, height): (u64, u64)) -> u64 {
    let (short, long) = (width.min(height).max(1), width.max(height).max(1));
    let (short, long) = if long > SQUARE {
        ((short * SQUARE).div_ceil(long), SQUARE)
    } else {
        (short, long)
    };
    let (short, long) = if short > SHORT_SIDE {
        (SHORT_SIDE, (long * SHORT_SIDE).div_ceil(short))
    } else {
        (short, long)
    };
    short.div_ceil(TILE) * long.div_ceil(TILE)
}

/// The tokens of a recording: ten for a second.
pub(super) fn recording(bytes: u64, is_compressed: bool) -> u64 {
    // 16 bits at 24 kHz, and the lowest rate at which speech is usually compressed.
    let bytes_per_token = if is_compressed { 400 } else { 4800 };
    bytes.div_ceil(bytes_per_token)
}

/// The tokens of a file: four bytes to a token, or a few pages if it is only linked to.
pub(super) fn file(bytes: Option<u64>) -> u64 {
    const LINKED: u64 = 3000;
    bytes.map_or(LINKED, |bytes| bytes.div_ceil(4))
}

/// How many bytes of a picture are searched for its size.
const BEGINNING: usize = 256 << 10;

/// Decodes the beginning of Base64.
fn beginning(base64: &str) -> Vec<u8> {
    let data = base64.as_bytes();
    let mut bytes = Vec::new();
    let (mut bits, mut held) = (0_u32, 0);
    for &letter in &data[..data.len().min(BEGINNING)] {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 0xff) as u8);
        }
    }
    bytes
}

/// The width and height in the first bytes of a picture.
fn size(bytes: &[u8]) -> Option<(u64, u64)> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Some((big_endian(bytes, 16, 4)?, big_endian(bytes, 20, 4)?));
    }
    if bytes.starts_with(b"GIF8") {
        return Some((little_endian(bytes, 6, 2)?, little_endian(bytes, 8, 2)?));
    }
    if bytes.starts_with(b"\xff\xd8") {
        return jpeg_size(bytes);
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12)? == b"WEBP" {
        return webp_size(bytes);
    }
    None
}

/// The first frame header among the segments.
fn jpeg_size(bytes: &[u8]) -> Option<(u64, u64)> {
    let mut place = 2;
    loop {
        if *bytes.get(place)? != 0xff {
            return None;
        }
        match *bytes.get(place + 1)? {
            // Filling, and markers that stand alone.
            0xff => place += 1,
            0x01 | 0xd0..=0xd8 => place += 2,
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                let height = big_endian(bytes, place + 5, 2)?;
                return Some((big_endian(bytes, place + 7, 2)?, height));
            }
            _ => place += 2 + usize::try_from(big_endian(bytes, place + 2, 2)?).ok()?,
        }
    }
}

fn webp_size(bytes: &[u8]) -> Option<(u64, u64)> {
    match bytes.get(12..16)? {
        b"VP8 " => {
            let side = |place| Some(little_endian(bytes, place, 2)? & 0x3fff);
            Some((side(26)?, side(28)?))
        }
        b"VP8L" => {
            let packed = little_endian(bytes, 21, 4)?;
            Some(((packed & 0x3fff) + 1, (packed >> 14 & 0x3fff) + 1))
        }
        b"VP8X" => {
            let side = |place| Some(little_endian(bytes, place, 3)? + 1);
            Some((side(24)?, side(27)?))
        }
        _ => None,
    }
}

fn big_endian(bytes: &[u8], place: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(place..place.checked_add(length)?)?.iter();
    Some(bytes.fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn little_endian(bytes: &[u8], place: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(place..place.checked_add(length)?)?.iter();
    Some(bytes.rfold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_size(bytes: &[u8], expected: Option<(u64, u64)>) {
        assert_eq!(size(bytes), expected, "{bytes:x?}");
        for end in 0..bytes.len() {
            let cut = size(&bytes[..end]);
            assert!(cut.is_none() || cut == expected, "cut at {end}");
        }
    }

    #[test]
    fn reads_the_size_of_a_picture_from_its_first_bytes() {
        check_size(
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x04\0\0\0\x02\x01\x08",
            Some((1024, 513)),
        );
        check_size(b"GIF89a\x40\x01\xf0\x00", Some((320, 240)));
        check_size(
            b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc2\0\x11\x08\x01\x02\x03\x04\x03",
            Some((0x304, 0x102)),
        );
        check_size(
            b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\xff\x03\0\xff\x01\0",
            Some((1024, 512)),
        );
        check_size(
            b"RIFF\0\0\0\0WEBPVP8L\x05\0\0\0\x2f\xff\xc0\x3f\0",
            Some((256, 256)),
        );
        check_size(
            b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0abc\x9d\x01\x2a\x80\x02\xe0\x01",
            Some((640, 480)),
        );
        check_size(b"\xff\xd8\xff\xe0\0\0", None);
        check_size(b"BM", None);
    }

    /// The examples that the formula is published with.
    #[test]
    fn a_picture_costs_its_tiles() {
        let cost = |width, height| 85 + 170 * tiles((width, height));
        assert_eq!(cost(1024, 1024), 765);
        assert_eq!(cost(2048, 4096), 1105);
        assert_eq!(cost(100, 100), 255);
        let most = (1..5000).step_by(7).flat_map(|width| {
            let heights = (1..5000).step_by(61);
            heights.map(move |height| tiles((width, height)))
        });
        assert_eq!(most.max(), Some(MOST_TILES));
    }

    #[test]
    fn a_picture_of_unknown_size_costs_the_most() {
        let cost = PictureCost::for_entry(Some("gpt-4o"));
        assert_eq!(cost.picture(None, true), 85);
        assert_eq!(cost.picture(None, false), 1445);
        let small = Some("R0lGODlhEAAQAIAA");
        assert_eq!(cost.picture(small, false), 255);
        assert_eq!(cost.picture(Some("R0lGO"), false), 1445);
        let cost = PictureCost::for_entry(Some("gpt-4o-mini-2024-07-18"));
        assert_eq!(cost.picture(small, false), 8500);
    }
}
