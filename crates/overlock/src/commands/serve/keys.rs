//! The keys that clients must show. They never come from the command line, which others can see.

use std::path::Path;
use std::{env, fs};

use crate::ending::Failure;

/// Keys, and where they came from.
pub(super) struct Keys {
    keys: Vec<String>,
    variable: Option<String>,
}

impl Keys {
    /// Nobody is asked for one.
    pub(super) fn none() -> Self {
        Self {
            keys: Vec::new(),
            variable: None,
        }
    }

    /// The keys in a variable of the environment.
    pub(super) fn from_variable(name: &str) -> Result<Self, Failure> {
        let text = env::var(name).unwrap_or_default();
        Ok(Self {
            keys: read(&text, &format!("the environment variable `{name}`"))?,
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
            keys: read(&text, &name)?,
            variable: None,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// What the gateway asks for.
    pub(super) fn to_keys(&self) -> overlock_gateway::Keys {
        overlock_gateway::Keys::new(self.keys.iter().cloned())
    }

    /// How a shell writes a key of these, without telling it; nothing if there are none.
    pub(super) fn in_shell(&self) -> Option<String> {
        match &self.variable {
            _ if self.keys.is_empty() => None,
            Some(name) if self.keys.len() == 1 => Some(format!("${name}")),
            _ => Some("KEY".to_owned()),
        }
    }
}

/// Keys have no blanks or commas in them, and a line with `#` is a comment.
fn read(text: &str, name: &str) -> Result<Vec<String>, Failure> {
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
            message: format!("{name} holds no key"),
            hint: "a key is any text without blanks, such as `openssl rand -hex 32` makes".into(),
        });
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn keys_stand_in_lines_or_between_commas() {
        let keys = read("# ours\none\n\n two,three , four\n", "a file");
        assert_eq!(keys.expect("four"), ["one", "two", "three", "four"]);
    }

    #[test]
    fn no_key_is_a_mistake() {
        for text in ["", " \n,\n", "# only a comment"] {
            assert!(read(text, "a file").is_err(), "{text:?}");
        }
    }
}
