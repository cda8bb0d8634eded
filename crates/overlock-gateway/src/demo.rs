//! The built-in demo model, whose every answer is cut off.

use hyper::StatusCode;
use overlock_llm::testing::{Behaviour, Script, ScriptedServer};
use tokio::sync::OnceCell;

use crate::error::ApiError;

/// The name of the model.
pub(crate) const MODEL: &str = "overlock-demo";

/// The model behind a local server, so that it is called like any other.
#[derive(Default)]
pub(crate) struct Demo {
    server: OnceCell<ScriptedServer>,
}

impl Demo {
    /// The address of the server, which the first request starts.
    pub(crate) async fn base(&self) -> Result<String, ApiError> {
        let server = self
            .server
            .get_or_try_init(|| ScriptedServer::start(script(), &[]))
            .await;
        server.map(ScriptedServer::base).map_err(|error| {
            ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "server_error",
                format!("cannot start the demo model: {error}"),
            )
        })
    }
}

fn script() -> Script {
    Script {
        document: document(),
        breath: (300, 500),
        behaviours: Behaviour::AS_ASKED.to_vec(),
        seed: 1,
    }
}

/// The document of its answers.
fn document() -> String {
    const ELEMENTS: &str = "Hydrogen Helium Lithium Beryllium Boron Carbon Nitrogen Oxygen \
        Fluorine Neon Sodium Magnesium Aluminium Silicon Phosphorus Sulfur Chlorine Argon \
        Potassium Calcium Scandium Titanium Vanadium Chromium Manganese Iron Cobalt Nickel Copper \
        Zinc Gallium Germanium Arsenic Selenium Bromine Krypton";
    let rows: Vec<String> = ELEMENTS
        .split_whitespace()
        .zip(1..)
        .map(|(name, number)| {
            format!("    {{ \"number\": {number}, \"name\": \"{name}\", \"electrons\": {number} }}")
        })
        .collect();
    format!(
        "{{\n  \"title\": \"The first {} elements\",\n  \"elements\": [\n{}\n  ]\n}}",
        rows.len(),
        rows.join(",\n")
    )
}
