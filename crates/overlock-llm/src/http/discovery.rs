//! Discovers a server's product, version, models and prefill support.
//!
//! A hosted provider is recognised by its host without a request. Other servers are asked for their
//! model list and for product-specific information; these requests generate no tokens. If prefill
//! support remains unknown, a local server can be probed with one short request.

use std::time::Duration;

use hyper::header::{AUTHORIZATION, HeaderValue};
use hyper::{HeaderMap, Uri};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::Http;
use super::address::{Endpoint, below};
use super::server::{Discovery, MOST_MODELS, Product, ServedModel, ServerInfo, WINDOW};
use crate::backend::{BackendError, Finding, Phase, Prefill, PrefillStyle};

/// The options of a discovery.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discover<'a> {
    /// The configured prefill style, if any.
    pub prefill: Option<PrefillStyle>,
    /// Which requests are allowed.
    pub discovery: Discovery,
    /// The result of an earlier discovery.
    pub before: Option<&'a ServerInfo>,
}

/// A server to discover.
pub struct Server<'a> {
    http: &'a Http,
    base: &'a str,
    headers: &'a HeaderMap,
}

/// The headers for a key, if there is one.
pub fn bearer_headers(key: Option<&str>) -> HeaderMap {
    let bearer = key.and_then(|key| HeaderValue::from_str(&format!("Bearer {key}")).ok());
    HeaderMap::from_iter(bearer.map(|bearer| (AUTHORIZATION, bearer)))
}

/// The timeout of a request for information.
const INFORMATION_TIMEOUT: Duration = Duration::from_secs(3);

/// The timeout of a probe: a local model may have to be loaded first.
const PROBE_TIMEOUT: Duration = Duration::from_mins(1);

/// The timeout for counting; the caller then counts itself.
const COUNT_TIMEOUT: Duration = Duration::from_secs(2);

/// Ollama's default context size.
const OLLAMA_WINDOW: u64 = 4096;

/// The question of a probe, by which the scripted server recognises it.
pub(crate) const PROBE_QUESTION: &str = "Count from 1 to 9 as a JSON array of integers.";

/// The prefill of a probe. No model starts an answer like this.
const PROBE_PREFILL: &str = "[1, 2, 3, 4, 5";

impl<'a> Server<'a> {
    /// The server at a base URL such as `http://127.0.0.1:8080/v1`, with headers for every request.
    pub fn new(http: &'a Http, base: &'a str, headers: &'a HeaderMap) -> Self {
        Self {
            http,
            base,
            headers,
        }
    }

    /// Whether it runs on this machine, where a probe costs nothing.
    fn is_local(&self) -> bool {
        let uri = self.base.trim().parse::<Uri>().ok();
        let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let address = host.parse::<std::net::IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// Discovers the server. An error means that it could not be reached.
    pub async fn discover(&self, options: &Discover<'_>) -> Result<ServerInfo, BackendError> {
        let mut info = match options.discovery {
            Discovery::Off => ServerInfo::default(),
            Discovery::Ask | Discovery::Probe => self.facts().await?,
        };
        if let Some(style) = options.prefill {
            info.set_prefill(Prefill::of_style(style), "`upstream.prefill`");
        }
        if !info.is_prefill_open {
            return Ok(info);
        }
        let before = options.before.filter(|before| before.is_same_server(&info));
        if let Some((before, finding)) = before.zip(before.and_then(ServerInfo::prefill_finding)) {
            info.set_prefill(before.prefill, &finding.source);
        } else if options.discovery == Discovery::Probe && self.is_local() {
            let model = info.models.first().map_or("", |model| model.id.as_str());
            let prefill = self.probe(model).await;
            info.set_prefill(prefill, "a probe of 8 tokens");
        }
        Ok(info)
    }

    /// The tokens of a chat request as counted by llama.cpp; an error if the server cannot count.
    /// Nothing is generated.
    pub async fn count_chat(&self, request: &Value) -> Result<u64, BackendError> {
        let root = self.root();
        let count = async {
            let templated = self.post(&root, "/apply-template", request).await?;
            let prompt = json!({
                "content": templated["prompt"],
                "add_special": true,
                "parse_special": true,
            });
            self.post(&root, "/tokenize", &prompt).await
        };
        let endpoint = self.endpoint(&root, "/tokenize")?;
        let counted = self.in_time(&endpoint, COUNT_TIMEOUT, count).await?;
        let tokens = counted["tokens"].as_array().map(Vec::len);
        let tokens = tokens.filter(|tokens| *tokens > 0);
        tokens
            .and_then(|tokens| u64::try_from(tokens).ok())
            .ok_or_else(|| BackendError::Malformed {
                host: endpoint.host().to_owned(),
                reason: "no `tokens`".to_owned(),
            })
    }

    async fn facts(&self) -> Result<ServerInfo, BackendError> {
        let uri = self.base.trim().parse::<Uri>().ok();
        let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
        let mut info = ServerInfo::default();
        if let Some(product) = Product::at_host(host) {
            info.product = product;
            info.add_finding("product", product.name(), host);
        } else {
            self.read_models(&mut info).await?;
            match info.product {
                Product::LlamaCpp => self.read_llama_cpp(&mut info).await,
                Product::Ollama => self.read_ollama(&mut info).await,
                Product::LmStudio => self.read_lm_studio(&mut info).await,
                Product::Vllm => self.read_version(&mut info, "/version").await,
                Product::Sglang => self.read_version(&mut info, "/server_info").await,
                _ => {}
            }
        }
        for model in &info.models {
            if let Some(window) = model.window {
                info.findings.push(Finding {
                    subject: WINDOW,
                    value: format!("{window} tokens for `{}`", model.id),
                    source: model.window_source.to_owned(),
                });
            }
        }
        match info.product.prefill() {
            Some(prefill) => info.set_prefill(prefill, info.product.name()),
            None => info.is_prefill_open = true,
        }
        Ok(info)
    }

    /// Sends one request with a prefill and a schema, and checks whether the answer continues both.
    async fn probe(&self, model: &str) -> Prefill {
        let style = PrefillStyle::LastMessage;
        let continues = |text: &str| {
            let text = text.strip_prefix(PROBE_PREFILL).unwrap_or(text);
            let rest = text.trim_start().strip_prefix(',').map(str::trim_start);
            rest.is_some_and(|rest| rest.starts_with('6'))
        };
        let schema = json!({ "type": "array", "items": { "type": "integer" } });
        let request = json!({
            "model": model,
            "messages": [
                { "role": "user", "content": PROBE_QUESTION },
                { "role": "assistant", "content": PROBE_PREFILL },
            ],
            "response_format": {
                "type": "json_schema",
                "json_schema": { "name": "numbers", "strict": true, "schema": schema },
            },
            "max_tokens": 8,
            "temperature": 0,
        });
        let Ok(answer) = self.post(self.base, "/chat/completions", &request).await else {
            return Prefill::default();
        };
        let text = answer.pointer("/choices/0/message/content");
        if text.and_then(Value::as_str).is_some_and(continues) {
            return Prefill {
                style,
                keeps_format: true,
            };
        }
        Prefill::default()
    }

    async fn read_models(&self, info: &mut ServerInfo) -> Result<(), BackendError> {
        const SOURCE: &str = "GET /v1/models";
        let list = match self.get(self.base, "/models").await {
            Ok(list) => list,
            // The server is there but has no list.
            Err(BackendError::Status { .. } | BackendError::Malformed { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        let models = list["data"].as_array().map_or(&[][..], Vec::as_slice);
        let owner = models
            .iter()
            .find_map(|model| Product::owning(model["owned_by"].as_str()?));
        if let Some(product) = owner {
            info.product = product;
            info.add_finding("product", product.name(), SOURCE);
        }
        let models = models.iter().take(MOST_MODELS).filter_map(|model| {
            let window = model.pointer("/meta/n_ctx").or(model.get("max_model_len"));
            Some(ServedModel {
                id: model["id"].as_str()?.to_owned(),
                window: window.and_then(Value::as_u64),
                window_source: SOURCE,
            })
        });
        info.models = models.collect();
        Ok(())
    }

    async fn read_llama_cpp(&self, info: &mut ServerInfo) {
        const SOURCE: &str = "GET /props";
        let Ok(props) = self.get(&self.root(), "/props").await else {
            return;
        };
        if let Some(version) = props["build_info"].as_str() {
            info.version = Some(version.to_owned());
            info.add_finding("version", version, SOURCE);
        }
        // Parallel requests share the whole window; this is the share of one.
        let window = props.pointer("/default_generation_settings/n_ctx");
        if let (Some(window), [only]) = (window.and_then(Value::as_u64), &mut info.models[..]) {
            only.window = Some(window);
            only.window_source = SOURCE;
        }
    }

    async fn read_ollama(&self, info: &mut ServerInfo) {
        self.read_version(info, "/api/version").await;
        let running = self.get(&self.root(), "/api/ps").await.unwrap_or_default();
        let running = running["models"].as_array().map_or(&[][..], Vec::as_slice);
        for model in &mut info.models {
            let is_it = |other: &&Value| {
                let names = [&other["name"], &other["model"]];
                names.iter().any(|name| name.as_str() == Some(&model.id))
            };
            let running = running.iter().find(is_it);
            let window = running.and_then(|running| running["context_length"].as_u64());
            // Ollama truncates longer requests silently, so the fallback must be low.
            (model.window, model.window_source) = match window {
                Some(_) => (window, "GET /api/ps"),
                None => (Some(OLLAMA_WINDOW), "Ollama's default"),
            };
        }
    }

    async fn read_lm_studio(&self, info: &mut ServerInfo) {
        let Ok(list) = self.get(&self.root(), "/api/v0/models").await else {
            return;
        };
        let listed = list["data"].as_array().map_or(&[][..], Vec::as_slice);
        for model in &mut info.models {
            let is_it = |other: &&Value| other["id"].as_str() == Some(&model.id);
            let listed = listed.iter().find(is_it);
            let window = |name: &str| listed.and_then(|listed| listed[name].as_u64());
            model.window = window("loaded_context_length").or(window("max_context_length"));
            model.window_source = "GET /api/v0/models";
        }
    }

    async fn read_version(&self, info: &mut ServerInfo, path: &str) {
        let Ok(answer) = self.get(&self.root(), path).await else {
            return;
        };
        if let Some(version) = answer["version"].as_str() {
            info.version = Some(version.to_owned());
            info.add_finding("version", version, &format!("GET {path}"));
        }
    }

    /// The URL above `/v1`, where product-specific paths are.
    fn root(&self) -> String {
        let base = self.base.trim();
        let (path, query) = base.split_once('?').unwrap_or((base, ""));
        let path = path.trim_end_matches('/');
        let root = path.strip_suffix("/v1").unwrap_or(path);
        if query.is_empty() {
            return root.to_owned();
        }
        below(root, &format!("?{query}"))
    }

    async fn get(&self, base: &str, path: &str) -> Result<Value, BackendError> {
        let endpoint = self.endpoint(base, path)?;
        let answer = async {
            self.http
                .ask(&endpoint, Vec::new())
                .await?
                .read_json()
                .await
        };
        self.in_time(&endpoint, INFORMATION_TIMEOUT, answer).await
    }

    async fn post(&self, base: &str, path: &str, body: &Value) -> Result<Value, BackendError> {
        let endpoint = self.endpoint(base, path)?;
        let body = body.to_string().into_bytes();
        let answer = async { self.http.ask(&endpoint, body).await?.read_json().await };
        self.in_time(&endpoint, PROBE_TIMEOUT, answer).await
    }

    fn endpoint(&self, base: &str, path: &str) -> Result<Endpoint, BackendError> {
        let mut endpoint = Endpoint::new(base, path, &[], None)?;
        endpoint.add_headers(self.headers);
        Ok(endpoint)
    }

    async fn in_time(
        &self,
        endpoint: &Endpoint,
        wait: Duration,
        answer: impl Future<Output = Result<Value, BackendError>>,
    ) -> Result<Value, BackendError> {
        let late = |_| BackendError::TimedOut {
            host: endpoint.host().to_owned(),
            phase: Phase::FirstByte,
            after: wait,
        };
        timeout(wait, answer).await.map_err(late)?
    }
}
