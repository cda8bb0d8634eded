//! Has the rest of a cut answer written, in as many calls as that takes.

use std::error::Error;

use futures_util::FutureExt;
use futures_util::future::{self, BoxFuture};
use hyper::HeaderMap;
use overlock_budget::{ChatCounter, ChatRequest, Plan, PlanOptions};
use overlock_json::Base;
use overlock_model::{
    Answer, Ask, CallEnd, Continuation, Drive, Observe, Obstacle, OpenAi, Outcome, Retrying, Step,
    Usage, complete,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::taken::Taken;
use super::wish::Wish;
use crate::error::ApiError;
use crate::gateway::Gateway;

/// What a continuation of an answer needs to know.
pub(crate) struct Joiner<'a> {
    pub(crate) gateway: &'a Gateway,
    pub(crate) wish: &'a Wish,
    pub(crate) counter: &'a ChatCounter<'a>,
    /// What is shown to the upstream.
    pub(crate) headers: &'a HeaderMap,
    pub(crate) deadline: Instant,
}

/// What is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut<'a> {
    /// The content of a message.
    Content,
    /// The arguments of a call of this tool.
    Arguments(&'a str),
}

/// Hears the certain text of a document as it arrives.
pub(crate) trait Hear: Send {
    /// The document goes on with this.
    fn hear<'a>(&'a mut self, text: &'a str) -> BoxFuture<'a, ()>;

    /// Another call begins.
    fn call(&mut self) {}
}

/// Somebody who hears a document from some byte on.
pub(crate) struct Hearing<'a> {
    pub(crate) hear: &'a mut dyn Hear,
    /// How many bytes of it were told before.
    pub(crate) given: usize,
}

/// A document that became whole, or as much of it as could be had.
pub(crate) struct Joined {
    pub(crate) run: Continuation,
    pub(crate) taken: Taken,
}

impl Joiner<'_> {
    /// Continues a document that a first answer began.
    pub(crate) async fn join(
        &self,
        cut: Cut<'_>,
        first: &str,
        hear: Option<Hearing<'_>>,
    ) -> Result<Joined, ApiError> {
        let mut run = self.begun(first);
        let mut taken = Taken::default();
        let hear = match hear {
            None => None,
            Some(Hearing { hear, given }) => {
                let settled = run.base().map_or(0, Base::settled_len);
                if let Some(owed) = run.text().get(given..settled).filter(|it| !it.is_empty()) {
                    hear.hear(owed).await;
                }
                Some(hear)
            }
        };
        if run.outcome().is_some() || run.base().is_none() {
            return Ok(Joined { run, taken });
        }
        let request = self.request(cut)?;
        let upstream = &self.gateway.settings.upstream;
        let backend = OpenAi::new(
            self.gateway.http.clone(),
            &upstream.base,
            None,
            upstream.prefill,
        )
        .map_err(|error| ApiError::upstream(error.to_string()))?
        .with_headers(self.headers);
        let backend = Retrying::new(backend, upstream.retries);
        let plan = self.plan();
        let drive = Drive {
            backend: &backend,
            request: &request,
            counter: self.counter,
            plan: &plan,
            deadline: Some(self.deadline),
            most_answer_bytes: self.gateway.settings.limits.answer_bytes,
            live: hear.is_some(),
        };
        let mut observer = Observer {
            hear,
            taken: &mut taken,
            asked: 0,
        };
        let driven = complete(&mut run, &drive, &mut observer).await;
        match driven {
            Ok(None | Some(Obstacle::Backend(_) | Obstacle::Window(_))) => {}
            // Nothing is kept here that could fail, and the request was read before.
            Err(error) => return Err(ApiError::upstream(error.to_string())),
        }
        Ok(Joined { run, taken })
    }

    /// A run that has its first answer.
    fn begun(&self, first: &str) -> Continuation {
        let tokens = self.counter.tokens().count(first);
        let settings = &self.gateway.settings;
        let mut options =
            settings.continuation_for(&self.wish.found.model, self.wish.max_total_tokens);
        options.answer_chars = self
            .wish
            .request
            .requested()
            .and_then(|tokens| usize::try_from(tokens.saturating_mul(CHARS_PER_TOKEN)).ok());
        let mut run = Continuation::new(options);
        if let Some(ask) = run.next() {
            let text = first.as_bytes();
            // What is to be asked can be answered.
            let _ = run.answered(&ask, &Answer { text, tokens });
        }
        run
    }

    fn plan(&self) -> PlanOptions {
        PlanOptions {
            // Who sets no limit wants none but the model's own.
            grow: self.wish.request.requested().is_none(),
            ..self.gateway.settings.plan_for(&self.wish.found.model)
        }
    }

    /// What the client asked, as far as it holds for one more piece of one answer.
    fn request(&self, cut: Cut<'_>) -> Result<ChatRequest, ApiError> {
        let mut request = self.wish.request.clone().into_value();
        let Some(members) = request.as_object_mut() else {
            return Err(ApiError::invalid("the request is no object"));
        };
        for name in ["n", "logprobs", "top_logprobs", "stream", "stream_options"] {
            members.remove(name);
        }
        for (tools, choice) in [("tools", "tool_choice"), ("functions", "function_call")] {
            if members.contains_key(tools) {
                // The rest of an answer is text, and so is that of a tool call.
                members.insert(choice.to_owned(), json!("none"));
            }
        }
        if let (Cut::Arguments(tool), Some(Value::Array(messages))) =
            (cut, members.get_mut("messages"))
        {
            messages.push(json!({
                "role": "user",
                "content": format!(
                    "Call the tool `{tool}`: answer with the JSON object of its arguments, and \
                     nothing else."
                ),
            }));
        }
        ChatRequest::from_value(request).map_err(|error| ApiError::invalid(error.to_string()))
    }
}

/// About how many characters a token has; fewer in most scripts than in English.
const CHARS_PER_TOKEN: u64 = 3;

/// Tells what happens in a run to those who want to know.
struct Observer<'a, 'h> {
    hear: Option<&'a mut (dyn Hear + 'h)>,
    taken: &'a mut Taken,
    /// The tokens of the prompt that is being answered.
    asked: u64,
}

impl Observe for Observer<'_, '_> {
    fn asking(&mut self, _ask: &Ask, plan: &Plan) {
        self.asked = plan.input_token_count;
        if let Some(hear) = &mut self.hear {
            hear.call();
        }
    }

    fn certain<'a>(&'a mut self, text: &'a str) -> BoxFuture<'a, ()> {
        match &mut self.hear {
            Some(hear) => hear.hear(text),
            None => future::ready(()).boxed(),
        }
    }

    fn stepped<'a>(
        &'a mut self,
        _run: &'a Continuation,
        step: &'a Step,
        end: &'a CallEnd,
    ) -> BoxFuture<'a, Result<(), Box<dyn Error + Send + Sync>>> {
        let counted = Usage {
            input: self.asked,
            output: step.tokens,
        };
        self.taken.add(end.usage.unwrap_or(counted));
        future::ready(Ok(())).boxed()
    }
}

/// Whether a run was called whole.
pub(crate) fn is_whole(run: &Continuation) -> bool {
    run.outcome() == Some(&Outcome::Complete)
}
