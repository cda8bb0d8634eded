//! Who is asked: the server that is named, and the key it is shown.

use std::env;

use crate::config::Config;
use crate::ending::Failure;

/// A server that was named, and the variable that holds its key if that was named too.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) url: String,
    pub(crate) key_variable: Option<String>,
}

impl Named {
    /// What the flags say, else the configuration.
    pub(crate) fn find(
        url: Option<&str>,
        key_variable: Option<&str>,
        config: &Config,
    ) -> Option<Self> {
        let settings = &config.upstream;
        Some(Self {
            url: url.or(settings.url.as_deref())?.to_owned(),
            key_variable: key_variable
                .or(settings.key_variable.as_deref())
                .map(str::to_owned),
        })
    }

    /// The key for it. A provider's usual variable is read for that provider alone, and must hold
    /// a key as well.
    pub(crate) fn key(&self) -> Result<Option<String>, Failure> {
        let variable = self.key_variable.as_deref();
        match variable.or(usual_variable(&self.url)) {
            None => Ok(None),
            Some(name) => required(name).map(Some),
        }
    }

    /// The key for it, where others may show one in its place: only a variable that was named must
    /// hold one.
    pub(crate) fn own_key(&self) -> Result<Option<String>, Failure> {
        match &self.key_variable {
            Some(name) => required(name).map(Some),
            None => Ok(usual_variable(&self.url).and_then(held)),
        }
    }
}

/// The key that a variable of the environment holds.
pub(crate) fn held(variable: &str) -> Option<String> {
    let key = env::var(variable).ok()?;
    let key = key.trim();
    (!key.is_empty()).then(|| key.to_owned())
}

fn required(variable: &str) -> Result<String, Failure> {
    held(variable).ok_or_else(|| Failure::Usage {
        message: format!("the environment variable `{variable}` holds no key"),
        hint: format!("set it, as in `export {variable}=…`, or name another with --key-variable"),
    })
}

fn usual_variable(url: &str) -> Option<&'static str> {
    let usual = [
        ("https://api.openai.com/", "OPENAI_API_KEY"),
        ("https://api.anthropic.com/", "ANTHROPIC_API_KEY"),
    ];
    let found = usual.iter().find(|(host, _)| url.starts_with(host));
    found.map(|(_, name)| *name)
}
