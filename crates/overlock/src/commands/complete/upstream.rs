//! Who is asked.

use overlock_budget::Found;
use overlock_model::{Anthropic, Backend, BackendError, Http, OpenAi, PrefillStyle, Retrying};

use super::Complete;
use crate::config::{Config, Prefill, Speech};
use crate::ending::Failure;
use crate::upstream::Named;

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
    let named = Named::find(
        complete.upstream.as_deref(),
        complete.key_variable.as_deref(),
        config,
    );
    let Some(named) = named else {
        return Err(Failure::Usage {
            message: "no upstream is named: who is to be asked?".into(),
            hint: "give --upstream URL, such as http://127.0.0.1:11434/v1, or set `upstream.url` \
                   in overlock.toml"
                .into(),
        });
    };
    let (url, key) = (named.url.as_str(), named.key()?);
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
