//! The chat template that comes with a tokenizer file.
//!
//! Models come as a folder: beside the `tokenizer.json` lie a `tokenizer_config.json` and often a
//! `chat_template.jinja`. What is not named is looked for there.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use overlock_budget::{ChatTemplate, ChatTemplateError, CountChats, Rendered, TokenizerFile};
use serde_json::Value;

use crate::ending::Failure;

/// A tokenizer with the template that writes chats for it.
pub(crate) struct Templated {
    tokenizer: Arc<TokenizerFile>,
    template: ChatTemplate,
    /// For templates that tell the date.
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

/// Where a template is said to be.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TemplateFiles<'a> {
    /// A `tokenizer_config.json`.
    pub(crate) tokenizer_config: Option<&'a Path>,
    /// A template in a file of its own.
    pub(crate) chat_template: Option<&'a Path>,
}

/// The template of the tokenizer at `path`: the one that is named, else one that lies beside it.
pub(super) fn read(
    tokenizer: &Arc<TokenizerFile>,
    path: &Path,
    files: TemplateFiles,
) -> Result<Option<Templated>, Failure> {
    let beside = |named: Option<&Path>, name: &str| match named {
        Some(named) => Some(named.to_owned()),
        None => Some(path.with_file_name(name)).filter(|path| path.is_file()),
    };
    let config_path = beside(files.tokenizer_config, "tokenizer_config.json");
    // A configuration that was named is the whole answer, whatever lies around.
    let template_path = match (files.tokenizer_config, files.chat_template) {
        (Some(_), None) => None,
        (_, named) => beside(named, "chat_template.jinja"),
    };
    let config = match &config_path {
        Some(path) => read_text(path)?,
        None => "{}".to_owned(),
    };
    let read = match &template_path {
        Some(path) => ChatTemplate::with_template(&read_text(path)?, &config),
        None => ChatTemplate::new(&config),
    };
    let was_named = files.tokenizer_config.is_some() || files.chat_template.is_some();
    match read {
        Ok(template) => Ok(Some(Templated {
            tokenizer: Arc::clone(tokenizer),
            template,
            now: now(),
        })),
        // Not every model is made for chats.
        Err(ChatTemplateError::Missing) if !was_named => Ok(None),
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
