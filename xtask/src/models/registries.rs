//! Fetches and reads the registries, each from a package in a fixed version.
//!
//! Packages are installed under `target/` with the usual package managers, unless they are there
//! already.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::facts::{Abilities, Fact};
use crate::shell::{self, cargo, program, target};

const LITELLM_VERSION: &str = "1.108.4";
const RIG_VERSION: &str = "0.46.0";

/// The sources of the generated part, for the table.
pub(super) fn notice() -> String {
    format!(
        "# LiteLLM's registry (`litellm` {LITELLM_VERSION}, Copyright (c) 2023 Berri AI) and the copy of\n\
         # models.dev in `rig-core` {RIG_VERSION} (Copyright (c) 2024, Playgrounds Analytics Inc.). The text\n\
         # of that licence is in LICENSE-MIT. Changes belong above these lines, or into the chore.\n"
    )
}

/// The entries of `LiteLLM`'s registry for models that write text.
pub(super) fn litellm() -> Result<Vec<Fact>> {
    let folder = target(&format!("models/litellm-{LITELLM_VERSION}"));
    let path = folder.join("litellm/model_prices_and_context_window_backup.json");
    if !path.exists() {
        let package = format!("litellm=={LITELLM_VERSION}");
        eprintln!("   installing {package}");
        let mut install = program("pip");
        install.args(["install", "--quiet", "--no-deps", "--no-compile"]);
        shell::run(install.arg("--target").arg(&folder).arg(&package))
            .context("LiteLLM comes from PyPI, so `pip` must be installed")?;
    }
    let registry = read(&path)?;
    let models = registry.as_object().context("LiteLLM has no models")?;
    let written = models.iter().filter(|(_, model)| {
        matches!(
            model["mode"].as_str(),
            Some("chat" | "completion" | "responses")
        )
    });
    Ok(written
        .map(|(name, model)| Fact {
            key: name.to_ascii_lowercase(),
            window: model["max_input_tokens"]
                .as_u64()
                .or(model["max_tokens"].as_u64())
                .unwrap_or(0),
            input_only: false,
            answer_cap: model["max_output_tokens"].as_u64(),
            abilities: Abilities {
                prefill: is_true(&model["supports_assistant_prefill"]),
                json: is_true(&model["supports_response_schema"]),
                tools: is_true(&model["supports_function_calling"]),
            },
        })
        .collect())
}

/// The entries of models.dev for models that write text, from the copy in rig.
pub(super) fn models_dev() -> Result<Vec<Fact>> {
    let registry = read(&rig()?.join("src/catalog/models.json"))?;
    let hosts = registry.as_object().context("models.dev has no hosts")?;
    let mut facts = Vec::new();
    for (host, content) in hosts {
        let models = content["models"].as_object();
        let models = models.with_context(|| format!("`{host}` has no models"))?;
        let host = host_name(host);
        for (name, model) in models.iter().filter(|(_, model)| writes_text(model)) {
            facts.push(models_dev_fact(&format!("{host}/{name}"), model));
        }
    }
    Ok(facts)
}

fn models_dev_fact(key: &str, model: &Value) -> Fact {
    let limit = |name: &str| model["limit"][name].as_u64().filter(|limit| *limit > 0);
    let context = limit("context").unwrap_or(0);
    let input = limit("input").unwrap_or(context);
    let answer_cap = limit("output");
    Fact {
        key: key.to_ascii_lowercase(),
        window: input.min(context),
        input_only: input.saturating_add(answer_cap.unwrap_or(u64::MAX)) <= context,
        answer_cap,
        abilities: Abilities {
            prefill: false,
            json: is_true(&model["structured_output"]),
            tools: is_true(&model["tool_call"]),
        },
    }
}

fn writes_text(model: &Value) -> bool {
    let is_chat = matches!(model["type"].as_str(), None | Some("chat"));
    let outputs = model["modalities"]["output"].as_array();
    // Embedding models are listed as text models with their dimensions as the answer limit.
    let family = model["family"].as_str().unwrap_or_default();
    let name = model["name"].as_str().unwrap_or_default();
    let embeds = [family, name]
        .iter()
        .any(|text| text.to_ascii_lowercase().contains("embed"));
    is_chat && !embeds && outputs.is_some_and(|outputs| outputs.iter().any(|kind| kind == "text"))
}

/// The name that `LiteLLM` uses for the host.
fn host_name(host: &str) -> &str {
    match host {
        "aws_bedrock" => "bedrock",
        "azure.openai" => "azure",
        "copilot" => "github_copilot",
        "gcp.gemini" | "gemini-grpc" => "gemini",
        "together" => "together_ai",
        "vertexai" => "vertex_ai",
        "xiaomimimo" => "xiaomi_mimo",
        host => host,
    }
}

/// Fetches the sources of rig with cargo if necessary, and returns their folder.
fn rig() -> Result<PathBuf> {
    let folder = target(&format!("models/rig-{RIG_VERSION}"));
    let manifest = folder.join("Cargo.toml");
    fs::create_dir_all(&folder)?;
    // A package with only this dependency; the empty workspace keeps it out of ours.
    let package = format!(
        "[package]\nname = \"registry\"\nedition = \"2024\"\n[workspace]\n[lib]\npath = \"empty.rs\"\n\
         [dependencies]\nrig-core = {{ version = \"={RIG_VERSION}\", default-features = false }}\n"
    );
    fs::write(&manifest, package)?;
    fs::write(folder.join("empty.rs"), "")?;

    let mut command = cargo(["metadata", "--quiet", "--format-version", "1"]);
    command.arg("--manifest-path").arg(&manifest);
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("could not start cargo")?;
    shell::check(&command, output.status)?;
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array();
    let manifest = packages
        .and_then(|packages| {
            packages
                .iter()
                .find(|package| package["name"] == "rig-core")
        })
        .and_then(|package| package["manifest_path"].as_str())
        .context("cargo did not report the folder of rig")?;
    let folder = Path::new(manifest).parent();
    Ok(folder.context("rig is in no folder")?.to_path_buf())
}

fn read(path: &Path) -> Result<Value> {
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("could not read `{shown}`"))?;
    serde_json::from_str(&text).with_context(|| format!("`{shown}` is not JSON"))
}

fn is_true(value: &Value) -> bool {
    value.as_bool() == Some(true)
}
