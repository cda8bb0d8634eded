//! Measures how fast tokens are counted, and compares the counts.
//!
//! Texts are random combinations of sentences and lines from this repository, and of sentences in
//! Chinese, Japanese and Korean. A peer may cache pieces, but no text is repeated in the column of
//! the first count. Start and memory are measured in separate processes. Hugging Face `tokenizers`
//! and `fastokens` have no vocabulary and read one from a file.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use overlock_budget::{Cached, CountTokens, Encoding};

use crate::Options;
use crate::clock::{best_of, once, rate, shown_rate, shown_time};
use crate::files::{FastTokens, HuggingFace, Loaded, load};
use crate::outside::tokenizer_file;
use crate::random::Random;
use crate::table::Table;

/// The hidden command for the first count of a process.
pub(crate) const CHILD: &str = "--count-first";

struct Counter {
    name: &'static str,
    count: fn(&str) -> usize,
    /// Why it cannot count, if it needs a vocabulary file.
    missing: fn() -> Option<String>,
}

impl Counter {
    const fn new(name: &'static str, count: fn(&str) -> usize) -> Self {
        Self {
            name,
            count,
            missing: || None,
        }
    }

    const fn from_file(
        name: &'static str,
        missing: fn() -> Option<String>,
        count: fn(&str) -> usize,
    ) -> Self {
        Self {
            name,
            count,
            missing,
        }
    }
}

static REMEMBERED: LazyLock<Cached<Encoding>> =
    LazyLock::new(|| Cached::new(Encoding::O200kBase, 64_000_000));
static SPLINTR: LazyLock<Option<splintr::AnyTokenizer>> =
    LazyLock::new(|| splintr::from_pretrained("o200k_base").ok());
static HUGGING_FACE: LazyLock<Result<HuggingFace>> = LazyLock::new(from_file);
static FAST_TOKENS: LazyLock<Result<FastTokens>> = LazyLock::new(from_file);

fn from_file<T: Loaded>() -> Result<T> {
    let path = tokenizer_file("tokenizer-gpt4o").context("the vocabulary is not installed")?;
    load(&path)
}

fn why<T>(loaded: &Result<T>) -> Option<String> {
    let error = loaded.as_ref().err()?;
    Some(format!("{error:#}"))
}

/// Ours first, all for `o200k_base`.
const COUNTERS: &[Counter] = &[
    Counter::new("overlock-budget", |text| {
        as_usize(Encoding::O200kBase.count(text))
    }),
    Counter::new(REMEMBERING, |text| as_usize(REMEMBERED.count(text))),
    Counter::new("tiktoken-rs", |text| {
        tiktoken_rs::o200k_base_singleton().count_ordinary(text)
    }),
    Counter::new("bpe-openai", |text| bpe_openai::o200k_base().count(text)),
    Counter::new("tiktoken (goliajp)", |text| {
        tiktoken::get_encoding("o200k_base").map_or(0, |encoding| encoding.count(text))
    }),
    Counter::new("splintr", |text| {
        let tokenizer = SPLINTR.as_ref();
        tokenizer.map_or(0, |tokenizer| tokenizer.encode_raw(text).len())
    }),
    Counter::from_file(
        "tokenizers",
        || why(&HUGGING_FACE),
        |text| HUGGING_FACE.as_ref().map_or(0, |one| one.count(text)),
    ),
    Counter::from_file(
        "fastokens",
        || why(&FAST_TOKENS),
        |text| FAST_TOKENS.as_ref().map_or(0, |one| one.count(text)),
    ),
];

/// The peers that can count. Reports the others.
fn counters() -> Vec<&'static Counter> {
    let is_there = |counter: &&Counter| match (counter.missing)() {
        Some(why) => {
            println!("\n{} is not measured: {why}", counter.name);
            false
        }
        None => true,
    };
    COUNTERS.iter().filter(is_there).collect()
}

const REMEMBERING: &str = "overlock-budget, `Cached`";

fn as_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Prints all three tables.
pub(crate) fn run(options: &Options) -> Result<()> {
    let size = if options.quick { 200_000 } else { 1_000_000 };
    let texts = [
        ("English", shuffled(&english()?, " ", size)),
        ("code", shuffled(&code()?, "\n", size)),
        ("CJK", shuffled(CJK, "", size)),
    ];
    let counters = counters();
    speed(options, &counters, &texts);
    first(&counters, &texts)?;
    agreement(options, &counters, &texts);
    Ok(())
}

fn speed(options: &Options, counters: &[&Counter], texts: &[(&str, String)]) {
    let runs = if options.quick { 3 } else { 7 };
    let mut table = Table::new([
        "counting, `o200k_base`",
        "200 B English",
        "200 B code",
        "200 B CJK",
        "1 MB English",
        "1 MB code",
        "1 MB CJK",
    ]);
    for counter in counters {
        eprintln!("   counting with {}", counter.name);
        (counter.count)("warms up before the measurement");
        let messages = texts.iter().map(|(_, text)| {
            let messages = chunks(text, 200);
            let time = best_of(runs, || {
                messages
                    .iter()
                    .map(|message| (counter.count)(message))
                    .sum::<usize>()
            });
            let each = time.as_secs_f64() / messages.len() as f64;
            format!("{:.2} µs", each * 1e6)
        });
        let messages: Vec<String> = messages.collect();
        let whole = texts.iter().map(|(_, text)| {
            let time = best_of(runs, || (counter.count)(text));
            shown_rate(rate(text.len(), time))
        });
        table.row(
            [counter.name.to_owned()]
                .into_iter()
                .chain(messages)
                .chain(whole),
        );
    }
    table.print("Counting");
}

fn first(counters: &[&Counter], texts: &[(&str, String)]) -> Result<()> {
    let path = std::env::temp_dir().join(format!("overlock-bench-{}.txt", std::process::id()));
    fs::write(&path, &texts[0].1)?;
    let mut table = Table::new([
        "the first count of a process",
        "a short text",
        "then 1 MB English, first seen",
        "memory",
    ]);
    let forgetful = counters
        .iter()
        .filter(|counter| counter.name != REMEMBERING);
    for counter in forgetful {
        let output = Command::new(std::env::current_exe()?)
            .arg(CHILD)
            .arg(counter.name)
            .arg(&path)
            .output()?;
        if !output.status.success() {
            bail!("`{}` ended with {}", counter.name, output.status);
        }
        let cells = String::from_utf8(output.stdout)?;
        table.row(
            [counter.name.to_owned()]
                .into_iter()
                .chain(cells.lines().map(str::to_owned)),
        );
    }
    fs::remove_file(&path)?;
    table.print("The first count");
    Ok(())
}

/// Measures the first count of this process.
pub(crate) fn count_in_this_process(begun: Instant, name: &str, path: &str) -> Result<()> {
    let counter = COUNTERS.iter().find(|counter| counter.name == name);
    let counter = counter.context("there is no such counter")?;
    black_box((counter.count)("What was counted first?"));
    let first = begun.elapsed();
    let text = fs::read_to_string(path)?;
    let (time, _) = once(|| (counter.count)(&text));
    println!("{}", shown_time(first.max(Duration::from_micros(1))));
    println!("{}", shown_rate(rate(text.len(), time)));
    println!("{}", peak_memory().unwrap_or_else(|| "unknown".to_owned()));
    Ok(())
}

fn peak_memory() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(format!("{:.0} MB", kilobytes / 1e3))
}

fn agreement(options: &Options, counters: &[&Counter], texts: &[(&str, String)]) {
    let mut hard = hard_texts(if options.quick { 2_000 } else { 20_000 });
    hard.extend(
        texts
            .iter()
            .flat_map(|(_, text)| chunks(text, 500))
            .map(str::to_owned),
    );
    let mut table = Table::new(["the same count as tiktoken-rs", "texts", "other counts"]);
    for counter in counters {
        let others = hard.iter().filter(|text| {
            (counter.count)(text) != tiktoken_rs::o200k_base_singleton().count_ordinary(text)
        });
        table.row([
            counter.name.to_owned(),
            hard.len().to_string(),
            others.count().to_string(),
        ]);
    }
    table.print("Agreement");
}

/// Random texts of pieces that are easily counted wrong.
pub(crate) fn hard_texts(wanted: usize) -> Vec<String> {
    let mut random = Random::new(7);
    (0..wanted)
        .map(|_| (0..random.below(40)).map(|_| random.pick(HARD)).collect())
        .collect()
}

/// The text in pieces of about so many bytes.
pub(crate) fn chunks(mut text: &str, size: usize) -> Vec<&str> {
    let mut chunks = Vec::new();
    while !text.is_empty() {
        let (chunk, rest) = text.split_at(text.ceil_char_boundary(size));
        chunks.push(chunk);
        text = rest;
    }
    chunks
}

/// A text of about `size` bytes out of parts.
pub(crate) fn shuffled<T: AsRef<str>>(parts: &[T], between: &str, size: usize) -> String {
    let mut random = Random::new(1);
    let mut text = String::with_capacity(size + 1000);
    while text.len() < size {
        text.push_str(parts[random.below(parts.len())].as_ref());
        text.push_str(between);
    }
    text
}

/// The sentences in the documents of this repository.
pub(crate) fn english() -> Result<Vec<String>> {
    let mut sentences = Vec::new();
    for name in [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
    ] {
        let text = fs::read_to_string(name).with_context(|| format!("could not read `{name}`"))?;
        sentences.extend(text.split_inclusive(". ").map(str::to_owned));
    }
    Ok(sentences)
}

/// The lines in the programs of this repository, ten at a time.
fn code() -> Result<Vec<String>> {
    let mut folders = vec![Path::new("crates").to_owned()];
    let mut lines = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)
            .with_context(|| format!("could not list `{}`", folder.display()))?
        {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path)?;
                let text: Vec<&str> = text.lines().collect();
                lines.extend(text.chunks(10).map(|lines| lines.join("\n")));
            }
        }
    }
    Ok(lines)
}

pub(crate) const CJK: &[&str] = &[
    "港の水位は毎時測定され、",
    "嵐の前には気圧が下がります。",
    "报告显示，春季的水位高于平均值。",
    "每个站点的数据都经过质量检查，",
    "语言模型的上下文窗口是有限的。",
    "하버의 수위는 봄에 평균보다 높았다. ",
    "모델의 문맥 창에는 한계가 있다. ",
    "長い回答は途中で切れることがあるので、続きを求めて縫い合わせる。",
    "我们把两段文字在重叠处连接起来，",
    "トークンの数は文字の数とは違う。",
    "超出预算的部分会被删去，",
    "最后一条用户消息永远保留。\n",
    "東京と大阪の間は約四百キロメートルです。",
    "北京的天气预报说明天有大风。",
    "서울에서 부산까지 기차로 두 시간 반이 걸린다.\n",
    "この文書は自動的に生成されたものではない。",
    "数字２０２４と12,345も含まれています。",
    "请参阅第三章（第42页）的表格。",
    "エラーが発生した場合は、もう一度お試しください。",
    "개발자는 JSON 응답이 끝까지 도착하기를 바란다. ",
];

const HARD: &[&str] = &[
    "a",
    "the",
    " world",
    "HTML",
    "camelCase",
    "'s",
    "'S",
    "'ſ",
    "'re",
    "'lL",
    "''",
    "0",
    "42",
    "123",
    "٣",
    "²",
    "Ⅷ",
    " ",
    "  ",
    "\t",
    "\n",
    "\r\n",
    " \n",
    "\u{85}",
    "\u{a0}",
    "\u{3000}",
    "\u{200b}",
    ".",
    "!",
    "/",
    "==",
    "---",
    "_",
    "<|endoftext|>",
    "<|im_start|>",
    "é",
    "e\u{301}",
    "\u{301}",
    "ǅ",
    "ʰ",
    "ß",
    "日",
    "本語",
    "。",
    "カタ",
    "한국",
    "ال",
    "न्",
    "กิ",
    "α",
    "Ω",
    "я",
    "Ж",
    "😀",
    "👨\u{200d}👩",
    "🇩🇪",
    "𐐀",
    "𠀀",
];
