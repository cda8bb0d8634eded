//! The properties of a server: product, version, models and prefill support.

use serde::Serialize;

use crate::backend::{Finding, Prefill, PrefillStyle};

/// The program or provider behind an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Product {
    /// `llama-server` of llama.cpp.
    #[serde(rename = "llama.cpp")]
    LlamaCpp,
    /// vLLM.
    Vllm,
    /// `SGLang`.
    Sglang,
    /// Ollama.
    Ollama,
    /// LM Studio.
    #[serde(rename = "lm-studio")]
    LmStudio,
    /// `OpenAI`.
    OpenAi,
    /// Anthropic.
    Anthropic,
    /// Mistral.
    Mistral,
    /// `DeepSeek`.
    DeepSeek,
    /// `OpenRouter`.
    OpenRouter,
    /// Not recognised.
    #[default]
    Unknown,
}

impl Product {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::LlamaCpp => "llama.cpp",
            Self::Vllm => "vLLM",
            Self::Sglang => "SGLang",
            Self::Ollama => "Ollama",
            Self::LmStudio => "LM Studio",
            Self::OpenAi => "OpenAI",
            Self::Anthropic => "Anthropic",
            Self::Mistral => "Mistral",
            Self::DeepSeek => "DeepSeek",
            Self::OpenRouter => "OpenRouter",
            Self::Unknown => "unknown",
        }
    }

    /// The provider at a well-known host.
    pub(super) fn at_host(host: &str) -> Option<Self> {
        const HOSTS: [(&str, Product); 6] = [
            ("api.openai.com", Product::OpenAi),
            ("openai.azure.com", Product::OpenAi),
            ("api.anthropic.com", Product::Anthropic),
            ("api.mistral.ai", Product::Mistral),
            ("api.deepseek.com", Product::DeepSeek),
            ("openrouter.ai", Product::OpenRouter),
        ];
        let is_at = |known: &str| {
            let sub = host.strip_suffix(known);
            sub.is_some_and(|sub| sub.is_empty() || sub.ends_with('.'))
        };
        HOSTS
            .into_iter()
            .find_map(|(known, product)| is_at(known).then_some(product))
    }

    /// The product whose model list has this owner.
    pub(super) fn owning(owner: &str) -> Option<Self> {
        Some(match owner {
            "llamacpp" => Self::LlamaCpp,
            "vllm" => Self::Vllm,
            "sglang" => Self::Sglang,
            "library" => Self::Ollama,
            "organization_owner" => Self::LmStudio,
            _ => return None,
        })
    }

    /// The prefill support of its models according to its documentation; `None` if it does not say.
    pub fn prefill(self) -> Option<Prefill> {
        let (style, keeps_format) = match self {
            // The grammar continues from the prefill.
            Self::LlamaCpp => (PrefillStyle::LastMessage, true),
            // The grammar applies to the generated text only, so it would start again.
            Self::Vllm | Self::Sglang => (PrefillStyle::ContinueFinalMessage, false),
            Self::Ollama => (PrefillStyle::LastMessage, false),
            Self::Mistral => (PrefillStyle::PrefixMessage, false),
            Self::OpenAi | Self::Anthropic | Self::DeepSeek | Self::OpenRouter => {
                (PrefillStyle::None, false)
            }
            Self::LmStudio | Self::Unknown => return None,
        };
        Some(Prefill {
            style,
            keeps_format,
        })
    }
}

/// The maximum of models that are read from a list.
pub(super) const MOST_MODELS: usize = 256;

/// Learnt windows of models with longer names are dropped.
const LONGEST_NAME: usize = 256;

/// The subject of findings about prefill support.
const PREFILL: &str = "prefill";

/// The subject of findings about context windows.
pub(super) const WINDOW: &str = "context size";

/// The source of learnt windows.
const REFUSED: &str = "a refused request";

/// The end of a finding about a model.
fn for_model(model: &str) -> String {
    format!(" for `{model}`")
}

/// A model of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServedModel {
    /// Its name in requests.
    pub id: String,
    /// Its current context window in tokens.
    pub window: Option<u64>,
    /// The source of the window.
    pub window_source: &'static str,
}

/// A window from the error of a request that was too large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearntWindow {
    /// The model name in the client's request.
    pub model: String,
    /// The window in tokens.
    pub window: u64,
}

/// The properties of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServerInfo {
    /// The product.
    pub product: Product,
    /// Its version, if known.
    pub version: Option<String>,
    /// The prefill support of its models.
    pub prefill: Prefill,
    /// Its models, if it lists them. A server with one model answers under any name.
    pub models: Vec<ServedModel>,
    /// The findings, with their sources.
    pub findings: Vec<Finding>,
    /// Whether prefill support is still unknown.
    #[serde(skip)]
    pub is_prefill_open: bool,
    /// Windows learnt from rejected requests.
    #[serde(skip)]
    pub learnt: Vec<LearntWindow>,
}

impl ServerInfo {
    /// The context window of a model.
    pub fn window(&self, model: &str) -> Option<u64> {
        self.served(model)?.window
    }

    /// The model that answers to a name: llama.cpp with one model accepts any name.
    pub fn served(&self, name: &str) -> Option<&ServedModel> {
        let named = self.models.iter().find(|served| served.id == name);
        let only = match &self.models[..] {
            [only] if self.product == Product::LlamaCpp => Some(only),
            _ => None,
        };
        named.or(only)
    }

    /// Identifies the server at a base URL in this version: the URL without credentials and query,
    /// the product and the version.
    ///
    /// ```
    /// use overlock_llm::ServerInfo;
    ///
    /// let base = "https://user:secret@example.org/v1/?key=secret";
    /// assert_eq!(ServerInfo::default().identity(base), "https://example.org/v1 unknown");
    /// ```
    pub fn identity(&self, base: &str) -> String {
        let base = base.trim();
        let base = base.split(['?', '#']).next().unwrap_or_default();
        let (scheme, rest) = base.split_once("://").unwrap_or(("http", base));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let host = authority.rsplit('@').next().unwrap_or_default();
        let address = format!("{scheme}://{host}/{path}");
        let version = self.version.as_deref().unwrap_or_default();
        let identity = format!(
            "{} {} {version}",
            address.trim_end_matches('/'),
            self.product.name()
        );
        identity.trim_end().to_owned()
    }

    /// The window of a model that was learnt from a rejected request.
    pub fn learnt_window(&self, model: &str) -> Option<u64> {
        let mut learnt = self.learnt.iter();
        Some(learnt.find(|learnt| learnt.model == model)?.window)
    }

    /// Remembers the window of a model while the server stays the same. Names come from clients, so
    /// their number is limited.
    pub fn learn(&mut self, learnt: LearntWindow) {
        if learnt.model.len() > LONGEST_NAME {
            return;
        }
        self.forget(&learnt.model);
        if self.learnt.len() >= MOST_MODELS {
            let oldest = self.learnt[0].model.clone();
            self.forget(&oldest);
        }
        let window = format!("{} tokens{}", learnt.window, for_model(&learnt.model));
        self.add_finding(WINDOW, window, REFUSED);
        self.learnt.push(learnt);
    }

    /// Forgets the window of a model.
    fn forget(&mut self, model: &str) {
        self.learnt.retain(|learnt| learnt.model != model);
        let for_model = for_model(model);
        self.findings
            .retain(|finding| !(finding.subject == WINDOW && finding.value.ends_with(&for_model)));
    }

    /// Copies the learnt windows if this is still the same server.
    pub fn learn_from(&mut self, before: &Self) {
        if self.is_same_server(before) {
            for learnt in &before.learnt {
                self.learn(learnt.clone());
            }
        }
    }

    /// Replaces the prefill support and its finding.
    pub(super) fn set_prefill(&mut self, prefill: Prefill, source: &str) {
        self.prefill = prefill;
        self.is_prefill_open = false;
        self.findings.retain(|finding| finding.subject != PREFILL);
        self.add_finding(PREFILL, prefill.to_string(), source);
    }

    /// The finding about prefill support.
    pub fn prefill_finding(&self) -> Option<&Finding> {
        self.findings.iter().find(|it| it.subject == PREFILL)
    }

    /// Whether this is the same server in the same version with the same models.
    pub(super) fn is_same_server(&self, other: &Self) -> bool {
        let known = |info: &Self| (info.product, info.version.clone(), info.models.clone());
        known(self) == known(other)
    }

    pub(super) fn add_finding(
        &mut self,
        subject: &'static str,
        value: impl Into<String>,
        source: &str,
    ) {
        self.findings.push(Finding {
            subject,
            value: value.into(),
            source: source.to_owned(),
        });
    }
}

/// Which requests discovery may make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Discovery {
    /// None.
    #[default]
    Off,
    /// Requests that generate no tokens.
    Ask,
    /// Also one request of 8 tokens to a local server whose prefill support is unknown.
    Probe,
}

impl Discovery {
    /// All values.
    pub const ALL: [Self; 3] = [Self::Off, Self::Ask, Self::Probe];

    /// The name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Ask => "ask",
            Self::Probe => "probe",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_the_latest_windows() {
        let mut info = ServerInfo::default();
        for number in 0..MOST_MODELS as u64 + 2 {
            info.learn(LearntWindow {
                model: format!("model-{number}"),
                window: 1000 + number,
            });
        }
        assert_eq!(info.learnt_window("model-1"), None);
        assert_eq!(info.learnt_window("model-2"), Some(1002));
        assert_eq!(info.learnt_window("model-257"), Some(1257));
        assert_eq!(info.findings.len(), MOST_MODELS);
    }
}
