//! `send`: sends mail to another step.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{ActionError, Next, Perform, Target, Work};
use crate::source::response_field;
use overlock_runs::Mail;

/// Sends a message to a step, which is delivered when a run enters it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Send {
    /// The step to send it to.
    pub target_step_id: String,
    /// The topic.
    #[schemars(length(min = 1))]
    pub topic: String,
    /// The content.
    #[serde(default)]
    pub payload: Value,
    /// Send it only if this field of the JSON response is set and is neither false, null, zero nor
    /// empty.
    #[schemars(length(min = 1))]
    pub when: Option<String>,
}

impl Perform for Send {
    fn targets(&self) -> Vec<Target<'_>> {
        vec![Target::mail("target_step_id", &self.target_step_id)]
    }

    async fn perform(&self, work: &mut Work<'_>) -> Result<Next, ActionError> {
        if let Some(field) = &self.when {
            let value = response_field(work.state, field);
            if !value.is_some_and(|value| is_truthy(&value)) {
                work.note("sent", false);
                work.note("why", format!("the last response does not have `{field}`"));
                return Ok(Next::Onward);
            }
        }
        work.state.inbox.push(Mail {
            target_step_id: self.target_step_id.clone(),
            topic: self.topic.clone(),
            payload: self.payload.clone(),
        });
        work.note("sent", true);
        Ok(Next::Onward)
    }
}

/// Whether a value counts as true.
fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is) => *is,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !matches!(text.trim(), "" | "false" | "no"),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}
