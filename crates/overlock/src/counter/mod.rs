//! Who counts, and what is the figure worth?
//!
//! A model is counted with its own tokenizer where that is built in or its file is known, and else
//! with a stand-in, which is always said.

mod named;
mod template;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use overlock_budget::{
    Approximate, ChatCounter, CountTokens, Encoding, Found, How, Provenance, TokenizerFile,
    UpperBound,
};

pub(crate) use named::Named;
pub(crate) use template::{TemplateFiles, Templated};

use crate::config::{Config, Tokenizer};
use crate::ending::Failure;
use crate::output::Notes;

/// Counts for models whose own tokenizer is not at hand.
const STAND_IN: Encoding = Encoding::O200kBase;

/// A counter, and what its figures rest on.
pub(crate) struct Counter {
    pub(crate) tokens: Arc<dyn CountTokens>,
    /// Who counts, and in whose place.
    pub(crate) name: String,
    pub(crate) provenance: Provenance,
    kind: Kind,
    /// What to know about the figures, and what would make them better.
    caveat: Option<(String, String)>,
}

enum Kind {
    BuiltIn,
    File {
        tokenizer: Arc<TokenizerFile>,
        path: PathBuf,
    },
    /// It counts in place of a tokenizer that is not at hand.
    StandIn,
}

impl Counter {
    /// The counter of this name: an encoding or a rule of thumb.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let tokens = built_in(name)?;
        let provenance = worth(tokens.as_ref(), How::Exact);
        let caveat = (provenance != Provenance::Exact).then(|| {
            (
                format!("`{name}` is a rule of thumb, not a tokenizer: the figure is an estimate"),
                "name a model or an encoding to count exactly".to_owned(),
            )
        });
        Some(Self {
            tokens,
            name: name.to_owned(),
            provenance,
            kind: Kind::BuiltIn,
            caveat,
        })
    }

    /// The tokenizer in a file.
    pub(crate) fn from_file(path: &Path) -> Result<Self, Failure> {
        Self::from_named_file(path, &path.display().to_string())
    }

    /// The tokenizer in a file, under the name that models call it by.
    pub(crate) fn from_named_file(path: &Path, name: &str) -> Result<Self, Failure> {
        let tokenizer = Arc::new(read_file(path)?.named(name));
        Ok(Self {
            tokens: Arc::<TokenizerFile>::clone(&tokenizer),
            name: name.to_owned(),
            provenance: Provenance::Exact,
            kind: Kind::File {
                tokenizer,
                path: path.to_owned(),
            },
            caveat: None,
        })
    }

    /// The best counter there is for a model.
    pub(crate) fn for_model(name: &str, found: &Found, config: &Config) -> Result<Self, Failure> {
        let Some(tokenizer) = found.model.tokenizer.as_deref() else {
            return Ok(Self::stand_in(
                found,
                &format!("no tokenizer of `{name}` is known"),
                "if there is a tokenizer.json for it, give it with --tokenizer FILE, or as \
                 `tokenizer` under [models] in overlock.toml"
                    .into(),
            ));
        };
        let mut counter = match (Self::named(tokenizer), config.tokenizer(tokenizer)) {
            (Some(built_in), _) => built_in,
            (None, Tokenizer::File(path)) => Self::from_named_file(path, tokenizer)?,
            (None, Tokenizer::Family) => {
                return Ok(Self::stand_in(
                    found,
                    &format!("the tokenizer file of `{tokenizer}` models is not at hand"),
                    format!(
                        "give it with --tokenizer FILE, or as `{tokenizer}` under [tokenizers] in \
                         overlock.toml"
                    ),
                ));
            }
        };
        counter.provenance = worth(counter.tokens.as_ref(), found.how);
        if found.how == How::Prefix {
            let entry = found.entry.as_deref().unwrap_or_default();
            counter.caveat = Some((
                format!("`{name}` is counted as `{entry}` is, which it begins with"),
                "if that is not right, say what it counts with under [models] in overlock.toml"
                    .to_owned(),
            ));
        }
        Ok(counter)
    }

    /// The chat template for a tokenizer from a file, if there is one.
    pub(crate) fn template(&self, files: TemplateFiles) -> Result<Option<Templated>, Failure> {
        match &self.kind {
            Kind::File { tokenizer, path } => template::read(tokenizer, path, files),
            Kind::BuiltIn | Kind::StandIn => Ok(None),
        }
    }

    /// Counts whole requests for the model that was found, as its template writes them.
    pub(crate) fn of_requests<'a>(
        &'a self,
        found: &Found,
        template: Option<&'a Templated>,
    ) -> ChatCounter<'a> {
        match (&self.kind, template) {
            (Kind::StandIn, _) => ChatCounter::for_model(found),
            (_, Some(template)) => {
                ChatCounter::with_template(found, self.tokens.as_ref(), template)
            }
            (_, None) => ChatCounter::with_counter(found, self.tokens.as_ref()),
        }
    }

    /// The same, where a budget must be kept: a stand-in counts less than some models do, so what
    /// it counts is taken for half as much again.
    pub(crate) fn bounded(self) -> Self {
        if !matches!(self.kind, Kind::StandIn) {
            return self;
        }
        let tokens = UpperBound::of(STAND_IN);
        Self {
            name: tokens.name().to_owned(),
            tokens: Arc::new(tokens),
            ..self
        }
    }

    /// Says what there is to know about the figures.
    pub(crate) fn note(&self, notes: &mut Notes) {
        if let Some((note, hint)) = &self.caveat {
            notes.note(note);
            notes.hint(hint);
        }
    }

    fn stand_in(found: &Found, why: &str, hint: String) -> Self {
        Self {
            tokens: Arc::new(STAND_IN),
            name: ChatCounter::for_model(found).name().to_owned(),
            provenance: Provenance::Estimate,
            kind: Kind::StandIn,
            caveat: Some((
                format!(
                    "{why}: counted with {}, which is an estimate",
                    STAND_IN.name()
                ),
                hint,
            )),
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

/// What a count of plain text with a model's own tokenizer is worth.
fn worth(tokens: &dyn CountTokens, how: How) -> Provenance {
    match how {
        _ if !tokens.is_exact() => Provenance::Estimate,
        How::Exact | How::Alias => Provenance::Exact,
        How::Prefix => Provenance::Calibrated,
        How::Default => Provenance::Estimate,
    }
}
