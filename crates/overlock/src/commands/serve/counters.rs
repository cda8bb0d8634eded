//! The tokenizers that the configuration names, read once for all requests.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use overlock_budget::{ChatCounter, Found};
use overlock_gateway::Counters;

use crate::config::Config;
use crate::counter::{Counter, TemplateFiles, Templated};
use crate::ending::Failure;

/// Tokenizers from files, which stay for as long as the process lives.
struct Files {
    tokenizers: HashMap<String, &'static Tokenizer>,
    /// The templates that the user names for models of their own.
    templates: HashMap<String, &'static Templated>,
}

struct Tokenizer {
    counter: Counter,
    /// What lies beside its file.
    template: Option<Templated>,
}

/// Reads all tokenizers that the configuration names; nothing if there are none.
pub(super) fn read(config: &Config) -> Result<Option<Arc<dyn Counters>>, Failure> {
    let mut tokenizers = HashMap::new();
    for (name, path) in config.tokenizer_files() {
        // Clients are told who counts, and not where that is on this machine.
        let shown = Path::new(name).file_name().and_then(|name| name.to_str());
        let counter = Counter::from_named_file(path, shown.unwrap_or(name))?;
        let template = counter.template(TemplateFiles::default())?;
        let tokenizer = Tokenizer { counter, template };
        // Requests count with it until the process ends.
        tokenizers.insert(name.to_owned(), &*Box::leak(Box::new(tokenizer)));
    }
    if tokenizers.is_empty() {
        return Ok(None);
    }
    let mut files = Files {
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

impl Files {
    fn tokenizer(&self, found: &Found) -> Option<&'static Tokenizer> {
        let name = found.model.tokenizer.as_deref()?;
        let families = || self.tokenizers.get(&name.to_ascii_lowercase());
        self.tokenizers.get(name).or_else(families).copied()
    }
}

impl Counters for Files {
    fn for_model(&self, found: &Found) -> Option<ChatCounter<'static>> {
        let tokenizer = self.tokenizer(found)?;
        let own = found.entry.as_ref();
        let own = own.and_then(|entry| self.templates.get(entry).copied());
        let template = own.or(tokenizer.template.as_ref());
        Some(tokenizer.counter.of_requests(found, template))
    }
}
