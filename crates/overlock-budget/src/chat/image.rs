//! Estimates the tokens of pictures, recordings and files.
//!
//! Each provider has published a rule over the size of a picture, which the first bytes of an included
//! picture contain. For a linked picture, the largest size is assumed. Recordings and files have rules
//! of thumb.

/// The published rule of a provider for the tokens of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PictureRule {
    /// A base, and as many again for each tile of 512 by 512: `OpenAI`'s larger models.
    Tiles { base: u64, tile: u64 },
    /// Patches of 32 by 32, at most 1536, times a factor in hundredths: `OpenAI`'s smaller models.
    Patches { hundredths: u64 },
    /// A token for 750 pixels, after the long side and the tokens are limited: Claude.
    Pixels { long_side: u64, most: u64 },
    /// 258 tokens for a small picture, or for each tile: Gemini 2.
    Crops,
    /// A token for each patch of this side, at most 16,384: Qwen.
    Merged { side: u64 },
    /// The same for every picture.
    Flat(u64),
}

/// The beginnings of `OpenAI`'s names with their rules; the first one counts.
const OPENAI: &[(&str, PictureRule)] = &[
    ("gpt-4o-mini", tiles(2833, 5667)),
    ("gpt-4.1-mini", patches(162)),
    ("gpt-4.1-nano", patches(246)),
    ("gpt-5-mini", patches(162)),
    ("gpt-5-nano", patches(246)),
    ("o4-mini", patches(172)),
    ("codex-mini", patches(172)),
    ("chatgpt-4o", tiles(85, 170)),
    ("gpt-4", tiles(85, 170)),
    ("gpt-5.1", tiles(70, 140)),
    ("gpt-5-", tiles(70, 140)),
    ("o1", tiles(75, 150)),
    ("o3", tiles(75, 150)),
    ("computer-use", tiles(65, 129)),
];

/// Claude models that reduce pictures to 1568 pixels; newer ones accept 2576.
const OLDER_CLAUDE: &[&str] = &[
    "claude-3", "haiku-4", "sonnet-4", "opus-4-0", "opus-4-1", "opus-4-2", "opus-4-5", "opus-4-6",
];

const fn tiles(base: u64, tile: u64) -> PictureRule {
    PictureRule::Tiles { base, tile }
}

const fn patches(hundredths: u64) -> PictureRule {
    PictureRule::Patches { hundredths }
}

impl PictureRule {
    /// The rule of the model of this entry. Without one, it is the rule with the most tokens among
    /// those of hosted models.
    pub(super) fn for_entry(entry: Option<&str>) -> Self {
        let name = entry.unwrap_or_default();
        let name = name.rsplit('/').next().unwrap_or(name);
        let openai = OPENAI.iter().find(|(start, _)| name.starts_with(start));
        if let Some((_, rule)) = openai {
            return *rule;
        }
        let has = |part: &str| name.contains(part);
        if name == "gpt-5" {
            tiles(70, 140)
        } else if has("claude") {
            let plain = name.replace('.', "-");
            let is_older =
                OLDER_CLAUDE.iter().any(|older| plain.contains(older)) || plain.ends_with("opus-4");
            let (long_side, most) = if is_older { (1568, 1600) } else { (2576, 4784) };
            Self::Pixels { long_side, most }
        } else if has("gemini-1") {
            Self::Flat(258)
        } else if has("gemini-2") {
            Self::Crops
        } else if has("gemini-3") {
            Self::Flat(1120)
        } else if has("gemma-3") || has("gemma3") {
            Self::Flat(258)
        } else if has("qwen3-vl") || has("qwen3.5") {
            Self::Merged { side: 32 }
        } else if has("qwen") {
            Self::Merged { side: 28 }
        } else {
            patches(246)
        }
    }

    /// The tokens of a picture, from its file in Base64, if included, and whether it is in low detail.
    pub(super) fn picture(self, base64: Option<&str>, is_coarse: bool) -> u64 {
        let size = base64.and_then(|data| size(&beginning(data)));
        match self {
            Self::Tiles { base, .. } if is_coarse => base,
            Self::Tiles { base, tile } => base + tile * size.map_or(MOST_TILES, tile_count),
            Self::Patches { hundredths } => {
                let most = if is_coarse {
                    COARSE_PATCHES
                } else {
                    MOST_PATCHES
                };
                let patches = size.map_or(most, |size| patch_count(size, most));
                (patches * hundredths).div_ceil(100)
            }
            Self::Pixels { long_side, most } => {
                size.map_or(most, |size| (pixels(size, long_side) / 750 + 1).min(most))
            }
            Self::Crops => 258 * size.map_or(MOST_CROPS, crop_count),
            Self::Merged { side } => size.map_or(MOST_MERGED, |(width, height)| {
                let patches = width.div_ceil(side) * height.div_ceil(side);
                patches.min(MOST_MERGED) + 2
            }),
            Self::Flat(tokens) => tokens,
        }
    }
}

const SQUARE: u64 = 2048;
const SHORT_SIDE: u64 = 768;
const TILE: u64 = 512;
/// The tiles of the largest picture of the formula: 2048 by 768.
const MOST_TILES: u64 = 8;

/// Scaled into a square first, then to its short side, never up.
fn tile_count((width, height): (u64, u64)) -> u64 {
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

const PATCH: u64 = 32;
const MOST_PATCHES: u64 = 1536;
/// The patches of 512 by 512 pixels.
const COARSE_PATCHES: u64 = 256;

/// Scaled down until one side is a whole number of patches and all of them are few enough.
fn patch_count((width, height): (u64, u64), most: u64) -> u64 {
    let all = width.div_ceil(PATCH).saturating_mul(height.div_ceil(PATCH));
    if all <= most {
        return all;
    }
    // The sides in patches are `sqrt(most * width / height)` and the like, rounded down on the side
    // that loses more.
    #[expect(
        clippy::cast_precision_loss,
        reason = "sides of a picture have 32 bits"
    )]
    let (width, height) = (width.max(1) as f64, height.max(1) as f64);
    #[expect(clippy::cast_precision_loss, reason = "it is a small number")]
    let scale = (most as f64 / (width * height)).sqrt();
    let (across, down) = (width * scale, height * scale);
    let shrink = (across.floor().max(1.0) / across).min(down.floor().max(1.0) / down);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "there are at most as many patches as allowed"
    )]
    let whole = |side: f64| (side * shrink - 1e-9).ceil().max(1.0) as u64;
    whole(across).saturating_mul(whole(down)).min(most)
}

/// The pixels of a picture scaled down to this long side.
fn pixels((width, height): (u64, u64), long_side: u64) -> u64 {
    let (short, long) = (width.min(height), width.max(height));
    if long <= long_side {
        return short * long;
    }
    (short * long_side).div_ceil(long) * long_side
}

/// The tiles of a picture of 16 by 9.
const MOST_CROPS: u64 = 6;

/// A picture of up to 384 by 384 is one tile; otherwise its short side is one and a half tiles.
fn crop_count((width, height): (u64, u64)) -> u64 {
    if width <= 384 && height <= 384 {
        return 1;
    }
    let tile = (width.min(height) * 2 / 3).clamp(256, 768);
    width.div_ceil(tile).saturating_mul(height.div_ceil(tile))
}

const MOST_MERGED: u64 = 16_384;

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

    /// A PNG file of this size, in Base64.
    fn png(width: u32, height: u32) -> String {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for group in bytes.chunks(3) {
            let group = group.iter().chain(&[0, 0]).take(3);
            let bits = group.fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
            text.extend([18, 12, 6, 0].map(|by| char::from(letters[bits >> by & 63])));
        }
        text
    }

    #[track_caller]
    fn check(entry: &str, size: (u32, u32), expected: u64) {
        let file = png(size.0, size.1);
        let rule = PictureRule::for_entry(Some(entry));
        assert_eq!(
            rule.picture(Some(&file), false),
            expected,
            "{entry} {size:?}"
        );
    }

    #[test]
    fn a_square_of_1024_pixels_costs_what_each_provider_has_published() {
        for (entry, tokens) in [
            ("gpt-4o", 765),
            ("azure/gpt-4.1", 765),
            ("chatgpt-4o-latest", 765),
            ("gpt-4o-mini", 25_501),
            ("o3", 675),
            ("gpt-5", 630),
            ("gpt-5.1-codex", 630),
            ("gpt-4.1-mini", 1659),
            ("gpt-5-mini", 1659),
            ("o4-mini", 1762),
            ("gpt-4.1-nano", 2520),
            ("claude-sonnet-4-5", 1399),
            ("us.anthropic.claude-3-5-sonnet-20241022-v2:0", 1399),
            ("claude-opus-4.7", 1399),
            ("gemini-1.5-pro", 258),
            ("gemini-2.5-flash", 1032),
            ("gemini-3-pro-preview", 1120),
            ("gemma3:27b", 258),
            ("qwen2.5-vl-72b-instruct", 1371),
            ("qwen3-vl-8b", 1026),
            ("nobody-knows", 2520),
        ] {
            check(entry, (1024, 1024), tokens);
        }
    }

    #[test]
    fn agrees_with_the_examples_that_rules_are_published_with() {
        check("gpt-4o", (2048, 4096), 1105);
        check("gpt-4o", (100, 100), 255);
        // 1452 patches.
        check("gpt-4.1-mini", (1800, 2400), 2353);
        check("claude-3-5-sonnet", (200, 200), 54);
        check("claude-3-5-sonnet", (1000, 1000), 1334);
        check("claude-3-5-sonnet", (1092, 1092), 1590);
        check("gemini-2.0-flash", (384, 384), 258);
        check("gemini-2.0-flash", (960, 540), 1548);
    }

    #[test]
    fn no_picture_costs_more_than_one_of_unknown_size() {
        let entries = [
            "gpt-4o",
            "gpt-4o-mini",
            "o4-mini",
            "claude-3-opus",
            "claude-opus-5",
            "qwen2-vl",
        ];
        for entry in entries {
            let rule = PictureRule::for_entry(Some(entry));
            let most = rule.picture(None, false) + 2;
            for width in (1..9000).step_by(613) {
                for height in (1..9000).step_by(89) {
                    let tokens = rule.picture(Some(&png(width, height)), false);
                    assert!(tokens <= most, "{entry} {width} {height}: {tokens}");
                    assert!(tokens > 0);
                }
            }
        }
        assert_eq!(
            PictureRule::for_entry(Some("gpt-4o")).picture(None, true),
            85
        );
        assert_eq!(
            PictureRule::for_entry(Some("gpt-4o")).picture(Some("R0lGO"), false),
            1445
        );
        assert_eq!(
            PictureRule::for_entry(Some("o4-mini")).picture(None, true),
            441
        );
        assert_eq!(
            PictureRule::for_entry(Some("claude-3-opus")).picture(None, false),
            1600
        );
    }
}
