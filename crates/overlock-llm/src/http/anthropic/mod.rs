//! A client for Anthropic's messages API.

mod request;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::address::Endpoint;
use super::{Http, OpenAi};
use crate::backend::{Backend, BackendError, Call, Events};
use crate::wire::Protocol;

/// The version of the API.
const VERSION: &str = "2023-06-01";

/// A server at a base URL such as `https://api.anthropic.com/v1`.
///
/// Calls are translated: system messages become the system prompt, images become Anthropic's, and a
/// JSON Schema in `response_format` becomes an output format. There is no plain JSON mode, so
/// `json_object` is dropped: the document is found in the answer either way. Tools, audio and files
/// are rejected before anything is sent.
pub struct Anthropic {
    server: OpenAi,
    can_prefill: bool,
}

impl Anthropic {
    /// The server at a base URL. Newer models reject prefills: `can_prefill` says whether this one
    /// accepts them.
    pub fn new(http: Http, base: &str, key: &str, can_prefill: bool) -> Result<Self, BackendError> {
        let headers = [
            ("x-api-key", key.trim().to_owned()),
            ("anthropic-version", VERSION.to_owned()),
        ];
        let protocol = Protocol::Messages;
        let endpoint = Endpoint::new(base, protocol.path(), &headers, Some(key))?;
        Ok(Self {
            server: OpenAi::at(protocol, http, endpoint),
            can_prefill,
        })
    }

    async fn ask(&self, call: Call) -> Result<Events<'static>, BackendError> {
        let unsupported = |what| BackendError::Unsupported {
            host: self.server.host().to_owned(),
            what,
        };
        if call.prefill.is_some() && !self.can_prefill {
            return Err(unsupported("a prefilled answer".to_owned()));
        }
        let request = request::translate(call).map_err(unsupported)?;
        let prefill = None;
        self.server.ask(Call { request, prefill }).await
    }
}

impl Backend for Anthropic {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Events<'_>, BackendError>> {
        async { self.ask(call).await }.boxed()
    }
}
