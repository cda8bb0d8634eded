//! How known server products describe themselves and treat a prefill.

use serde_json::{Map, Value, json};

/// The window of products that reject larger requests.
const WINDOW: u64 = 4096;

/// The product that a scripted server imitates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// None: it provides no information and rejects a probe.
    #[default]
    Unknown,
    /// None, but it continues a prefill, also with a response format.
    GoesOn,
    /// llama.cpp with a window of 4,096 tokens: the grammar continues from a prefill.
    LlamaCpp,
    /// Builds of llama.cpp that repeat the prefill in the answer.
    EchoingLlamaCpp,
    /// Builds of llama.cpp that report a larger window than they have, and cannot count requests.
    OldLlamaCpp,
    /// vLLM: it needs `continue_final_message`, and its grammar starts again.
    Vllm,
    /// Ollama: its grammar starts again.
    Ollama,
    /// LM Studio.
    LmStudio,
    /// Builds of llama.cpp that reject a prefill together with a response format.
    RefusingLlamaCpp,
    /// None: it ignores prefills, and with a response format every answer starts the document
    /// again.
    BeginsAgain,
}

impl Manner {
    /// Its information at a path, if it has any.
    pub(super) fn information(self, path: &str) -> Option<Value> {
        let list = |model: Value| Some(json!({ "object": "list", "data": [model] }));
        match (self, path) {
            (
                Self::LlamaCpp | Self::EchoingLlamaCpp | Self::OldLlamaCpp | Self::RefusingLlamaCpp,
                "/v1/models",
            ) => list(json!({
                "id": "scripted", "object": "model", "owned_by": "llamacpp",
                "meta": { "n_ctx": 8192, "n_ctx_train": 8192 },
            })),
            (Self::LlamaCpp | Self::EchoingLlamaCpp, "/props") => Some(json!({
                "default_generation_settings": { "n_ctx": WINDOW }, "total_slots": 2,
                "build_info": "b6101-4ca5ac1",
            })),
            (Self::Vllm, "/v1/models") => list(json!({
                "id": "scripted", "object": "model", "owned_by": "vllm", "max_model_len": WINDOW,
            })),
            (Self::Vllm, "/version") => Some(json!({ "version": "0.11.0" })),
            (Self::Ollama, "/v1/models") => list(json!({
                "id": "scripted", "object": "model", "owned_by": "library",
            })),
            (Self::Ollama, "/api/version") => Some(json!({ "version": "0.12.6" })),
            (Self::Ollama, "/api/ps") => Some(json!({ "models": [
                { "name": "scripted", "model": "scripted", "context_length": 16_384 },
            ] })),
            (Self::LmStudio, "/v1/models") => list(json!({
                "id": "scripted", "object": "model", "owned_by": "organization_owner",
            })),
            (Self::LmStudio, "/api/v0/models") => list(json!({
                "id": "scripted", "state": "loaded", "max_context_length": 131_072,
                "loaded_context_length": 4096,
            })),
            _ => None,
        }
    }

    /// Its answer to a request to count tokens; `None` if it cannot count.
    pub(super) fn count(self, path: &str, request: &Value) -> Option<Value> {
        match (self, path) {
            (Self::LlamaCpp | Self::EchoingLlamaCpp, "/apply-template") => {
                Some(json!({ "prompt": prompt(request) }))
            }
            (Self::LlamaCpp | Self::EchoingLlamaCpp, "/tokenize") => {
                let tokens = tokens(request["content"].as_str().unwrap_or_default());
                Some(json!({ "tokens": (0..tokens).collect::<Vec<_>>() }))
            }
            _ => None,
        }
    }

    /// Its error for a request that is too large by its own count.
    pub(super) fn size_error(self, request: &Map<String, Value>) -> Option<Value> {
        let request = Value::Object(request.clone());
        let input = tokens(&prompt(&request));
        match self {
            Self::LlamaCpp | Self::EchoingLlamaCpp | Self::OldLlamaCpp if input >= WINDOW => {
                Some(json!({ "error": {
                    "code": 400, "type": "exceed_context_size_error",
                    "message": "the request exceeds the available context size, try increasing it",
                    "n_prompt_tokens": input, "n_ctx": WINDOW,
                } }))
            }
            Self::Vllm => {
                let answer = request["max_tokens"].as_u64().unwrap_or(1);
                let all = input + answer;
                (all > WINDOW).then(|| {
                    let message = format!(
                        "This model's maximum context length is {WINDOW} tokens. However, you \
                         requested {all} tokens ({input} in the messages, {answer} in the \
                         completion). Please reduce the length of the messages or completion."
                    );
                    json!({ "error": {
                        "message": message, "type": "BadRequestError", "param": null, "code": 400,
                    } })
                })
            }
            _ => None,
        }
    }

    /// Whether it rejects this request if it has a prefill.
    pub(super) fn refuses_prefill(self, request: &Map<String, Value>) -> bool {
        self == Self::RefusingLlamaCpp && request.contains_key("response_format")
    }

    /// Whether the model starts its document again with any response format.
    pub(super) fn restarts_document(self) -> bool {
        self == Self::BeginsAgain
    }

    /// Whether the grammar of a response format starts again after a prefill.
    pub(super) fn restarts_grammar(self) -> bool {
        matches!(self, Self::Vllm | Self::Ollama)
    }

    /// Whether the answer repeats the prefill.
    pub(super) fn echoes(self) -> bool {
        self == Self::EchoingLlamaCpp
    }

    /// Its answer to a probe, if it continues a prefill.
    pub(super) fn probe_answer(self) -> Option<&'static str> {
        matches!(self, Self::GoesOn | Self::LmStudio).then_some(", 6, 7, 8")
    }
}

/// The messages of a request in the model's chat template.
fn prompt(request: &Value) -> String {
    let messages = request["messages"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let written = messages.iter().map(|message| {
        let text = |name: &str| message[name].as_str().unwrap_or_default();
        let (role, content) = (text("role"), text("content"));
        format!("<|im_start|>{role}\n{content}<|im_end|>\n")
    });
    written.collect::<String>() + "<|im_start|>assistant\n"
}

/// The tokens of a text: one for four ASCII bytes, and one for two other bytes, as in small models
/// that were trained mostly on English.
fn tokens(text: &str) -> u64 {
    let english = text.bytes().filter(u8::is_ascii).count();
    let tokens = english.div_ceil(4) + (text.len() - english).div_ceil(2);
    u64::try_from(tokens).unwrap_or(u64::MAX)
}
