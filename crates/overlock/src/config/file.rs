//! Reads `overlock.toml`.
//!
//! Errors have a source line, because the parser keeps the span of each key and value. Unknown keys
//! are errors.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use overlock_budget::{How, Models};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::SourceLine;
use super::keys::{Setting, WrittenValue};
use super::settings::{KEYS, Key, MODEL_KEYS};
use super::{Config, ConfigError, OwnModel};
use crate::counter;
use crate::suggest::nearest;

const MODELS: &str = "models";
const TOKENIZERS: &str = "tokenizers";

/// Reads a file over the defaults.
pub(super) fn read(path: &Path) -> Result<Config, ConfigError> {
    let bytes = fs::read(path).map_err(|source| ConfigError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    let text = String::from_utf8(bytes).map_err(|_| ConfigError::NotText {
        path: path.to_owned(),
    })?;
    // Some editors on Windows write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    parse(path, text)
}

/// Parses the text of a file. Relative paths in it start from the folder of the file.
pub(super) fn parse(path: &Path, text: &str) -> Result<Config, ConfigError> {
    let reader = Reader {
        path,
        text,
        folder: path.parent().unwrap_or(Path::new("")),
    };
    let document = DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        let hint = "in TOML a setting is `key = value`, and text is quoted";
        reader.error(format!("this is not TOML: {}", error.message()), span, hint)
    })?;
    let mut config = Config::default();
    reader.document(document.get_ref(), &mut config)?;
    Ok(config)
}

/// Whether the name of a tokenizer is the path of its file.
pub(super) fn is_path(tokenizer: &str) -> bool {
    let extension = Path::new(tokenizer).extension();
    tokenizer.contains(['/', '\\']) || extension.is_some_and(|extension| extension == "json")
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    folder: &'a Path,
}

type Entry<'a, 'i> = (&'a Spanned<Cow<'i, str>>, &'a Spanned<DeValue<'i>>);

impl Reader<'_> {
    fn document(&self, table: &DeTable, config: &mut Config) -> Result<(), ConfigError> {
        // First, because models refer to them.
        if let Some(tokenizers) = table.get(TOKENIZERS) {
            for (family, file) in in_order(self.table(TOKENIZERS, tokenizers)?) {
                let key = format!("{TOKENIZERS}.{}", family.get_ref());
                let mut path = PathBuf::new();
                self.set(&key, &mut path, file)?;
                let family = family.get_ref().to_ascii_lowercase();
                config.tokenizers.insert(family, path);
            }
        }
        for (key, value) in in_order(table) {
            match key.get_ref().as_ref() {
                TOKENIZERS => {}
                MODELS => {
                    for (name, entry) in in_order(self.table(MODELS, value)?) {
                        let model = self.model(name, entry, config)?;
                        let name = name.get_ref().to_ascii_lowercase();
                        config.models.insert(name, model);
                    }
                }
                _ => self.entry((key, value), "", KEYS, config)?,
            }
        }
        Ok(())
    }

    fn model(
        &self,
        name: &Spanned<Cow<str>>,
        entry: &Spanned<DeValue>,
        config: &Config,
    ) -> Result<OwnModel, ConfigError> {
        let mut model = OwnModel::default();
        let table = format!("{MODELS}.{:?}", name.get_ref());
        for (key, value) in in_order(self.table(&table, entry)?) {
            self.entry((key, value), "", MODEL_KEYS, &mut model)?;
            if key.get_ref() == "tokenizer" {
                self.resolve_tokenizer(&mut model, value.span(), config)?;
            }
        }
        let is_known = || Models::default().find(name.get_ref()).how != How::Default;
        if model.window.is_none() && !is_known() {
            return Err(self.error(
                format!(
                    "the model `{}` needs a `window`, because it is not a known model",
                    name.get_ref()
                ),
                name.span(),
                "add `window = ` with the size of its context window in tokens",
            ));
        }
        if model.input_price.is_some() != model.output_price.is_some()
            || model.cached_input_price.is_some() && model.input_price.is_none()
        {
            return Err(self.error(
                format!(
                    "the model `{}` has a price for only some of its tokens",
                    name.get_ref()
                ),
                name.span(),
                "set both `input_price` and `output_price`, or no price",
            ));
        }
        let impossible = if model.window == Some(0) {
            "a `window` of 0 tokens"
        } else if model.answer_cap == Some(0) {
            "an `answer_cap` of 0 tokens"
        } else if model.shared == Some(false) && model.answer_cap.is_none() {
            "`shared = false`, but no `answer_cap`"
        } else {
            return Ok(model);
        };
        Err(self.error(
            format!("the model `{}` has {impossible}", name.get_ref()),
            name.span(),
            "settings that are left out keep the value of the known model",
        ))
    }

    /// Checks the tokenizer of a model, and makes a path absolute.
    fn resolve_tokenizer(
        &self,
        model: &mut OwnModel,
        span: Range<usize>,
        config: &Config,
    ) -> Result<(), ConfigError> {
        let Some(name) = &mut model.tokenizer else {
            return Ok(());
        };
        let built_in = counter::names();
        if built_in.contains(&name.as_str())
            || config.tokenizers.contains_key(&name.to_ascii_lowercase())
        {
            return Ok(());
        }
        if is_path(name) {
            *name = self.folder.join(&*name).display().to_string();
            return Ok(());
        }
        let table = Models::default().all();
        let families: BTreeSet<&str> = table
            .values()
            .filter_map(|model| model.tokenizer.as_deref())
            .collect();
        if families.contains(name.as_str()) {
            return Ok(());
        }
        let own = config.tokenizers.keys().map(String::as_str);
        let known = built_in.iter().copied().chain(families).chain(own);
        let hint = match nearest(name, known) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("the built-in encodings are {}", built_in.join(", ")),
        };
        let problem = format!(
            "`tokenizer` is `{name}`, which is not an encoding, a family of models or a path"
        );
        Err(self.error(problem, span, &hint))
    }

    /// Applies one entry, which is a key or a table of keys.
    fn entry<T>(
        &self,
        (key, value): Entry,
        above: &str,
        keys: &[Key<T>],
        target: &mut T,
    ) -> Result<(), ConfigError> {
        let name = format!("{above}{}", key.get_ref());
        if let Some(known) = keys.iter().find(|known| known.name == name) {
            return self.set(&name, (known.field)(target), value);
        }
        let below = format!("{name}.");
        if !keys.iter().any(|known| known.name.starts_with(&below)) {
            return Err(self.unknown(key, above, keys));
        }
        // Recursion ends with the longest key.
        for entry in in_order(self.table(&name, value)?) {
            self.entry(entry, &below, keys, target)?;
        }
        Ok(())
    }

    fn set(
        &self,
        name: &str,
        setting: &mut dyn Setting,
        value: &Spanned<DeValue>,
    ) -> Result<(), ConfigError> {
        let hint = match setting.written() {
            Some(default) => format!("the default is {default}"),
            None => "overlock.example.toml shows all keys with their defaults".into(),
        };
        setting
            .set(&written(value.get_ref()), self.folder)
            .map_err(|problem| self.error(format!("`{name}` {problem}"), value.span(), &hint))
    }

    fn table<'t, 'i>(
        &self,
        name: &str,
        value: &'t Spanned<DeValue<'i>>,
    ) -> Result<&'t DeTable<'i>, ConfigError> {
        value.get_ref().as_table().ok_or_else(|| {
            self.error(
                format!(
                    "`{name}` is {}, but must be a table",
                    article(value.get_ref())
                ),
                value.span(),
                &format!("write `[{name}]` with the keys below it"),
            )
        })
    }

    fn unknown<T>(&self, key: &Spanned<Cow<str>>, above: &str, keys: &[Key<T>]) -> ConfigError {
        let beside = keys
            .iter()
            .filter_map(|known| known.name.strip_prefix(above))
            .map(|rest| rest.split('.').next().unwrap_or(rest));
        let tables = [MODELS, TOKENIZERS];
        let is_root = above.is_empty() && keys.iter().any(|known| known.name.contains('.'));
        let beside = beside.chain(tables.into_iter().filter(|_| is_root));
        let word = key.get_ref().as_ref();
        // A known key may be in the wrong table.
        let elsewhere = keys
            .iter()
            .map(|known| known.name)
            .find(|known| known.rsplit('.').next() == Some(word));
        let meant = elsewhere.or_else(|| nearest(word, beside));
        let hint = match meant {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "overlock.example.toml shows all keys".into(),
        };
        self.error(format!("unknown key `{above}{word}`"), key.span(), &hint)
    }

    fn error(&self, problem: String, span: Range<usize>, hint: &str) -> ConfigError {
        ConfigError::Invalid {
            problem,
            line: Box::new(SourceLine::new(self.path, self.text, span)),
            hint: hint.to_owned(),
        }
    }
}

/// The entries in the order of the file, so that the first mistake is reported first.
fn in_order<'a, 'i>(table: &'a DeTable<'i>) -> Vec<Entry<'a, 'i>> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

fn written(value: &DeValue) -> WrittenValue {
    match value {
        DeValue::String(text) => WrittenValue::Text(text.to_string()),
        DeValue::Integer(number) => {
            WrittenValue::Integer(i128::from_str_radix(number.as_str(), number.radix()).ok())
        }
        DeValue::Float(number) => match number.as_str().parse() {
            Ok(parsed) => WrittenValue::Fraction(parsed, number.as_str().to_owned()),
            Err(_) => WrittenValue::Other(article(value)),
        },
        DeValue::Boolean(flag) => WrittenValue::Flag(*flag),
        other => WrittenValue::Other(article(other)),
    }
}

fn article(value: &DeValue) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a floating-point number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}
