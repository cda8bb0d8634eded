//! What is known of a server and of what it can do.

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
    /// A server that does not say what it is.
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

    /// The provider at a host that everybody knows.
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

    /// The server whose list of models names its owner so.
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

    /// How the answer of its models can be begun for them, as its documentation says; nothing if it
    /// does not say.
    pub fn prefill(self) -> Option<Prefill> {
        let (style, keeps_format) = match self {
            // The grammar goes on where the beginning stops.
            Self::LlamaCpp => (PrefillStyle::LastMessage, true),
            // The grammar applies to what is generated, and would begin again.
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

/// A list that is longer is no list of what one server runs.
pub(super) const MOST_MODELS: usize = 256;

/// What is learnt about a model is remembered if its name is no longer than this.
const LONGEST_NAME: usize = 256;

/// The subject of what is found about how an answer is begun.
const PREFILL: &str = "prefill";

/// The subject of what is found about the tokens that a model takes.
pub(super) const WINDOW: &str = "context size";

/// Where learnt windows come from.
const REFUSED: &str = "a refused request";

/// How the value of a finding about a model ends.
fn of_model(model: &str) -> String {
    format!(" for `{model}`")
}

/// A model that a server has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServedModel {
    /// The name by which it is asked.
    pub id: String,
    /// The tokens it takes as it is running now, answer included.
    pub window: Option<u64>,
    /// What says so.
    pub window_source: &'static str,
}

/// The window that a server named when it refused a request for its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearntWindow {
    /// The model by the name that the client asked for.
    pub model: String,
    /// The tokens it takes, answer included.
    pub window: u64,
}

/// What is known of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServerInfo {
    /// What it is.
    pub product: Product,
    /// Which version of it, if it says so.
    pub version: Option<String>,
    /// How the answer of its models can be begun for them.
    pub prefill: Prefill,
    /// Its models, if it lists them. A server with one model answers under any name.
    pub models: Vec<ServedModel>,
    /// All of this in words, with where it comes from.
    pub findings: Vec<Finding>,
    /// Whether nothing tells if an answer can be begun, so that a probe would.
    #[serde(skip)]
    pub is_prefill_open: bool,
    /// What refused requests have taught about models.
    #[serde(skip)]
    pub learnt: Vec<LearntWindow>,
}

impl ServerInfo {
    /// The tokens that a model takes here.
    pub fn window(&self, model: &str) -> Option<u64> {
        self.served(model)?.window
    }

    /// The model that answers to a name: the only model, whatever it is called.
    pub fn served(&self, name: &str) -> Option<&ServedModel> {
        let named = self.models.iter().find(|served| served.id == name);
        let only = match &self.models[..] {
            [only] if self.product == Product::LlamaCpp => Some(only),
            _ => None,
        };
        named.or(only)
    }

    /// What the server at a base address is known by, in this version: its address without
    /// credentials and query, its product, and its version.
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

    /// The window of a model that a refused request has taught.
    pub fn learnt_window(&self, model: &str) -> Option<u64> {
        let mut learnt = self.learnt.iter();
        Some(learnt.find(|learnt| learnt.model == model)?.window)
    }

    /// Remembers the window of a model, for as long as the server is the same. Names come from
    /// clients, so that only so many are remembered.
    pub fn learn(&mut self, learnt: LearntWindow) {
        if learnt.model.len() > LONGEST_NAME {
            return;
        }
        self.forget(&learnt.model);
        if self.learnt.len() >= MOST_MODELS {
            let oldest = self.learnt[0].model.clone();
            self.forget(&oldest);
        }
        let window = format!("{} tokens{}", learnt.window, of_model(&learnt.model));
        self.found(WINDOW, window, REFUSED);
        self.learnt.push(learnt);
    }

    /// Forgets the window of a model.
    fn forget(&mut self, model: &str) {
        self.learnt.retain(|learnt| learnt.model != model);
        let of_model = of_model(model);
        self.findings
            .retain(|finding| !(finding.subject == WINDOW && finding.value.ends_with(&of_model)));
    }

    /// Takes over what was learnt before, if this is still the same server.
    pub fn learn_from(&mut self, before: &Self) {
        if self.is_same_server(before) {
            for learnt in &before.learnt {
                self.learn(learnt.clone());
            }
        }
    }

    /// Takes this for how an answer is begun, whatever was found before.
    pub(super) fn set_prefill(&mut self, prefill: Prefill, source: &str) {
        self.prefill = prefill;
        self.is_prefill_open = false;
        self.findings.retain(|finding| finding.subject != PREFILL);
        self.found(PREFILL, prefill.to_string(), source);
    }

    /// What was found about how an answer is begun.
    pub fn prefill_finding(&self) -> Option<&Finding> {
        self.findings.iter().find(|it| it.subject == PREFILL)
    }

    /// Whether this is the same server in the same version with the same models.
    pub(super) fn is_same_server(&self, other: &Self) -> bool {
        let known = |info: &Self| (info.product, info.version.clone(), info.models.clone());
        known(self) == known(other)
    }

    pub(super) fn found(&mut self, subject: &'static str, value: impl Into<String>, source: &str) {
        self.findings.push(Finding {
            subject,
            value: value.into(),
            source: source.to_owned(),
        });
    }
}

/// How far a server is asked what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Discovery {
    /// Not at all.
    #[default]
    Off,
    /// Only by requests that generate no token.
    Ask,
    /// A server on this machine that does not say what it can do also by a request of 8 tokens.
    Probe,
}

impl Discovery {
    /// All of them.
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
    fn the_latest_windows_are_remembered() {
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
