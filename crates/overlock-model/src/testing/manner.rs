//! What servers of known products say about themselves, and how they treat a beginning.

use serde_json::{Value, json};

/// The product that a scripted server imitates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// None: it says nothing about itself, and refuses a probe.
    #[default]
    Unknown,
    /// None, but it goes on from a beginning, also with a response format.
    GoesOn,
    /// llama.cpp with a window of 4,096 tokens: the grammar goes on from a beginning.
    LlamaCpp,
    /// Builds of llama.cpp that send the beginning back.
    EchoingLlamaCpp,
    /// vLLM: it wants `continue_final_message`, and its grammar begins again.
    Vllm,
    /// Ollama: its grammar begins again.
    Ollama,
    /// LM Studio.
    LmStudio,
}

impl Manner {
    /// What it says at a path; nothing if there is nothing.
    pub(super) fn fact(self, path: &str) -> Option<Value> {
        let list = |model: Value| Some(json!({ "object": "list", "data": [model] }));
        match (self, path) {
            (Self::LlamaCpp | Self::EchoingLlamaCpp, "/v1/models") => list(json!({
                "id": "scripted", "object": "model", "owned_by": "llamacpp",
                "meta": { "n_ctx": 8192, "n_ctx_train": 8192 },
            })),
            (Self::LlamaCpp | Self::EchoingLlamaCpp, "/props") => Some(json!({
                "default_generation_settings": { "n_ctx": 4096 }, "total_slots": 2,
                "build_info": "b6101-4ca5ac1",
            })),
            (Self::Vllm, "/v1/models") => list(json!({
                "id": "scripted", "object": "model", "owned_by": "vllm", "max_model_len": 4096,
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

    /// Whether the grammar of a response format begins again after a beginning.
    pub(super) fn restarts_grammar(self) -> bool {
        matches!(self, Self::Vllm | Self::Ollama)
    }

    /// Whether the beginning is a part of the answer.
    pub(super) fn echoes(self) -> bool {
        self == Self::EchoingLlamaCpp
    }

    /// What it answers to a probe, if it goes on.
    pub(super) fn goes_on(self) -> Option<&'static str> {
        matches!(self, Self::GoesOn | Self::LmStudio).then_some(", 6, 7, 8")
    }
}
