//! Who is asked.

use std::env;

use overlock_budget::Found;
use overlock_model::{Anthropic, Backend, BackendError, Http, OpenAi, PrefillStyle, Retrying};

use super::Complete;
use crate::config::{Config, Prefill, Speech};
use crate::ending::Failure;

/// Whether the answer of a model can be begun for it, as far as is known.
pub(super) fn can_prefill(config: &Config, found: &Found) -> bool {
    match config.upstream.speech {
        Speech::Anthropic => found.model.prefill,
        Speech::OpenAi => config.upstream.prefill != Prefill::None,
    }
}

/// The server that is named, asked again when it fails for a reason that may pass.
pub(super) fn backend(
    complete: &Complete,
    config: &Config,
    found: &Found,
) -> Result<Box<dyn Backend>, Failure> {
    let settings = &config.upstream;
    let Some(url) = complete.upstream.as_deref().or(settings.url.as_deref()) else {
        return Err(Failure::Usage {
            message: "no upstream is named: who is to be asked?".into(),
            hint: "give --upstream URL, such as http://127.0.0.1:11434/v1, or set `upstream.url` \
                   in overlock.toml"
                .into(),
        });
    };
    let variable = complete
        .key_variable
        .as_deref()
        .or(settings.key_variable.as_deref());
    let key = key(variable, url)?;
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

/// The key for a server. A provider's usual variable is read for that provider alone.
fn key(variable: Option<&str>, url: &str) -> Result<Option<String>, Failure> {
    let usual = [
        ("https://api.openai.com/", "OPENAI_API_KEY"),
        ("https://api.anthropic.com/", "ANTHROPIC_API_KEY"),
    ];
    let usual = usual.iter().find(|(host, _)| url.starts_with(host));
    let Some(name) = variable.or(usual.map(|(_, name)| *name)) else {
        return Ok(None);
    };
    match env::var(name) {
        Ok(key) if !key.trim().is_empty() => Ok(Some(key)),
        _ => Err(Failure::Usage {
            message: format!("the environment variable `{name}` holds no key"),
            hint: format!("set it, as in `export {name}=…`, or name another with --key-variable"),
        }),
    }
}
