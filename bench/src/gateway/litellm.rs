//! LiteLLM's proxy, in Python.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::json;

use super::process::Process;
use super::{KEY, client};
use crate::outside::{peers_folder, python_environment};

const PACKAGE: &str = "litellm[proxy]==1.106.2";

/// How long it may take to start.
const PATIENCE: Duration = Duration::from_mins(2);

/// Installs it if necessary, starts it, and waits until it answers.
pub(super) fn start(upstream: &str, folder: &Path) -> Result<Process> {
    eprintln!("   starting the proxy of LiteLLM");
    let python = python_environment(&peers_folder()?.join("litellm-proxy"), &[PACKAGE])?;
    let config = folder.join("litellm.json");
    // Its settings are YAML, which includes JSON.
    let settings = json!({ "model_list": [{
        "model_name": "gpt-4o",
        "litellm_params": {
            "model": "openai/gpt-4o",
            "api_base": format!("http://{upstream}/v1"),
            "api_key": KEY,
        },
    }], "general_settings": { "master_key": KEY } });
    fs::write(&config, settings.to_string())?;
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let child = Command::new(python.with_file_name("litellm"))
        .args(["--host", "127.0.0.1", "--port", &address.port().to_string()])
        .arg("--config")
        .arg(&config)
        // Prevents requests to the network.
        .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        .env("LITELLM_LOG", "ERROR")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let process = Process::of(child, address.to_string());
    let begun = Instant::now();
    while let Err(error) = client::probe(&process.address) {
        if begun.elapsed() > PATIENCE {
            bail!("it does not answer: {error:#}");
        }
        sleep(Duration::from_millis(500));
    }
    Ok(process)
}
