//! Detects model servers and how their answers can be continued.

use overlock_llm::{Discover, Discovery, Http, Server, ServerInfo, Timeouts, bearer_headers};
use pyo3::prelude::*;

use crate::error::Raise;
use crate::result::make;

/// Detects a server with OpenAI's chat completions: its product and version, the context size of
/// its running model, and whether answers can be prefilled.
///
/// It makes the same requests as `overlock serve` and `overlock complete`. They generate no tokens,
/// except that with `probe` a local server that does not state its abilities gets one request of 8
/// tokens, which shows whether it continues a prefilled answer.
///
/// `model` selects the model if the server has several. Well-known providers get no requests:
///
///     >>> import overlock
///     >>> info = overlock.discover("https://api.mistral.ai/v1")
///     >>> info.product, info.prefill, info.keeps_format
///     ('Mistral', 'prefix', False)
#[pyfunction]
#[pyo3(signature = (base_url, *, model = None, api_key = None, probe = true))]
pub(crate) fn discover(
    py: Python<'_>,
    base_url: String,
    model: Option<String>,
    api_key: Option<String>,
    probe: bool,
) -> PyResult<Bound<'_, PyAny>> {
    let discovery = if probe {
        Discovery::Probe
    } else {
        Discovery::Ask
    };
    let asked = py.detach(|| ask(&base_url, api_key.as_deref(), discovery));
    let info = asked.map_err(|raise| raise.into_error(py))?;
    let only = match info.models.as_slice() {
        [only] => Some(only.id.clone()),
        _ => None,
    };
    let window = model.or(only).and_then(|model| info.window(&model));
    let findings: Vec<String> = info.findings.iter().map(ToString::to_string).collect();
    let fields = (
        info.product.name(),
        info.version,
        window,
        info.prefill.style.name(),
        info.prefill.keeps_format,
        findings,
    );
    make(py, "ServerInfo", fields)
}

fn ask(base: &str, key: Option<&str>, discovery: Discovery) -> Result<ServerInfo, Raise> {
    let failed = |error: &dyn ToString| Raise::bad_request("no-server", error.to_string());
    let http = Http::new(Timeouts::default()).map_err(|error| failed(&error))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| failed(&error))?;
    let headers = bearer_headers(key);
    let server = Server::new(&http, base, &headers);
    let options = Discover {
        discovery,
        ..Discover::default()
    };
    let asked = runtime.block_on(server.discover(&options));
    asked.map_err(|error| failed(&error))
}
