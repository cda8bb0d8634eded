//! The configuration: defaults, overridden by `overlock.toml`, environment variables and flags.
//!
//! The commands see only the result; errors name the source of a value. Every setting is declared
//! once, in [`settings`]; the file, the environment and the commented example follow from that list.

mod environment;
mod error;
mod file;
mod keys;
mod run;
mod serve;
mod settings;

#[cfg(test)]
mod example;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use overlock_budget::{Model, Models, PlanOptions, Price, Prices, Sharing, Trim, WindowSource};
use overlock_runs::Pricing;

pub(crate) use error::ConfigError;
pub(crate) use run::{
    Api, CompleteSettings, ProgressSetting, StoreSettings, StrategySetting, UpstreamSettings,
};
pub(crate) use serve::{Log, ServeSettings};

use crate::counter::TemplateFiles;
use crate::output::Notes;

const FILE_NAME: &str = "overlock.toml";

/// What can be done with a conversation that is too long.
pub(crate) const TRIMS: [Trim; 3] = [Trim::Off, Trim::Oldest, Trim::Summary];

/// All settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Config {
    pub(crate) budget: BudgetSettings,
    pub(crate) upstream: UpstreamSettings,
    pub(crate) complete: CompleteSettings,
    pub(crate) store: StoreSettings,
    pub(crate) serve: ServeSettings,
    /// The entries of a table that `overlock models --update` has stored.
    updated_models: Vec<(String, Model)>,
    /// The user's own models, by their name in lower case.
    models: BTreeMap<String, OwnModel>,
    /// The tokenizer file of each family that has one, by its name in lower case.
    tokenizers: BTreeMap<String, PathBuf>,
}

/// How windows are divided.
#[derive(Clone, Debug, Default)]
pub(crate) struct BudgetSettings {
    /// The default model.
    pub(crate) model: Option<String>,
    /// The options for all models, without the limits of a model.
    plan: PlanOptions,
}

impl BudgetSettings {
    pub(crate) fn plan(&self) -> &PlanOptions {
        &self.plan
    }

    /// The options with the limits of this model.
    pub(crate) fn plan_options(&self, model: &Model) -> PlanOptions {
        self.plan.clone().of_model(model)
    }
}

/// A tokenizer that is not built in.
pub(crate) enum TokenizerSource<'a> {
    File(&'a Path),
    /// The file of this family is not known.
    Family,
}

/// A configured model; settings that are `None` keep the value of the known model.
#[derive(Clone, Debug, Default)]
struct OwnModel {
    window: Option<u64>,
    shared: Option<bool>,
    answer_cap: Option<u64>,
    tokenizer: Option<String>,
    tokenizer_config: Option<PathBuf>,
    chat_template: Option<PathBuf>,
    prefill: Option<bool>,
    json: Option<bool>,
    tools: Option<bool>,
    input_price: Option<Price>,
    output_price: Option<Price>,
    cached_input_price: Option<Price>,
}

impl Config {
    /// All known models, overridden by the configured ones.
    pub(crate) fn models(&self) -> Models {
        let table = Models::with_own(self.updated_models.iter().cloned());
        let own = self.models.iter().map(|(name, own)| {
            let found = table.find(name);
            let known = Model {
                window_source: found.window_source(),
                ..found.model
            };
            (name.clone(), own.over(known))
        });
        Models::with_own(self.updated_models.iter().cloned().chain(own))
    }

    pub(crate) fn pricing(&self) -> Pricing {
        Pricing::new(self.models(), &*self.serve.currency)
    }

    /// Looks up a tokenizer that is not built in.
    pub(crate) fn tokenizer<'a>(&'a self, name: &'a str) -> TokenizerSource<'a> {
        match self.tokenizers.get(&name.to_ascii_lowercase()) {
            Some(path) => TokenizerSource::File(path),
            None if file::is_path(name) => TokenizerSource::File(Path::new(name)),
            None => TokenizerSource::Family,
        }
    }

    /// The tokenizer files, by the names that models use.
    pub(crate) fn tokenizer_files(&self) -> BTreeMap<&str, &Path> {
        let families = self.tokenizers.iter();
        let families = families.map(|(name, path)| (name.as_str(), path.as_path()));
        let of_models = self.models.values().filter_map(|model| {
            let name = model.tokenizer.as_deref()?;
            file::is_path(name).then(|| (name, Path::new(name)))
        });
        families.chain(of_models).collect()
    }

    /// The names of the configured models.
    pub(crate) fn own_models(&self) -> impl Iterator<Item = &str> {
        self.models.keys().map(String::as_str)
    }

    /// The configured windows, by model name.
    pub(crate) fn own_windows(&self) -> impl Iterator<Item = (&str, u64)> {
        let models = self.models.iter();
        models.filter_map(|(name, own)| Some((name.as_str(), own.window?)))
    }

    /// The configured files of a model's chat template.
    pub(crate) fn template_files(&self, entry: Option<&str>) -> TemplateFiles<'_> {
        let own = entry.and_then(|entry| self.models.get(entry));
        TemplateFiles {
            tokenizer_config: own.and_then(|own| own.tokenizer_config.as_deref()),
            chat_template: own.and_then(|own| own.chat_template.as_deref()),
        }
    }

    /// Whether this model is in the configuration.
    pub(crate) fn is_own_model(&self, entry: &str) -> bool {
        self.models.contains_key(entry)
    }
}

impl OwnModel {
    fn prices(&self) -> Option<Prices> {
        Some(Prices {
            input: self.input_price?,
            output: self.output_price?,
            cached_input: self.cached_input_price,
        })
    }

    fn over(&self, known: Model) -> Model {
        let sharing = match self.shared {
            None => known.sharing,
            Some(true) => Sharing::Shared,
            Some(false) => Sharing::Separate,
        };
        Model {
            window: self.window.unwrap_or(known.window),
            window_source: match self.window {
                Some(_) => WindowSource::Set,
                None => known.window_source,
            },
            sharing,
            answer_cap: self.answer_cap.or(known.answer_cap),
            tokenizer: self.tokenizer.clone().map(Into::into).or(known.tokenizer),
            prefill: self.prefill.unwrap_or(known.prefill),
            json: self.json.unwrap_or(known.json),
            tools: self.tools.unwrap_or(known.tools),
            // A configured window settles the question.
            disputed: known.disputed.filter(|_| self.window.is_none()),
            prices: self.prices(),
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct ConfigSource {
    /// The configuration file [default: `OVERLOCK_CONFIG`, else ./overlock.toml, else
    /// overlock/overlock.toml in the user's configuration folder]
    #[arg(long, value_name = "FILE", help_heading = "Configuration")]
    pub(crate) config: Option<PathBuf>,
}

impl ConfigSource {
    /// Reads the file, if there is one, and applies the environment variables.
    pub(crate) fn load(&self, notes: &mut Notes) -> Result<Config, ConfigError> {
        let mut config = match self.path() {
            Some(path) => file::read(&path)?,
            None => Config::default(),
        };
        config.updated_models = updated_models()?;
        for unknown in environment::apply(&mut config, env::vars_os())? {
            notes.note(unknown);
        }
        Ok(config)
    }

    /// The given file, which must exist; else the first default file that exists.
    fn path(&self) -> Option<PathBuf> {
        let variable = env::var_os("OVERLOCK_CONFIG").filter(|path| !path.is_empty());
        self.config
            .clone()
            .or_else(|| variable.map(PathBuf::from))
            .or_else(|| {
                let here = Some(PathBuf::from(FILE_NAME));
                let users = user_folder(["XDG_CONFIG_HOME", "APPDATA"], ".config");
                let users = users.map(|folder| folder.join("overlock").join(FILE_NAME));
                [here, users]
                    .into_iter()
                    .flatten()
                    .find(|path| path.exists())
            })
    }
}

/// The table of models that `overlock models --update` writes.
pub(crate) fn models_file() -> Option<PathBuf> {
    let folder = user_folder(["XDG_DATA_HOME", "LOCALAPPDATA"], ".local/share");
    folder.map(|folder| folder.join("overlock/models.toml"))
}

/// The entries of that table, if there is one.
fn updated_models() -> Result<Vec<(String, Model)>, ConfigError> {
    let Some(path) = models_file().filter(|path| path.exists()) else {
        return Ok(Vec::new());
    };
    match fs::read_to_string(&path) {
        Ok(text) => {
            Models::parse_table(&text).map_err(|source| ConfigError::Models { path, source })
        }
        Err(source) => Err(ConfigError::Unreadable { path, source }),
    }
}

/// The folder that one of the variables names, or this one in the user's home folder.
pub(crate) fn user_folder(variables: [&str; 2], in_home: &str) -> Option<PathBuf> {
    let folder = |name| {
        let path = env::var_os(name).filter(|path| !path.is_empty());
        path.map(PathBuf::from)
    };
    let named = variables.into_iter().find_map(folder);
    named.or_else(|| Some(folder("HOME")?.join(in_home)))
}
