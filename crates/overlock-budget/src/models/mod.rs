//! What can a model of this name take?
//!
//! There is one table, `models.toml`, and a caller's own entries above it. A name is looked up as
//! it is, then without what hosts and releases add to it, then by its beginning; every answer says
//! which of these it was, because a window that was guessed is worth less than one that is known.

mod name;
mod price;
mod table;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

pub use price::{Cost, Price, PriceError, Prices};

use name::{bare, beginnings, plain_forms, tails};

/// The window of a model that nothing is known about.
pub const DEFAULT_WINDOW: u64 = 8192;

/// What is known about a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// The tokens of its context window.
    pub window: u64,
    /// Who says so.
    pub window_source: WindowSource,
    /// Whether the answer takes its room from the window.
    pub sharing: Sharing,
    /// How many tokens an answer may have at most; without one the window is the limit.
    pub answer_cap: Option<u64>,
    /// The encoding it counts with, or the family whose tokenizer file is needed; `None` where it
    /// is not public or not known.
    pub tokenizer: Option<Cow<'static, str>>,
    /// Whether the caller may begin the answer.
    pub prefill: bool,
    /// Whether the answer can be held to JSON.
    pub json: bool,
    /// Whether it can call tools.
    pub tools: bool,
    /// The largest window that another source states; the smaller one is kept.
    pub disputed: Option<u64>,
    /// What its tokens cost, where whoever uses it has said so: no table knows what they pay.
    pub prices: Option<Prices>,
}

impl Default for Model {
    /// The careful answer about a model that nothing is known about.
    fn default() -> Self {
        Self {
            window: DEFAULT_WINDOW,
            window_source: WindowSource::Assumed,
            sharing: Sharing::Shared,
            answer_cap: None,
            tokenizer: None,
            prefill: false,
            json: false,
            tools: false,
            disputed: None,
            prices: None,
        }
    }
}

/// What the size of a window rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowSource {
    /// The table knows the model.
    Known,
    /// It is that of another model, whose name begins alike.
    Alike,
    /// Whoever uses the model has set it.
    Set,
    /// The server that runs the model says so.
    Server,
    /// Nothing is known of the model.
    Assumed,
}

impl WindowSource {
    /// The name in messages and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Known => "known",
            Self::Alike => "alike",
            Self::Set => "set",
            Self::Server => "server",
            Self::Assumed => "assumed",
        }
    }
}

/// Where the answer takes its room from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Input and answer share the window.
    Shared,
    /// The window is for the input alone; the answer has its own room, up to the answer cap.
    Separate,
}

/// How an entry was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// By the name as it was asked for.
    Exact,
    /// Without the host before it, the date or `:latest` after it, or in another spelling.
    Alias,
    /// By the longest beginning that is made of whole parts of the name.
    Prefix,
    /// Not at all.
    Default,
}

impl How {
    /// The name in messages and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Alias => "alias",
            Self::Prefix => "prefix",
            Self::Default => "default",
        }
    }
}

/// The answer to a look-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The name of the entry, in lower case; `None` if there was none.
    pub entry: Option<String>,
    /// What is known.
    pub model: Model,
    /// How it was found.
    pub how: How,
}

impl Found {
    /// What the size of the window rests on.
    ///
    /// ```
    /// use overlock_budget::{Models, WindowSource};
    ///
    /// let source = |name| Models::default().find(name).window_source();
    /// assert_eq!(source("gpt-4o"), WindowSource::Known);
    /// assert_eq!(source("gpt-4o-of-ours"), WindowSource::Alike);
    /// assert_eq!(source("nobody-knows"), WindowSource::Assumed);
    /// ```
    pub fn window_source(&self) -> WindowSource {
        match (self.how, self.model.window_source) {
            (_, source @ (WindowSource::Assumed | WindowSource::Server)) => source,
            (How::Prefix, _) => WindowSource::Alike,
            (_, source) => source,
        }
    }

    /// The same model on a server that runs it with a window of so many tokens. What whoever uses
    /// it has set stays.
    #[must_use]
    pub fn served_with(mut self, window: u64) -> Self {
        if self.window_source() != WindowSource::Set {
            self.model.window = window;
            self.model.window_source = WindowSource::Server;
            self.model.sharing = Sharing::Shared;
            self.model.disputed = None;
        }
        self
    }
}

/// All models that are known: the built-in table with a caller's own entries above it.
#[derive(Clone, Debug, Default)]
pub struct Models {
    /// Names are in lower case.
    own: HashMap<String, Model>,
}

impl Models {
    /// The built-in table with these entries above it.
    ///
    /// ```
    /// use overlock_budget::{How, Model, Models};
    ///
    /// let mine = Model { window: 4096, ..Model::default() };
    /// let models = Models::with_own([("my-llama".to_owned(), mine)]);
    /// let found = models.find("ollama/my-llama:latest");
    /// assert_eq!((found.model.window, found.how), (4096, How::Alias));
    /// ```
    pub fn with_own(entries: impl IntoIterator<Item = (String, Model)>) -> Self {
        let lower = |(name, mut model): (String, Model)| {
            // Nobody assumes another window than this.
            if model.window != DEFAULT_WINDOW && model.window_source == WindowSource::Assumed {
                model.window_source = WindowSource::Set;
            }
            (name.to_ascii_lowercase(), model)
        };
        Self {
            own: entries.into_iter().map(lower).collect(),
        }
    }

    /// What is known about a model, and how it was found.
    ///
    /// The closest name wins, and of two entries with the same name the caller's own. Upper and
    /// lower case are the same.
    ///
    /// ```
    /// use overlock_budget::{How, Models};
    ///
    /// let models = Models::default();
    /// let found = models.find("openai/gpt-4o");
    /// assert_eq!((found.model.window, found.how), (128_000, How::Alias));
    /// // A beginning is made of whole parts: this has nothing to do with `gpt-4`.
    /// assert_eq!(models.find("gpt-4of").how, How::Default);
    /// ```
    pub fn find(&self, name: &str) -> Found {
        let name = name.trim().to_ascii_lowercase();
        if let Some(found) = self.get(&name, How::Exact) {
            return found;
        }
        // Nothing longer than the longest entry can be one, which keeps a huge name cheap.
        let longest = self.longest();
        for tail in tails(&name, longest + name::LONGEST_ENDING) {
            for form in plain_forms(tail) {
                if let Some(found) = self.get(form, How::Alias) {
                    return found;
                }
            }
            let entry = self.spelled_like(tail);
            if let Some(found) = entry.and_then(|entry| self.get(entry, How::Alias)) {
                return found;
            }
        }
        let bare = bare(&name);
        for beginning in beginnings(bare).filter(|beginning| beginning.len() <= longest) {
            let end = name.len() - bare.len() + beginning.len();
            for tail in tails(&name[..end], longest) {
                if let Some(found) = self.get(tail, How::Prefix) {
                    return found;
                }
            }
        }
        Found {
            entry: None,
            model: Model::default(),
            how: How::Default,
        }
    }

    /// What the tokens of a model cost, if that was said of this very model: what one costs says
    /// nothing about another whose name begins alike.
    pub fn prices(&self, name: &str) -> Option<Prices> {
        let found = self.find(name);
        let is_this = matches!(found.how, How::Exact | How::Alias);
        found.model.prices.filter(|_| is_this)
    }

    /// Every entry with its name, in the order of the names.
    pub fn all(&self) -> BTreeMap<String, Model> {
        let built_in = table::names().filter_map(|name| Some((name.to_owned(), table::get(name)?)));
        let own = self
            .own
            .iter()
            .map(|(name, model)| (name.clone(), model.clone()));
        built_in.chain(own).collect()
    }

    fn get(&self, name: &str, how: How) -> Option<Found> {
        let model = self.own.get(name).cloned().or_else(|| table::get(name))?;
        Some(Found {
            entry: Some(name.to_owned()),
            model,
            how,
        })
    }

    /// The entry that is another spelling of a name, such as `gpt-5.1` for `gpt-5-1`.
    fn spelled_like(&self, name: &str) -> Option<&str> {
        let own = self.own.keys().map(String::as_str);
        let wanted = name::spelling(name);
        let own = own.filter(|own| name::spelling(own) == wanted).min();
        own.or_else(|| table::spelled_like(name))
    }

    fn longest(&self) -> usize {
        let own = self.own.keys().map(String::len).max().unwrap_or(0);
        own.max(table::longest())
    }
}
