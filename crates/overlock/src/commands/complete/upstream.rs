//! Who is asked.

use overlock_budget::Found;
use overlock_model::{Anthropic, Backend, BackendError, Http, OpenAi, PrefillStyle, Retrying};

use super::Complete;
use crate::config::{Config, Prefill, Speech};
use crate::ending::Failure;
use crate::upstream;

/// Whether the answer of a model can be begun for it, as far as is known.
pub(super) fn can_prefill(config: &Config, found: &Found) -> bool {
    match config.upstream.speech {
        Speech::Anthropic => found.model.prefill,
        Speech::OpenAi => config.upstream.prefill != Prefill::None,
    }
}

/// Where a model is, and where the key for it is.
pub(super) struct Address {
    url: String,
    key_variable: Option<String>,
}

/// The address that is given, else the one that was recorded, else the configured one.
pub(super) fn address(
    complete: &Complete,
    config: &Config,
    recorded: Option<&str>,
) -> Result<Address, Failure> {
    let settings = &config.upstream;
    let given = complete.upstream.as_deref();
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
        key_variable: complete.key_variable.as_ref().or(configured).cloned(),
    })
}

impl Address {
    /// What may be kept of it: nothing, if there may be a secret in it.
    pub(super) fn recordable(&self) -> Option<String> {
        let may_hold_secret = self.url.contains(['@', '?', '#']);
        (!may_hold_secret).then(|| self.url.clone())
    }

    /// What may be wrong with it, if a server does not know what it is asked for.
    pub(super) fn hint(&self, error: &BackendError) -> Option<String> {
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

/// The server at an address, asked again when it fails for a reason that may pass.
pub(super) fn backend(
    address: &Address,
    config: &Config,
    found: &Found,
) -> Result<Box<dyn Backend>, Failure> {
    let settings = &config.upstream;
    let url = address.url.as_str();
    let key = upstream::key(address.key_variable.as_deref(), url)?;
    let failed = |source: BackendError| Failure::Upstream { source };
    let http = Http::new(settings.timeouts()).map_err(failed)?;
    let policy = settings.retry_policy();
    Ok(match settings.speech {
        Speech::OpenAi => {
            let style = PrefillStyle::from(settings.prefill);
            let server = OpenAi::new(http, url, key.as_deref(), style).map_err(failed)?;
            Box::new(Retrying::new(server, policy))
        }
        Speech::Anthropic => {
            let key = key.unwrap_or_default();
            let server = Anthropic::new(http, url, &key, found.model.prefill).map_err(failed)?;
            Box::new(Retrying::new(server, policy))
        }
    })
}
