//! The upstream: its address, API key and capabilities.

use std::env;

use clap::Args;
use overlock_budget::Found;
use overlock_llm::{
    Anthropic, Backend, BackendError, Discover, Http, OpenAi, Product, Retrying, Server,
    ServerInfo, bearer_headers,
};

use crate::config::{Api, Config};
use crate::ending::Failure;

#[derive(Args, Debug)]
pub(crate) struct UpstreamSource {
    /// The base URL of the upstream, including /v1 [default with --resume: the recorded one; else
    /// `upstream.url` of the configuration]
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
    /// The environment variable with the API key [default: `upstream.key_variable`]
    #[arg(long, value_name = "NAME")]
    pub(crate) key_variable: Option<String>,
}

/// The URL of an upstream, and the variable with its key.
pub(crate) struct Address {
    url: String,
    key_variable: Option<String>,
}

/// The given address, else the recorded one, else the configured one.
pub(crate) fn address(
    source: &UpstreamSource,
    config: &Config,
    recorded: Option<&str>,
) -> Result<Address, Failure> {
    let settings = &config.upstream;
    let given = source.upstream.as_deref();
    let Some(url) = given.or(recorded).or(settings.url.as_deref()) else {
        return Err(Failure::Usage {
            message: "no upstream configured".into(),
            hint: "give --upstream URL, such as http://127.0.0.1:11434/v1, or set `upstream.url` \
                   in overlock.toml"
                .into(),
        });
    };
    // The configured key belongs to the configured server. A recorded address must not send it to
    // another one.
    let is_trusted = given.is_some() || settings.url.as_deref() == Some(url);
    let configured = settings.key_variable.as_ref().filter(|_| is_trusted);
    Ok(Address {
        url: url.to_owned(),
        key_variable: source.key_variable.as_ref().or(configured).cloned(),
    })
}

impl Address {
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn key(&self) -> Result<Option<String>, Failure> {
        key(self.key_variable.as_deref(), &self.url)
    }

    /// The URL, unless it may contain a secret.
    pub(crate) fn recordable(&self) -> Option<String> {
        let may_hold_secret = self.url.contains(['@', '?', '#']);
        (!may_hold_secret).then(|| self.url.clone())
    }

    /// What may be wrong with the URL, if the server answers with 404 or 405.
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
                return Some(format!("give the URL without `{end}`: --upstream {base}"));
            }
        }
        let host = url.split_once("://").map_or(url, |(_, host)| host);
        (!host.contains('/'))
            .then(|| format!("most base URLs end with a version: --upstream {url}/v1"))
    }
}

/// A model on a server.
pub(crate) struct Connection {
    pub(crate) found: Found,
    pub(crate) can_prefill: bool,
    /// The identity of the server, including its version.
    pub(crate) server: String,
    /// Retries temporary failures.
    pub(crate) backend: Box<dyn Backend>,
}

impl Connection {
    /// Discovers what the server is and what its model supports.
    pub(crate) fn open(address: &Address, config: &Config, model: &str) -> Result<Self, Failure> {
        let found = config.models().find(model);
        let settings = &config.upstream;
        let url = address.url.as_str();
        let key = address.key()?;
        let failed = |source: BackendError| Failure::Upstream { source };
        let http = Http::new(settings.timeouts()).map_err(failed)?;
        let policy = settings.retry_policy();
        if settings.api == Api::Responses {
            return Err(Failure::Usage {
                message: "`upstream.api` is `responses`, which only the gateway speaks".into(),
                hint: "set `upstream.api` to `chat-completions`".into(),
            });
        }
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

/// What the server reports about itself; the default if it cannot be reached.
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
    // A separate HTTP client, because its connections belong to this runtime.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime
        .block_on(server.discover(&options))
        .unwrap_or_default())
}

/// The key for a server. The usual variable of a provider is read for that provider only, and must
/// have a key.
pub(crate) fn key(variable: Option<&str>, url: &str) -> Result<Option<String>, Failure> {
    match variable.or(usual_variable(url)) {
        None => Ok(None),
        Some(name) => required(name).map(Some),
    }
}

/// The key for a server whose clients may send their own: only a given variable must have a key.
pub(crate) fn own_key(variable: Option<&str>, url: &str) -> Result<Option<String>, Failure> {
    match variable {
        Some(name) => required(name).map(Some),
        None => Ok(usual_variable(url).and_then(non_empty_variable)),
    }
}

/// The trimmed value of an environment variable, unless it is empty.
pub(crate) fn non_empty_variable(variable: &str) -> Option<String> {
    let value = env::var(variable).ok()?;
    let value = value.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

fn required(variable: &str) -> Result<String, Failure> {
    non_empty_variable(variable).ok_or_else(|| Failure::Usage {
        message: format!("the environment variable `{variable}` is empty or not set"),
        hint: format!("set it with `export {variable}=…`, or use another one with --key-variable"),
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
