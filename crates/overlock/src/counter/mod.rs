//! Token counters, and how reliable their counts are.
//!
//! A model's tokens are counted with its own tokenizer if that is built in or its file is known,
//! and otherwise with a substitute, which is always noted.

mod args;
mod template;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use overlock_budget::{
    Approximate, ChatCounter, CountTokens, Encoding, Found, How, Provenance, StandIn, TokenizerFile,
};

pub(crate) use args::EncodingArgs;
pub(crate) use template::{TemplateFiles, Templated};

use crate::config::{Config, TokenizerSource};
use crate::ending::Failure;
use crate::output::Notes;

/// A token counter, and how exact it is.
pub(crate) struct Counter {
    pub(crate) tokens: Arc<dyn CountTokens>,
    pub(crate) name: String,
    pub(crate) provenance: Provenance,
    kind: CounterKind,
    /// A note about the counts, and a hint how to improve them.
    caveat: Option<(String, String)>,
}

enum CounterKind {
    BuiltIn,
    File {
        tokenizer: Arc<TokenizerFile>,
        path: PathBuf,
    },
    /// It replaces a tokenizer that is not available.
    Substitute,
}

impl Counter {
    /// The counter with this name: an encoding or a rule of thumb.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let tokens = built_in(name)?;
        let provenance = provenance(tokens.as_ref(), How::Exact);
        let caveat = (provenance != Provenance::Exact).then(|| {
            (
                format!("`{name}` is a rule of thumb: the count is an estimate"),
                "give a model or an encoding to count exactly".to_owned(),
            )
        });
        Some(Self {
            tokens,
            name: name.to_owned(),
            provenance,
            kind: CounterKind::BuiltIn,
            caveat,
        })
    }

    /// The tokenizer in a file.
    pub(crate) fn from_file(path: &Path) -> Result<Self, Failure> {
        Self::from_named_file(path, &path.display().to_string())
    }

    /// The tokenizer in a file, with the name that models use for it.
    pub(crate) fn from_named_file(path: &Path, name: &str) -> Result<Self, Failure> {
        let tokenizer = Arc::new(read_file(path)?.named(name));
        Ok(Self {
            tokens: Arc::<TokenizerFile>::clone(&tokenizer),
            name: name.to_owned(),
            provenance: Provenance::Exact,
            kind: CounterKind::File {
                tokenizer,
                path: path.to_owned(),
            },
            caveat: None,
        })
    }

    /// The best available counter for a model.
    pub(crate) fn for_model(name: &str, found: &Found, config: &Config) -> Result<Self, Failure> {
        let Some(tokenizer) = found.model.tokenizer.as_deref() else {
            return Ok(Self::substitute(
                found,
                &format!("the tokenizer of `{name}` is not known"),
                "if you have its tokenizer.json, give it with --tokenizer FILE, or as `tokenizer` \
                 under [models] in overlock.toml"
                    .into(),
            ));
        };
        let mut counter = match (Self::named(tokenizer), config.tokenizer(tokenizer)) {
            (Some(built_in), _) => built_in,
            (None, TokenizerSource::File(path)) => Self::from_named_file(path, tokenizer)?,
            (None, TokenizerSource::Family) => {
                return Ok(Self::substitute(
                    found,
                    &format!("no tokenizer file for `{tokenizer}` models"),
                    format!(
                        "give it with --tokenizer FILE, or as `{tokenizer}` under [tokenizers] in \
                         overlock.toml"
                    ),
                ));
            }
        };
        counter.provenance = provenance(counter.tokens.as_ref(), found.how);
        if found.how == How::Prefix {
            let entry = found.entry.as_deref().unwrap_or_default();
            counter.caveat = Some((
                format!("`{name}` is counted like `{entry}`, because its name begins with that"),
                "if that is wrong, set its `tokenizer` under [models] in overlock.toml".to_owned(),
            ));
        }
        Ok(counter)
    }

    /// The chat template for a tokenizer from a file, if there is one.
    pub(crate) fn template(&self, files: TemplateFiles) -> Result<Option<Templated>, Failure> {
        match &self.kind {
            CounterKind::File { tokenizer, path } => template::read(tokenizer, path, files),
            CounterKind::BuiltIn | CounterKind::Substitute => Ok(None),
        }
    }

    /// A counter of whole requests for a model, with its chat template if there is one.
    pub(crate) fn of_requests<'a>(
        &'a self,
        found: &Found,
        template: Option<&'a Templated>,
    ) -> ChatCounter<'a> {
        match (&self.kind, template) {
            (CounterKind::Substitute, _) => ChatCounter::for_model(found),
            (_, Some(template)) => {
                ChatCounter::with_template(found, self.tokens.as_ref(), template)
            }
            (_, None) => ChatCounter::with_counter(found, self.tokens.as_ref()),
        }
    }

    /// Notes that the counts are not exact.
    pub(crate) fn note(&self, notes: &mut Notes) {
        if let Some((note, hint)) = &self.caveat {
            notes.note(note);
            notes.hint(hint);
        }
    }

    fn substitute(found: &Found, why: &str, hint: String) -> Self {
        let tokens = StandIn::for_model(found);
        let name = tokens.name().to_owned();
        Self {
            caveat: Some((format!("{why}: estimated with {name}"), hint)),
            tokens: Arc::new(tokens),
            name,
            provenance: Provenance::Estimate,
            kind: CounterKind::Substitute,
        }
    }
}

/// The names of all counters that need no file.
pub(crate) fn names() -> Vec<&'static str> {
    let encodings = Encoding::ALL.into_iter().map(Encoding::name);
    encodings.chain([Approximate.name()]).collect()
}

fn built_in(name: &str) -> Option<Arc<dyn CountTokens>> {
    if name == Approximate.name() {
        return Some(Arc::new(Approximate));
    }
    Some(Arc::new(Encoding::from_name(name)?))
}

fn read_file(path: &Path) -> Result<TokenizerFile, Failure> {
    let bytes = fs::read(path).map_err(|source| Failure::TokenizerUnreadable {
        path: path.to_owned(),
        source,
    })?;
    TokenizerFile::new(&bytes).map_err(|source| Failure::Tokenizer {
        path: path.to_owned(),
        source,
    })
}

/// How reliable a count of plain text is for a model that was found in this way.
fn provenance(tokens: &dyn CountTokens, how: How) -> Provenance {
    match how {
        _ if !tokens.is_exact() => Provenance::Estimate,
        How::Exact | How::Alias => Provenance::Exact,
        How::Prefix => Provenance::Calibrated,
        How::Default => Provenance::Estimate,
    }
}
