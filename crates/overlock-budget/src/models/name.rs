//! Splits the name of a model into host, parts and release.
//!
//! All names here are in lower case.

const LATEST: &str = ":latest";

/// How much [`plain_forms`] removes at most: a region, a vendor, and a few endings.
pub(super) const LONGEST_DECORATION: usize = 64;

/// The name, and its ends after each host or folder, the longest first: `a/b/c`, `b/c`, `c`. Those of
/// more than `limit` bytes are left out.
pub(super) fn tails(name: &str, limit: usize) -> impl Iterator<Item = &str> {
    // Text before the longest of them is not read, so a long name is cheap.
    let first = name.len().saturating_sub(limit);
    let is_start = move |start: &usize| *start == 0 || name.as_bytes()[start - 1] == b'/';
    (first..=name.len())
        .filter(is_start)
        .map(|start| &name[start..])
}

/// The name without any host.
pub(super) fn bare(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The name, and what remains of it without each ending that does not change the model (`:latest`, a
/// date, a quantization, a version of Bedrock), then without a region and a vendor.
pub(super) fn plain_forms(name: &str) -> Vec<&str> {
    let mut forms = vec![name];
    let mut plain = name;
    while let Some(shorter) = [
        without_tag,
        without_date,
        without_quantization,
        without_version,
    ]
    .into_iter()
    .find_map(|without| without(plain).filter(|rest| !rest.is_empty()))
    {
        // Names with longer decorations are not looked up.
        if name.len() - shorter.len() > LONGEST_DECORATION {
            break;
        }
        forms.push(shorter);
        plain = shorter;
    }
    for known in [REGIONS, VENDORS] {
        let prefix = plain.split_once('.');
        if let Some((_, rest)) = prefix.filter(|(prefix, _)| known.contains(prefix)) {
            forms.push(rest);
            plain = rest;
        }
    }
    forms
}

/// The prefixes of Bedrock's names for inference in several regions.
const REGIONS: &[&str] = &[
    "us", "us-gov", "eu", "apac", "ap", "au", "ca", "jp", "global",
];

/// The prefixes of Bedrock's names for the makers of models.
const VENDORS: &[&str] = &[
    "ai21",
    "amazon",
    "anthropic",
    "cohere",
    "deepseek",
    "google",
    "meta",
    "minimax",
    "mistral",
    "moonshot",
    "moonshotai",
    "openai",
    "qwen",
    "writer",
    "zai",
];

fn without_tag(name: &str) -> Option<&str> {
    [LATEST, "@latest", "@default"]
        .iter()
        .find_map(|tag| name.strip_suffix(tag))
}

/// The name before `-q4_k_m`, `-fp16`, `-int8`, `-awq` and the like.
fn without_quantization(name: &str) -> Option<&str> {
    const FORMATS: &[&str] = &[
        "awq", "bf16", "f16", "f32", "fp16", "fp32", "fp4", "fp8", "gguf", "gptq", "int4", "int8",
        "mlx", "mxfp4", "nf4", "nvfp4", "qat",
    ];
    let (rest, last) = name.rsplit_once('-')?;
    let bits = last.strip_prefix("iq").or_else(|| last.strip_prefix('q'));
    let is_bits = bits.is_some_and(|bits| {
        let first = bits.split('_').next().unwrap_or_default();
        first.len() == 1
            && first.bytes().all(|byte| byte.is_ascii_digit())
            && bits
                .bytes()
                .all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
    });
    (is_bits || FORMATS.contains(&last)).then_some(rest)
}

/// The name before `-v1:0`.
fn without_version(name: &str) -> Option<&str> {
    let (rest, revision) = name.rsplit_once(':')?;
    let (rest, version) = rest.rsplit_once("-v")?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    (is_number(revision) && is_number(version)).then_some(rest)
}

/// The normalized name for all spellings: without `:latest` and date, and with `-` for `.`, `_` and
/// `@`.
///
/// A colon stays: `mistral:7b` is a model of Ollama, and `x:free` is not `x`. The host stays, because
/// hosts offer one model in different sizes.
pub(super) fn spelling(name: &str) -> String {
    let plain = name.strip_suffix(LATEST).unwrap_or(name);
    let plain = without_date(plain).unwrap_or(plain);
    plain.replace(['.', '_', '@'], "-")
}

/// The beginnings of a name that consist of complete parts, the longest first.
///
/// A dot does not end a part: `gpt-4` is not a beginning of `gpt-4.1`.
pub(super) fn beginnings(bare: &str) -> impl Iterator<Item = &str> {
    bare.rmatch_indices(['-', ':', '@', '_'])
        .map(|(separator, _)| &bare[..separator])
        .filter(|beginning| !beginning.is_empty())
}

/// The name before `-2024-08-06`, `-20240806` or `@20240806`.
fn without_date(name: &str) -> Option<&str> {
    [("-", "-"), ("-", ""), ("@", "")]
        .iter()
        .find_map(|(before, between)| {
            let (rest, day) = split_digits(name, 2)?;
            let (rest, month) = split_digits(rest.strip_suffix(between)?, 2)?;
            let (rest, year) = split_digits(rest.strip_suffix(between)?, 4)?;
            let is_date = (1..=31).contains(&day)
                && (1..=12).contains(&month)
                && (2000..2100).contains(&year);
            rest.strip_suffix(before).filter(|_| is_date)
        })
}

/// The text before the last `count` characters, which must be digits, and their number.
fn split_digits(text: &str, count: usize) -> Option<(&str, u32)> {
    let (rest, digits) = text.split_at_checked(text.len().checked_sub(count)?)?;
    let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    Some((rest, digits.parse().ok().filter(|_| all_digits)?))
}
