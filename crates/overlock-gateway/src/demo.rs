//! A model that is always there, for those who have no other yet: every answer of it is cut.

use hyper::StatusCode;
use overlock_llm::testing::{Behaviour, Script, ScriptedServer};
use tokio::sync::OnceCell;

use crate::error::ApiError;

/// The name it is asked by.
pub(crate) const MODEL: &str = "overlock-demo";

/// The model behind a server of its own on this machine, so that it is asked as any other is.
#[derive(Default)]
pub(crate) struct Demo {
    server: OnceCell<ScriptedServer>,
}

impl Demo {
    /// Where it is; it is started when it is first asked for.
    pub(crate) async fn base(&self) -> Result<String, ApiError> {
        let server = self
            .server
            .get_or_try_init(|| ScriptedServer::start(script(), &[]))
            .await;
        server.map(ScriptedServer::base).map_err(|error| {
            ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "server_error",
                format!("the demonstration could not be started: {error}"),
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

/// What it knows by heart.
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
