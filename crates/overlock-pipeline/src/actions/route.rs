//! `route`: goes where the model says.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{ActionError, Next, Perform, Place, Target, Work};
use crate::file::Findings;
use crate::source::response_field;

/// Chooses the next step by the last response.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Route {
    /// The field of the last response, read as JSON, that says where to go. Dots lead into objects.
    #[schemars(length(min = 1))]
    pub on: Option<String>,
    /// Whether the response begins with the name of a route, instead.
    #[serde(default)]
    pub prefix: bool,
    /// Whether the name is taken out of the response then.
    #[serde(default)]
    pub strip_prefix: bool,
    /// The steps by what the response says.
    #[schemars(extend("minProperties" = 1))]
    pub routes: IndexMap<String, String>,
    /// Where to go if it says none of these.
    pub on_other: Option<String>,
}

impl Perform for Route {
    fn targets(&self) -> Vec<Target<'_>> {
        let routes = self.routes.iter().map(|(value, step)| Target {
            place: Place::within("routes", value),
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
                &Place::of("action"),
                "nothing says what the route is chosen by",
                "name a field of the response with `on: FIELD`, or write `prefix: true`",
            ),
            _ => {}
        }
        if self.strip_prefix && !self.prefix {
            findings.error(
                &Place::of("strip_prefix"),
                "`strip_prefix` is for routes by prefix",
                "write `prefix: true` too, or leave it out",
            );
        }
    }

    async fn perform(&self, work: &mut Work<'_>) -> Result<Next, ActionError> {
        let said = match &self.on {
            Some(field) => response_field(work.state, field).map(|value| match value {
                Value::String(text) => text.trim().to_owned(),
                other => other.to_string(),
            }),
            None => self.beginning(work),
        };
        work.note("said", &said);
        if let Some(step) = said.as_ref().and_then(|said| self.routes.get(said)) {
            work.decide(said.as_deref().unwrap_or_default());
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
    /// The longest name that the response begins with.
    fn beginning(&self, work: &mut Work<'_>) -> Option<String> {
        let response = work.state.last_model_response.as_deref()?.trim_start();
        let names = self.routes.keys();
        let fitting = names.filter(|name| response.starts_with(name.as_str()));
        let name = fitting.max_by_key(|name| name.len())?;
        if self.strip_prefix {
            let rest = response[name.len()..].trim_start().to_owned();
            work.state.last_model_response = Some(rest);
        }
        Some(name.clone())
    }
}
