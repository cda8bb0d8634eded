//! The limits of models by name.
//!
//! There is one table, `models.toml`, and entries of the caller override it. A name is looked up
//! unchanged, then without host, region, release and quantization, then by its beginning. The result says which of these
//! matched, because a guessed window is less reliable than a known one.

mod name;
mod price;
mod table;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

pub use price::{Cost, Price, PriceError, Prices};
pub use table::TableError;

use name::{bare, beginnings, plain_forms, tails};

/// The window of an unknown model.
pub const DEFAULT_WINDOW: u64 = 8192;

/// The limits and capabilities of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// The tokens of its context window.
    pub window: u64,
    /// The source of the window.
    pub window_source: WindowSource,
    /// Whether the answer takes its room from the window.
    pub sharing: Sharing,
    /// The maximum tokens of an answer; without it, the window is the limit.
    pub answer_cap: Option<u64>,
    /// The encoding, or the family whose tokenizer file is needed; `None` if not public or unknown.
    pub tokenizer: Option<Cow<'static, str>>,
    /// Whether the caller may begin the answer.
    pub prefill: bool,
    /// Whether it supports JSON mode.
    pub json: bool,
    /// Whether it supports tools.
    pub tools: bool,
    /// The largest window that another source states; the smaller one is kept.
    pub disputed: Option<u64>,
    /// The prices of its tokens, if the user has set them.
    pub prices: Option<Prices>,
}

impl Default for Model {
    /// Cautious values for an unknown model.
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

/// The source of the size of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowSource {
    /// The table knows the model.
    Known,
    /// A model with a similar name is in the table.
    Alike,
    /// The user has set it.
    Set,
    /// The server reports it.
    Server,
    /// The model is unknown.
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

/// Whether the answer shares the window with the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Input and answer share the window.
    Shared,
    /// The window is for the input alone; the answer is limited by the answer cap.
    Separate,
}

/// How an entry was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// By the unchanged name.
    Exact,
    /// Without the host, the region, the date, the quantization or `:latest`, or in another spelling.
    Alias,
    /// By the longest beginning of the name that consists of complete parts.
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

/// The result of a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The name of the entry, in lower case; `None` if there was none.
    pub entry: Option<String>,
    /// The limits and capabilities.
    pub model: Model,
    /// How it was found.
    pub how: How,
}

impl Found {
    /// The source of the size of the window.
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

    /// The same model on a server with this window, unless the user has set one.
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

/// All known models: the built-in table, and entries of the caller that override it.
#[derive(Clone, Debug, Default)]
pub struct Models {
    /// Names are in lower case.
    own: HashMap<String, Model>,
}

impl Models {
    /// The built-in table, overridden by these entries.
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
            // An assumed window always has the default size.
            if model.window != DEFAULT_WINDOW && model.window_source == WindowSource::Assumed {
                model.window_source = WindowSource::Set;
            }
            (name.to_ascii_lowercase(), model)
        };
        Self {
            own: entries.into_iter().map(lower).collect(),
        }
    }

    /// Parses a newer table in the form of `models.toml`, for [`Models::with_own`].
    ///
    /// ```
    /// use overlock_budget::Models;
    ///
    /// let newer = Models::parse_table("\"gpt-7\" = { window = 2000000, tools = true }")?;
    /// assert_eq!(Models::with_own(newer).find("openai/gpt-7").model.window, 2_000_000);
    /// # Ok::<(), overlock_budget::TableError>(())
    /// ```
    pub fn parse_table(text: &str) -> Result<Vec<(String, Model)>, TableError> {
        table::parse(text)
    }

    /// Looks up a model.
    ///
    /// The closest name wins, and of two entries with the same name that of the caller. The lookup is
    /// case-insensitive.
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
        // No longer name can match, which keeps the lookup of a huge name cheap.
        let longest = self.longest();
        for tail in tails(&name, longest + name::LONGEST_DECORATION) {
            let forms = plain_forms(tail);
            let alike = forms.iter().filter_map(|form| self.spelled_like(form));
            let mut entries = forms.iter().copied().chain(alike);
            if let Some(found) = entries.find_map(|entry| self.get(entry, How::Alias)) {
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

    /// The prices of a model, if they are set for exactly this model: a model with a similar name may
    /// have other prices.
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
