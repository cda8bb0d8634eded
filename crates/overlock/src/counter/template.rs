//! The chat template of a tokenizer file.
//!
//! The folder of a model has a `tokenizer.json`, a `tokenizer_config.json` and often a
//! `chat_template.jinja`. Files that are not given are looked up there.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use overlock_budget::{ChatTemplate, ChatTemplateError, CountChats, Rendered, TokenizerFile};
use serde_json::Value;

use crate::ending::Failure;

/// A tokenizer with its chat template.
pub(crate) struct Templated {
    tokenizer: Arc<TokenizerFile>,
    template: ChatTemplate,
    /// For templates that contain the date.
    now: Option<i64>,
}

impl CountChats for Templated {
    fn count_chat(&self, messages: &Value, tools: Option<&Value>) -> Option<u64> {
        let rendered = Rendered {
            tokenizer: &self.tokenizer,
            template: &self.template,
            now: self.now,
        };
        rendered.count_chat(messages, tools)
    }
}

/// The given files of a template.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TemplateFiles<'a> {
    /// A `tokenizer_config.json`.
    pub(crate) tokenizer_config: Option<&'a Path>,
    /// A file with only the template.
    pub(crate) chat_template: Option<&'a Path>,
}

/// Reads the template of the tokenizer at `path`: the given one, else one in the same folder.
pub(super) fn read(
    tokenizer: &Arc<TokenizerFile>,
    path: &Path,
    files: TemplateFiles,
) -> Result<Option<Templated>, Failure> {
    let given_or_sibling = |given: Option<&Path>, name: &str| match given {
        Some(given) => Some(given.to_owned()),
        None => Some(path.with_file_name(name)).filter(|path| path.is_file()),
    };
    let config_path = given_or_sibling(files.tokenizer_config, "tokenizer_config.json");
    // A given configuration contains the template, so no other file is looked up.
    let template_path = match (files.tokenizer_config, files.chat_template) {
        (Some(_), None) => None,
        (_, given) => given_or_sibling(given, "chat_template.jinja"),
    };
    let config = match &config_path {
        Some(path) => read_text(path)?,
        None => "{}".to_owned(),
    };
    let read = match &template_path {
        Some(path) => ChatTemplate::with_template(&read_text(path)?, &config),
        None => ChatTemplate::new(&config),
    };
    let is_given = files.tokenizer_config.is_some() || files.chat_template.is_some();
    match read {
        Ok(template) => Ok(Some(Templated {
            tokenizer: Arc::clone(tokenizer),
            template,
            now: now(),
        })),
        // Not every model supports chats.
        Err(ChatTemplateError::Missing) if !is_given => Ok(None),
        Err(source) => Err(Failure::Template {
            path: template_path
                .or(config_path)
                .unwrap_or_else(|| path.to_owned()),
            source,
        }),
    }
}

fn read_text(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|source| Failure::TokenizerUnreadable {
        path: PathBuf::from(path),
        source,
    })
}

fn now() -> Option<i64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}
