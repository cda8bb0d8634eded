//! The tokenizers that the configuration names, read once for all requests.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use overlock_budget::{ChatCounter, Found};
use overlock_gateway::Counters;

use crate::config::Config;
use crate::counter::{Counter, TemplateFiles, Templated};
use crate::ending::Failure;

/// Tokenizers from files, which live until the process ends.
struct TokenizerFiles {
    tokenizers: HashMap<String, &'static LoadedTokenizer>,
    /// The chat templates of configured models.
    templates: HashMap<String, &'static Templated>,
}

struct LoadedTokenizer {
    counter: Counter,
    /// The chat template in the folder of the tokenizer.
    template: Option<Templated>,
}

/// Reads all configured tokenizers; `None` without any.
pub(super) fn read(config: &Config) -> Result<Option<Arc<dyn Counters>>, Failure> {
    let mut tokenizers = HashMap::new();
    for (name, path) in config.tokenizer_files() {
        // Clients see this name, so it must not contain the path.
        let shown = Path::new(name).file_name().and_then(|name| name.to_str());
        let counter = Counter::from_named_file(path, shown.unwrap_or(name))?;
        let template = counter.template(TemplateFiles::default())?;
        let tokenizer = LoadedTokenizer { counter, template };
        // Leaked on purpose: it is used until the process ends.
        tokenizers.insert(name.to_owned(), &*Box::leak(Box::new(tokenizer)));
    }
    if tokenizers.is_empty() {
        return Ok(None);
    }
    let mut files = TokenizerFiles {
        tokenizers,
        templates: HashMap::new(),
    };
    let models = config.models();
    for entry in config.own_models() {
        let Some(tokenizer) = files.tokenizer(&models.find(entry)) else {
            continue;
        };
        if let Some(template) = tokenizer
            .counter
            .template(config.template_files(Some(entry)))?
        {
            let template = &*Box::leak(Box::new(template));
            files.templates.insert(entry.to_owned(), template);
        }
    }
    Ok(Some(Arc::new(files)))
}

impl TokenizerFiles {
    fn tokenizer(&self, found: &Found) -> Option<&'static LoadedTokenizer> {
        let name = found.model.tokenizer.as_deref()?;
        let family = || self.tokenizers.get(&name.to_ascii_lowercase());
        self.tokenizers.get(name).or_else(family).copied()
    }
}

impl Counters for TokenizerFiles {
    fn for_model(&self, found: &Found) -> Option<ChatCounter<'static>> {
        let tokenizer = self.tokenizer(found)?;
        let own = found.entry.as_ref();
        let own = own.and_then(|entry| self.templates.get(entry).copied());
        let template = own.or(tokenizer.template.as_ref());
        Some(tokenizer.counter.of_requests(found, template))
    }
}
