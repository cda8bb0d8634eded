//! The API keys that clients must send. They are not read from the command line, which other users
//! of the machine can see.

use std::path::Path;
use std::{env, fs};

use crate::ending::Failure;

pub(super) struct Keys {
    keys: Vec<String>,
    /// The environment variable that they come from.
    variable: Option<String>,
}

impl Keys {
    /// Clients need no key.
    pub(super) fn none() -> Self {
        Self {
            keys: Vec::new(),
            variable: None,
        }
    }

    /// The keys in an environment variable.
    pub(super) fn from_variable(name: &str) -> Result<Self, Failure> {
        let text = env::var(name).unwrap_or_default();
        Ok(Self {
            keys: parse(&text, &format!("the environment variable `{name}`"))?,
            variable: Some(name.to_owned()),
        })
    }

    /// The keys in a file.
    pub(super) fn from_file(path: &Path) -> Result<Self, Failure> {
        let name = format!("`{}`", path.display());
        let text = fs::read_to_string(path).map_err(|source| Failure::Unreadable {
            name: name.clone(),
            source,
        })?;
        Ok(Self {
            keys: parse(&text, &name)?,
            variable: None,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(super) fn to_keys(&self) -> overlock_gateway::Keys {
        overlock_gateway::Keys::new(self.keys.iter().cloned())
    }

    /// A placeholder for a key in a shell command; `None` without keys.
    pub(super) fn in_shell(&self) -> Option<String> {
        match &self.variable {
            _ if self.keys.is_empty() => None,
            Some(name) if self.keys.len() == 1 => Some(format!("${name}")),
            _ => Some("KEY".to_owned()),
        }
    }
}

/// Splits at whitespace and commas; a line that starts with `#` is a comment.
fn parse(text: &str, name: &str) -> Result<Vec<String>, Failure> {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let keys = lines.flat_map(|line| line.split(|c: char| c.is_whitespace() || c == ','));
    let keys: Vec<String> = keys
        .filter(|key| !key.is_empty())
        .map(str::to_owned)
        .collect();
    if keys.is_empty() {
        return Err(Failure::Usage {
            message: format!("{name} contains no key"),
            hint: "a key is any text without spaces and commas; create one with `openssl rand -hex 32`"
                .into(),
        });
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn splits_keys_at_line_breaks_and_commas() {
        let keys = parse("# ours\none\n\n two,three , four\n", "a file");
        assert_eq!(keys.expect("four"), ["one", "two", "three", "four"]);
    }

    #[test]
    fn refuses_a_text_without_keys() {
        for text in ["", " \n,\n", "# only a comment"] {
            assert!(parse(text, "a file").is_err(), "{text:?}");
        }
    }
}
