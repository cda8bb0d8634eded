//! Applies a plan to a request.

use overlock_budget::{ChatRole, Maker, Plan, SentMessage};
use serde_json::{Value, json};

use super::request::ChatRequest;
use super::tools::WITH_TOOLS;
use crate::wire::pieces::Pieces;

impl ChatRequest {
    /// The request to send.
    ///
    /// `plan` must be a plan of this request. Only the trimmed or added parts and the answer limit
    /// change.
    ///
    /// ```
    /// use overlock_budget::{Approximate, ChatCounter, Extras, Models, PlanOptions, plan};
    /// use overlock_llm::wire::chat::ChatRequest;
    ///
    /// let request = ChatRequest::from_json(
    ///     r#"{"model": "gpt-4", "max_tokens": 9000, "messages": [{"role": "user", "content": "Hi"}]}"#,
    /// )?;
    /// let found = Models::default().find("gpt-4");
    /// let counter = ChatCounter::with_counter(&found, &Approximate);
    /// let options = PlanOptions::for_model(&found.model);
    /// let plan = plan(&request, &Extras::default(), &counter, &options)?;
    /// assert_eq!(plan.input_token_count, 8);
    /// assert_eq!(plan.adjusted_max_tokens, 8192 - 8 - 200);
    /// assert_eq!(request.rewrite(&plan)["max_tokens"], 7984);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn rewrite(self, plan: &Plan) -> Value {
        let answer_key = self.requested_key().unwrap_or(usual_answer_key(plan));
        let tools_key = self.tools_key();
        let is_new = self.requested() != Some(plan.adjusted_max_tokens);
        let mut members = self.into_members();
        if plan.changes_messages()
            && let Some(Value::Array(messages)) = members.get_mut("messages")
        {
            let sent = plan.messages().map(|message| match message {
                SentMessage::Kept(place) => messages[place].take(),
                SentMessage::Shortened(place, text) => {
                    let mut message = messages[place].take();
                    message["content"] = text.into();
                    message
                }
                SentMessage::Inserted(text) => inserted(text),
            });
            *messages = sent.collect();
        }
        if let Some(Value::Array(tools)) = members.get_mut(tools_key) {
            let had_tools = !tools.is_empty();
            keep_tools(plan, tools);
            if had_tools && tools.is_empty() {
                for key in WITH_TOOLS.into_iter().chain([tools_key]) {
                    members.shift_remove(key);
                }
            }
        }
        // An unchanged limit keeps its formatting.
        if is_new {
            members.insert(answer_key.to_owned(), plan.adjusted_max_tokens.into());
        }
        Value::Object(members)
    }
}

/// The text of the request to send. Unchanged values keep their formatting.
///
/// `text` must be the text of the planned request. Returns `None` if it has a duplicate key, since
/// only one of the values was counted: see [`ChatRequest::rewrite`].
#[must_use]
pub fn rewrite_text(text: &str, plan: &Plan) -> Option<String> {
    let mut members = Pieces::of_object(text)?;
    if plan.changes_messages() {
        let value = members.value("messages")?;
        *value = messages_text(value, plan)?.into();
    }
    let tools_key = match members.value("tools") {
        Some(_) => "tools",
        None => "functions",
    };
    if let Some(value) = members.value(tools_key)
        // There is nothing to change in an empty array.
        && let Some(mut tools) = Pieces::of_list(&value.clone())
    {
        keep_tools(plan, &mut tools.items);
        if tools.items.is_empty() {
            for key in WITH_TOOLS.into_iter().chain([tools_key]) {
                members.remove(key);
            }
        } else {
            *value = tools.text().into();
        }
    }
    write_answer(plan, &mut members);
    Some(members.text())
}

/// The parameter that limits the answer if the request has no limit: the widely supported one, or
/// the one that `OpenAI`'s newer models require.
fn usual_answer_key(plan: &Plan) -> &'static str {
    match plan.maker {
        Maker::OpenAi => "max_completion_tokens",
        Maker::Other => "max_tokens",
    }
}

fn inserted(text: &str) -> Value {
    json!({ "role": ChatRole::System.name(), "content": text })
}

fn messages_text(text: &str, plan: &Plan) -> Option<String> {
    let mut messages = Pieces::of_list(text)?;
    let like = messages.items.first()?;
    let sent = plan.messages().map(|message| {
        Some(match message {
            SentMessage::Kept(place) => messages.items[place].clone(),
            SentMessage::Shortened(place, text) => {
                messages.items[place].with_text("content", text)?
            }
            SentMessage::Inserted(text) => like.new_sibling(None, inserted(text).to_string()),
        })
    });
    messages.items = sent.collect::<Option<_>>()?;
    Some(messages.text())
}

fn write_answer(plan: &Plan, members: &mut Pieces) {
    let limits = ["max_completion_tokens", "max_tokens"].into_iter();
    let mut limits = limits.filter(|key| members.value(key).is_some_and(|value| value != "null"));
    let key = limits.next().unwrap_or(usual_answer_key(plan));
    let answer = plan.adjusted_max_tokens.to_string();
    if let Some(value) = members.value(key) {
        *value = answer.into();
        return;
    }
    let like = members.items.first();
    let member = like.map(|like| like.new_sibling(Some(key), answer));
    members.items.extend(member);
}

fn keep_tools<T>(plan: &Plan, tools: &mut Vec<T>) {
    let mut kept = plan.kept_tools.iter().copied().peekable();
    let mut place = 0;
    tools.retain(|_| {
        place += 1;
        kept.next_if_eq(&(place - 1)).is_some()
    });
}
