//! `route`: chooses the next step by the model's response.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{ActionError, KeyPath, Next, Perform, Target, Work};
use crate::file::Findings;
use crate::source::response_field;

/// Chooses the next step by the last response.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Route {
    /// The field of the JSON response that names the route, as a dotted path.
    #[schemars(length(min = 1))]
    pub on: Option<String>,
    /// Whether the response begins with the name of the route, instead.
    #[serde(default)]
    pub prefix: bool,
    /// Whether to remove that name from the response.
    #[serde(default)]
    pub strip_prefix: bool,
    /// The next steps by route name.
    #[schemars(extend("minProperties" = 1))]
    pub routes: IndexMap<String, String>,
    /// The next step if no route matches.
    pub on_other: Option<String>,
}

impl Perform for Route {
    fn targets(&self) -> Vec<Target<'_>> {
        let routes = self.routes.iter().map(|(value, step)| Target {
            path: KeyPath::within("routes", value),
            step,
            label: value.clone(),
            is_mail: false,
        });
        let other = self.on_other.iter();
        routes
            .chain(other.map(|step| Target::new("on_other", step)))
            .collect()
    }

    fn check(&self, findings: &mut Findings<'_>) {
        match (&self.on, self.prefix) {
            (Some(_), true) => super::exclusive(findings, "on", "prefix"),
            (None, false) => findings.error(
                &KeyPath::of("action"),
                "the route has neither `on` nor `prefix`",
                "name a field of the response with `on: FIELD`, or write `prefix: true`",
            ),
            _ => {}
        }
        if self.strip_prefix && !self.prefix {
            findings.error(
                &KeyPath::of("strip_prefix"),
                "`strip_prefix` needs `prefix: true`",
                "add `prefix: true`, or remove `strip_prefix`",
            );
        }
    }

    async fn perform(&self, work: &mut Work<'_>) -> Result<Next, ActionError> {
        let response = match &self.on {
            Some(field) => response_field(work.state, field).map(|value| match value {
                Value::String(text) => text.trim().to_owned(),
                other => other.to_string(),
            }),
            None => self.matching_prefix(work),
        };
        work.note("said", &response);
        if let Some(step) = response.as_ref().and_then(|name| self.routes.get(name)) {
            work.decide(response.as_deref().unwrap_or_default());
            return Ok(Next::To(step.clone()));
        }
        if let Some(step) = &self.on_other {
            work.decide("on_other");
            return Ok(Next::To(step.clone()));
        }
        if work.has_next {
            return Ok(Next::Onward);
        }
        Err(ActionError::NoRoute {
            routes: self
                .routes
                .keys()
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", "),
        })
    }
}

impl Route {
    /// The longest route name that the response begins with.
    fn matching_prefix(&self, work: &mut Work<'_>) -> Option<String> {
        let response = work.state.last_model_response.as_deref()?.trim_start();
        let names = self.routes.keys();
        let matching = names.filter(|name| response.starts_with(name.as_str()));
        let name = matching.max_by_key(|name| name.len())?;
        if self.strip_prefix {
            let rest = response[name.len()..].trim_start().to_owned();
            work.state.last_model_response = Some(rest);
        }
        Some(name.clone())
    }
}
