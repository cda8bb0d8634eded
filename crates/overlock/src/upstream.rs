//! Who is asked: where a server is, and the key that it is shown.

use std::env;

use clap::Args;
use overlock_budget::Found;
use overlock_llm::{
    Anthropic, Backend, BackendError, Discover, Http, OpenAi, Product, Retrying, Server,
    ServerInfo, bearer_headers,
};

use crate::config::{Api, Config};
use crate::ending::Failure;

/// The server that is asked.
#[derive(Args, Debug)]
pub(crate) struct UpstreamSource {
    /// Where the model is, up to the version [default: where it was, for --resume; else
    /// `upstream.url` of the configuration]
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
    /// The environment variable that holds the key [default: `upstream.key_variable`]
    #[arg(long, value_name = "NAME")]
    pub(crate) key_variable: Option<String>,
}

/// Where a model is, and where the key for it is.
pub(crate) struct Address {
    url: String,
    key_variable: Option<String>,
}

/// The address that is given, else the one that was recorded, else the configured one.
pub(crate) fn address(
    source: &UpstreamSource,
    config: &Config,
    recorded: Option<&str>,
) -> Result<Address, Failure> {
    let settings = &config.upstream;
    let given = source.upstream.as_deref();
    let Some(url) = given.or(recorded).or(settings.url.as_deref()) else {
        return Err(Failure::Usage {
            message: "no upstream is named: who is to be asked?".into(),
            hint: "give --upstream URL, such as http://127.0.0.1:11434/v1, or set `upstream.url` \
                   in overlock.toml"
                .into(),
        });
    };
    // The configured key belongs to the configured server: a record alone must not send it
    // elsewhere.
    let is_trusted = given.is_some() || settings.url.as_deref() == Some(url);
    let configured = settings.key_variable.as_ref().filter(|_| is_trusted);
    Ok(Address {
        url: url.to_owned(),
        key_variable: source.key_variable.as_ref().or(configured).cloned(),
    })
}

impl Address {
    /// Where it is.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The key that it is shown.
    pub(crate) fn key(&self) -> Result<Option<String>, Failure> {
        key(self.key_variable.as_deref(), &self.url)
    }

    /// What may be kept of it: nothing, if there may be a secret in it.
    pub(crate) fn recordable(&self) -> Option<String> {
        let may_hold_secret = self.url.contains(['@', '?', '#']);
        (!may_hold_secret).then(|| self.url.clone())
    }

    /// What may be wrong with it, if a server does not know what it is asked for.
    pub(crate) fn hint(&self, error: &BackendError) -> Option<String> {
        let BackendError::Status {
            status: 404 | 405, ..
        } = error
        else {
            return None;
        };
        let url = self.url.trim().trim_end_matches('/');
        for end in ["/chat/completions", "/completions", "/messages"] {
            if let Some(base) = url.strip_suffix(end) {
                return Some(format!(
                    "the address ends before `{end}`: --upstream {base}"
                ));
            }
        }
        let host = url.split_once("://").map_or(url, |(_, host)| host);
        (!host.contains('/'))
            .then(|| format!("most servers have their models below a version: --upstream {url}/v1"))
    }
}

/// A model on a server, with what the server says about itself.
pub(crate) struct Connection {
    pub(crate) found: Found,
    /// Whether the answer of the model can be begun for it.
    pub(crate) can_prefill: bool,
    /// What the server is known by, in this version.
    pub(crate) server: String,
    /// Asks it again when it fails for a reason that may pass.
    pub(crate) backend: Box<dyn Backend>,
}

impl Connection {
    /// Finds out what the server at an address is, and how its model can be asked.
    pub(crate) fn open(address: &Address, config: &Config, model: &str) -> Result<Self, Failure> {
        let found = config.models().find(model);
        let settings = &config.upstream;
        let url = address.url.as_str();
        let key = address.key()?;
        let failed = |source: BackendError| Failure::Upstream { source };
        let http = Http::new(settings.timeouts()).map_err(failed)?;
        let policy = settings.retry_policy();
        if settings.api == Api::Messages {
            let can_prefill = found.model.prefill;
            let key = key.unwrap_or_default();
            let server = Anthropic::new(http, url, &key, can_prefill).map_err(failed)?;
            let info = ServerInfo {
                product: Product::Anthropic,
                ..ServerInfo::default()
            };
            return Ok(Self {
                found,
                can_prefill,
                server: info.identity(url),
                backend: Box::new(Retrying::new(server, policy)),
            });
        }
        let info = discover(url, key.as_deref(), config)?;
        let server = OpenAi::new(http, url, key.as_deref(), info.prefill).map_err(failed)?;
        Ok(Self {
            found: match info.window(model) {
                Some(window) => found.served_with(window),
                None => found,
            },
            can_prefill: info.prefill.is_possible(),
            server: info.identity(url),
            backend: Box::new(Retrying::new(server, policy)),
        })
    }
}

/// What a server says about itself: nothing, if it cannot be reached now.
fn discover(url: &str, key: Option<&str>, config: &Config) -> Result<ServerInfo, Failure> {
    let settings = &config.upstream;
    let http = Http::new(settings.timeouts()).map_err(|source| Failure::Upstream { source })?;
    let headers = bearer_headers(key);
    let server = Server::new(&http, url, &headers);
    let options = Discover {
        prefill: settings.prefill.style(),
        discovery: settings.discovery,
        before: None,
    };
    // Connections belong to the runtime that made them, so that this has a client of its own.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime
        .block_on(server.discover(&options))
        .unwrap_or_default())
}

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
