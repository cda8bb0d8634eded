//! Fits the conversations of agents into small windows, beside peers.
//!
//! The conversations are those of a public benchmark, with the results that its simulated services
//! give. Each is fitted into three quarters, a half and a quarter of its own size, and every result is
//! recounted by `tiktoken`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use overlock_budget::{ChatCounter, Extras, Models, PlanOptions, plan};
use overlock_llm::wire::chat::ChatRequest;
use serde_json::Value;

use crate::outside::python_package;
use crate::table::Table;

const SCRIPT: &str = include_str!("agents.py");
const CONVERSATIONS: &str = "bfcl-eval==2026.3.23";

/// Fits all conversations with this Python, which has the peers.
pub(crate) fn run(python: &Path, folder: &Path) -> Result<()> {
    eprintln!("   fitting conversations of agents");
    let package = python_package(python, folder, CONVERSATIONS)?;
    let [script, requests, ours] =
        ["agents.py", "agents.json", "fitted.json"].map(|name| folder.join(name));
    fs::write(&script, SCRIPT)?;
    let call = |arguments: &[&Path], action: &str| -> Result<Vec<u8>> {
        let mut call = Command::new(python);
        call.env("PYTHONPATH", &package).arg(&script).arg(action);
        let output = call.args(arguments).output()?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            bail!("{}", errors.lines().last().unwrap_or_default());
        }
        Ok(output.stdout)
    };
    call(&[requests.as_path()], "make")?;
    let conversations: Vec<Value> = serde_json::from_slice(&fs::read(&requests)?)?;
    let fitted = conversations.iter().map(fit).collect::<Result<Vec<_>>>()?;
    fs::write(&ours, Value::from(fitted).to_string())?;
    let rows: Vec<Value> =
        serde_json::from_slice(&call(&[requests.as_path(), ours.as_path()], "judge")?)?;

    let heading = format!(
        "{} conversations of agents, each in three windows",
        conversations.len()
    );
    let mut table = Table::new([
        heading.as_str(),
        "refused",
        "over the window",
        "calls torn from results",
        "open exchange lost",
        "valid",
        "of these: messages kept",
        "kept unchanged",
        "window used",
    ]);
    for row in &rows {
        let count = |key: &str| row[key].to_string();
        let share = |key: &str| format!("{:.1} %", 100.0 * row[key].as_f64().unwrap_or_default());
        table.row([
            row["name"].as_str().unwrap_or_default().to_owned(),
            count("refused"),
            count("over"),
            count("orphans"),
            count("no_open"),
            count("valid"),
            share("kept"),
            share("whole"),
            share("used"),
        ]);
    }
    table.print("Fitting conversations of agents");
    Ok(())
}

/// The messages that are sent for each window, or nothing where the request is refused.
fn fit(conversation: &Value) -> Result<Value> {
    let request = ChatRequest::from_value(conversation["request"].clone())?;
    let found = Models::default().find("gpt-4o");
    let counter = ChatCounter::for_model(&found);
    let limits = conversation["limits"].as_array().into_iter().flatten();
    let fitted = limits.filter_map(Value::as_u64).map(|limit| {
        let options = PlanOptions {
            // The answer of one token has its room beside the limit.
            window: limit + 1,
            margin: Some(0),
            ..PlanOptions::for_model(&found.model)
        };
        match plan(&request, &Extras::default(), &counter, &options) {
            Ok(plan) => request.clone().rewrite(&plan)["messages"].take(),
            Err(_) => Value::Null,
        }
    });
    Ok(fitted.collect())
}
