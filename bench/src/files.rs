//! Measures how fast a `tokenizer.json` is loaded and texts are counted with it.
//!
//! All peers get the same file, and count control tokens in the text as text.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use overlock_budget::{CountTokens, TokenizerFile};

use crate::Options;
use crate::clock::{best_of, once, rate, shown_rate, shown_time};
use crate::counting::{CJK, chunks, english, hard_texts, shuffled};
use crate::outside::tokenizer_file;
use crate::table::Table;

/// A tokenizer that was read from a file.
pub(crate) trait Loaded: Sized {
    const NAME: &str;

    fn load(path: &Path) -> Result<Self>;

    fn try_count(&self, text: &str) -> Result<usize>;

    /// The tokens of a text; none if it cannot be counted.
    fn count(&self, text: &str) -> usize {
        self.try_count(text).unwrap_or(0)
    }
}

/// Loads a tokenizer and checks that it counts.
pub(crate) fn load<T: Loaded>(path: &Path) -> Result<T> {
    let tokenizer = T::load(path).context("it does not read the file")?;
    let counted = tokenizer.try_count("What does it count?");
    counted.context("it reads the file, but does not count")?;
    Ok(tokenizer)
}

/// Hugging Face's own crate.
pub(crate) struct HuggingFace(tokenizers::Tokenizer);

impl Loaded for HuggingFace {
    const NAME: &str = "tokenizers";

    fn load(path: &Path) -> Result<Self> {
        let loaded = tokenizers::Tokenizer::from_file(path);
        let mut tokenizer = loaded.map_err(|error| anyhow!("{error}"))?;
        tokenizer.set_encode_special_tokens(true);
        Ok(Self(tokenizer))
    }

    fn try_count(&self, text: &str) -> Result<usize> {
        let tokens = self.0.encode_fast(text, false);
        Ok(tokens.map_err(|error| anyhow!("{error}"))?.len())
    }
}

/// `fastokens`
pub(crate) struct FastTokens(fastokens::Tokenizer);

impl Loaded for FastTokens {
    const NAME: &str = "fastokens";

    fn load(path: &Path) -> Result<Self> {
        let loaded = fastokens::Tokenizer::from_file(path);
        Ok(Self(loaded.map_err(|error| anyhow!("{error}"))?))
    }

    fn try_count(&self, text: &str) -> Result<usize> {
        let policy = fastokens::AddedTokenPolicy::SkipSpecial;
        let tokens = self.0.encode_with_policy(text, false, policy);
        Ok(tokens.map_err(|error| anyhow!("{error}"))?.len())
    }
}

impl Loaded for TokenizerFile {
    const NAME: &str = "overlock-budget";

    fn load(path: &Path) -> Result<Self> {
        Ok(Self::new(fs::read(path)?)?)
    }

    fn try_count(&self, text: &str) -> Result<usize> {
        Ok(usize::try_from(CountTokens::count(self, text))?)
    }
}

const FILES: [(&str, &str); 2] = [
    ("llama3", "tokenizer-llama3_2"),
    ("qwen3", "tokenizer-qwen3"),
];

/// Measures all peers with every file.
pub(crate) fn run(options: &Options) -> Result<()> {
    let size = if options.quick { 200_000 } else { 1_000_000 };
    let texts = [shuffled(&english()?, " ", size), shuffled(CJK, "", size)];
    let hard = hard_texts(if options.quick { 500 } else { 5_000 });
    let mut table = Table::new([
        "counting with a `tokenizer.json`",
        "reading it",
        "200 B English",
        "200 B CJK",
        "1 MB English",
        "1 MB CJK",
        "other counts than `tokenizers`",
    ]);
    for (family, package) in FILES {
        let path = match tokenizer_file(package) {
            Ok(path) => path,
            Err(error) => {
                table.row([format!("{family}: not installed: {error:#}")]);
                continue;
            }
        };
        let judge = HuggingFace::load(&path)?;
        let judged: Vec<usize> = hard.iter().map(|text| judge.count(text)).collect();
        let rows = [
            measure::<TokenizerFile>,
            measure::<HuggingFace>,
            measure::<FastTokens>,
        ];
        for row in rows {
            table.row(row(options, family, &path, &texts, &hard, &judged));
        }
    }
    table.print("Tokenizer files");
    Ok(())
}

fn measure<T: Loaded>(
    options: &Options,
    family: &str,
    path: &Path,
    texts: &[String],
    hard: &[String],
    judged: &[usize],
) -> Vec<String> {
    let runs = if options.quick { 2 } else { 5 };
    let name = format!("{family}: {}", T::NAME);
    eprintln!("   counting with {name}");
    let (time, loaded) = once(|| load::<T>(path));
    let tokenizer = match loaded {
        Ok(tokenizer) => tokenizer,
        Err(error) => return vec![format!("{name}: {error:#}")],
    };
    let mut row = vec![name, shown_time(time)];
    row.extend(texts.iter().map(|text| {
        let messages = chunks(text, 200);
        let count = |message: &&str| tokenizer.count(message);
        let time = best_of(runs, || messages.iter().map(count).sum::<usize>());
        format!("{:.2} µs", time.as_secs_f64() / messages.len() as f64 * 1e6)
    }));
    row.extend(texts.iter().map(|text| {
        let time = best_of(runs, || tokenizer.count(text));
        shown_rate(rate(text.len(), time))
    }));
    let others = hard.iter().zip(judged);
    let others = others.filter(|(text, judged)| tokenizer.count(text) != **judged);
    row.push(format!("{} of {}", others.count(), hard.len()));
    row
}
