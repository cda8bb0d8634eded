//! What is added to the request: memories, and retrieved texts.

use std::path::PathBuf;

use overlock_budget::{ContextBlock, Memory};
use overlock_json::clean_encoding;
use serde::Deserialize;

use super::Fit;
use crate::ending::Failure;
use crate::input;
use crate::output::Notes;

/// The files with memories and texts.
pub(super) struct ExtraTexts {
    memories: Vec<MemoryFileEntry>,
    context: Vec<(PathBuf, String)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MemoryFileEntry {
    text: String,
    importance: f64,
    #[serde(default)]
    age_days: f64,
}

impl ExtraTexts {
    pub(super) fn read(fit: &Fit, notes: &mut Notes) -> Result<Self, Failure> {
        let memories = match &fit.memories {
            None => Vec::new(),
            Some(path) => {
                let text = input::read(path, notes)?;
                serde_json::from_slice(&text.bytes).map_err(|error| Failure::Usage {
                    message: format!("{} is not a list of memories: {error}", text.name),
                    hint: "write [{\"text\": \"…\", \"importance\": 0.8, \"age_days\": 2}, …]"
                        .into(),
                })?
            }
        };
        let context = fit.context.iter().map(|path| {
            let text = input::read(path, notes)?;
            Ok((path.clone(), clean_encoding(&text.bytes).text.into_owned()))
        });
        Ok(Self {
            context: context.collect::<Result<_, Failure>>()?,
            memories,
        })
    }

    pub(super) fn memories(&self) -> Vec<Memory<'_>> {
        let memories = self.memories.iter().map(|memory| Memory {
            text: &memory.text,
            importance: memory.importance,
            age_days: memory.age_days,
        });
        memories.collect()
    }

    pub(super) fn context(&self) -> Vec<ContextBlock<'_>> {
        let blocks = self.context.iter().map(|(path, text)| ContextBlock {
            name: path.to_str().unwrap_or("context"),
            text,
        });
        blocks.collect()
    }
}
