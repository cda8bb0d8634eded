//! The key that a server is shown.

use std::env;

use crate::ending::Failure;

/// The key for a server. A provider's usual variable is read for that provider alone, and must hold
/// a key as well.
pub(crate) fn key(variable: Option<&str>, url: &str) -> Result<Option<String>, Failure> {
    match variable.or(usual_variable(url)) {
        None => Ok(None),
        Some(name) => required(name).map(Some),
    }
}

/// The key for a server whose clients may have their own: only a variable that was named must hold
/// one.
pub(crate) fn own_key(variable: Option<&str>, url: &str) -> Result<Option<String>, Failure> {
    match variable {
        Some(name) => required(name).map(Some),
        None => Ok(usual_variable(url).and_then(held)),
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
