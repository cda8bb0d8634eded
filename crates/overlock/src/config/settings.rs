//! Declares every setting once: its name, description and field, and an example if it has no
//! default. The environment variables and `overlock.example.toml` follow from this list.

use super::keys::Setting;
use super::{Config, OwnModel};

/// One setting.
pub(super) struct Key<T> {
    /// Its name, including its tables.
    pub(super) name: &'static str,
    /// The description.
    #[cfg(test)]
    pub(super) doc: &'static [&'static str],
    /// A value, if there is no default.
    #[cfg(test)]
    pub(super) example: &'static [&'static str],
    pub(super) field: fn(&mut T) -> &mut dyn Setting,
}

impl<T> Key<T> {
    /// The environment variable that sets it.
    pub(super) fn variable(&self) -> String {
        let name = self.name.replace('.', "_").to_ascii_uppercase();
        format!("OVERLOCK_{name}")
    }
}

macro_rules! keys {
    ($target:ty: $($(#[doc = $doc:literal])+ $name:literal $(like $example:literal)? => $($field:ident).+;)*) => {
        &[$(Key {
            name: $name,
            #[cfg(test)]
            doc: &[$($doc),+],
            #[cfg(test)]
            example: &[$($example)?],
            field: |target: &mut $target| &mut target.$($field).+,
        }),*]
    };
}

/// The tables, with their descriptions.
#[cfg(test)]
pub(super) const TABLES: &[(&str, &str)] = &[
    (
        "budget",
        "How `overlock fit`, `overlock tokens` and the gateway divide the window of a model.",
    ),
    (
        "budget.results",
        "How tool results are shortened. Old ones become a mark of one line before anything but the answer is reduced; those of the open turn are truncated in the middle, and only if nothing else helps. `trim = \"off\"` shortens none.",
    ),
    (
        "budget.tools",
        "How each part of a prompt is reduced. Parts with a lower `priority` are reduced first; parts of one priority by their `shrink`, where 0 means all or nothing. A part keeps its `min` while others are reduced, and never gets more than its `max`. This table is for the tools; the last one is dropped first.",
    ),
    ("budget.history", "The conversation before the open turn."),
    (
        "budget.context",
        "Retrieved texts; the last one is dropped first.",
    ),
    (
        "budget.memories",
        "Memories; the least important one is dropped first.",
    ),
    (
        "budget.completion",
        "The answer, which is always part of the plan.",
    ),
    ("budget.memory", "Which memories are included."),
    (
        "upstream",
        "The model server for `overlock serve`, `overlock complete` and `overlock run`.",
    ),
    ("complete", "How cut answers are continued."),
    ("store", "Where runs are recorded."),
    ("serve", "The gateway, `overlock serve`."),
];

/// All settings except those of models. Each has an environment variable.
pub(super) const KEYS: &[Key<Config>] = keys! { Config:
    /// The model used when none is given.
    "budget.model" like "\"gpt-4o\"" => budget.model;
    /// The answer tokens used when the request sets no limit.
    "budget.max_tokens" => budget.plan.requested;
    /// The fewest answer tokens that are useful. An answer never gets fewer, unless fewer are
    /// requested.
    "budget.answer_floor" => budget.plan.answer_floor;
    /// Whether the answer may use all free tokens instead of the requested ones.
    "budget.grow" => budget.plan.grow;
    /// The tokens left free for inexact counts. Without it: 50 if the model's own tokenizer counts,
    /// 200 if another one does, 100 for an estimate by the number of messages.
    "budget.margin" like "50" => budget.plan.margin;
    /// What to do with a conversation that is too long: "off" refuses it, "oldest" drops the oldest
    /// turns, "summary" replaces each of them by one line.
    "budget.trim" => budget.plan.trim;
    /// The tokens that all summary lines may use together.
    "budget.summary_tokens" => budget.plan.summary_tokens;
    /// How many messages are dropped at a time. With more than 1 the beginning of a conversation
    /// stays the same for several turns, so that the provider's prompt cache still applies.
    "budget.drop_step" => budget.plan.drop_step;
    /// Whether the first retrieved text that does not fit is truncated instead of dropped.
    "budget.truncate_context" => budget.plan.truncate_context;
    /// Whether less important pieces may use room that is too small for the next one in line. Without
    /// this, a larger window keeps everything that a smaller one keeps, but parts that would fit are
    /// dropped.
    "budget.fill_gaps" => budget.plan.fill_gaps;
    /// The results of this many last exchanges never become marks.
    "budget.results.keep" => budget.plan.results.keep;
    /// How many exchanges get their marks together. With more than 1 the beginning of a conversation
    /// stays the same for several exchanges, so that the provider's prompt cache still applies.
    "budget.results.batch" => budget.plan.results.batch;
    /// Results become marks if the input would have more tokens than this, even if they fit.
    "budget.results.trigger" like "100000" => budget.plan.results.trigger;
    /// The tokens to which a result of the open turn is truncated at most, if nothing else helps.
    "budget.results.floor" => budget.plan.results.floor;
    /// The priority.
    "budget.tools.priority" => budget.plan.tools.priority;
    /// The weight.
    "budget.tools.shrink" => budget.plan.tools.shrink;
    /// The fewest tokens.
    "budget.tools.min" => budget.plan.tools.min;
    /// The most tokens.
    "budget.tools.max" like "4000" => budget.plan.tools.max;
    /// The priority.
    "budget.history.priority" => budget.plan.history.priority;
    /// The weight.
    "budget.history.shrink" => budget.plan.history.shrink;
    /// The fewest tokens.
    "budget.history.min" => budget.plan.history.min;
    /// The most tokens.
    "budget.history.max" like "4000" => budget.plan.history.max;
    /// The priority.
    "budget.context.priority" => budget.plan.context.priority;
    /// The weight.
    "budget.context.shrink" => budget.plan.context.shrink;
    /// The fewest tokens.
    "budget.context.min" => budget.plan.context.min;
    /// The most tokens.
    "budget.context.max" like "4000" => budget.plan.context.max;
    /// The priority.
    "budget.memories.priority" => budget.plan.memories.priority;
    /// The weight.
    "budget.memories.shrink" => budget.plan.memories.shrink;
    /// The fewest tokens.
    "budget.memories.min" => budget.plan.memories.min;
    /// The most tokens.
    "budget.memories.max" => budget.plan.memories.max;
    /// The priority.
    "budget.completion.priority" => budget.plan.completion.priority;
    /// The lowest importance, from 0 to 1.
    "budget.memory.importance" => budget.plan.memory.importance;
    /// The oldest age in days.
    "budget.memory.days" => budget.plan.memory.days;
    /// The largest number of memories.
    "budget.memory.count" => budget.plan.memory.count;
    /// The base URL, including `/v1`.
    "upstream.url" like "\"http://127.0.0.1:11434/v1\"" => upstream.url;
    /// The protocol: "chat-completions", "responses" for OpenAI's Responses (only the gateway speaks
    /// it), or "messages" for Anthropic's Messages.
    "upstream.api" => upstream.api;
    /// The environment variable with the API key. Without it OPENAI_API_KEY is sent to OpenAI only,
    /// and ANTHROPIC_API_KEY to Anthropic only.
    "upstream.key_variable" like "\"MY_KEY\"" => upstream.key_variable;
    /// How the server accepts the beginning of an answer: "auto" finds out, "none" does not,
    /// "prefix" (Mistral, DeepSeek beta), "continue" (vLLM), "last-message" (llama.cpp, older Claude
    /// models), "raw" (plain completions).
    "upstream.prefill" => upstream.prefill;
    /// How the gateway finds out what the server is: "off", "ask" (only requests that generate no
    /// token), or "probe" (a local server that does not identify itself is asked for 8 tokens once).
    "upstream.discovery" => upstream.discovery;
    /// The time limit for a connection.
    "upstream.connect_timeout" => upstream.connect_timeout;
    /// The time limit for the first token of an answer.
    "upstream.response_timeout" => upstream.response_timeout;
    /// The time limit for each further token.
    "upstream.idle_timeout" => upstream.idle_timeout;
    /// How often a call is retried after a temporary failure.
    "upstream.retries" => upstream.retries;
    /// The continuation strategy: "prefill", "overlap", "remainder", or "auto", which uses the best
    /// one that the server supports and changes it after a failure.
    "complete.strategy" => complete.strategy;
    /// The largest number of calls for one answer.
    "complete.max_iterations" => complete.max_iterations;
    /// How many calls in a row may fail.
    "complete.max_failures" => complete.max_failures;
    /// The largest number of tokens of all calls together.
    "complete.max_output_tokens" like "65536" => complete.max_output_tokens;
    /// The time limit for a run.
    "complete.deadline" like "\"900s\"" => complete.deadline;
    /// How progress is measured: "ask" asks the model for a percentage in every answer, "measured"
    /// counts in the document what the model names once, "off" does not. With "ask" a very long
    /// document seems to stall, because a percentage cannot rise with every answer.
    "complete.progress" => complete.progress;
    /// After how many answers in a row without progress a run ends.
    "complete.kpi_patience" => complete.kpi_patience;
    /// The address of the store, `sqlite://FILE` or `postgres://USER:PASSWORD@HOST:PORT/DATABASE`.
    /// Without it overlock/runs.db in the user's data folder.
    "store.url" like "\"sqlite://runs.db\"" => store.url;
    /// The listen address. Addresses other than loopback require client keys.
    "serve.listen" => serve.listen;
    /// The environment variable with the API keys of clients, separated by blanks or commas.
    "serve.keys_variable" like "\"GATEWAY_KEYS\"" => serve.keys_variable;
    /// A file with the API keys of clients, one per line. Without both no key is required.
    "serve.keys_file" like "\"gateway.keys\"" => serve.keys_file;
    /// The format of the request log on standard error: "text", "json" or "off".
    "serve.log" => serve.log;
    /// What is recorded of a run: "full", "metadata" (figures and upstream errors, no prompts or
    /// answers) or "off". A request with an `Idempotency-Key` is recorded with its prompt and answers
    /// unless this is "off", which rejects such requests.
    "serve.record" => serve.record;
    /// The currency of model prices.
    "serve.currency" => serve.currency;
    /// Where traces are sent, as OTLP over HTTP in JSON. Without it
    /// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, or `/v1/traces` below OTEL_EXPORTER_OTLP_ENDPOINT, or
    /// nowhere. OTEL_EXPORTER_OTLP_HEADERS, OTEL_SERVICE_NAME and OTEL_SDK_DISABLED apply; the only
    /// protocol is "http/json". Traces contain no prompts and no answers.
    "serve.traces_url" like "\"http://127.0.0.1:4318/v1/traces\"" => serve.traces_url;
    /// The largest number of tokens of all calls for one request.
    "serve.max_total_tokens" => serve.max_total_tokens;
    /// Whether a partial document that is not streamed is closed to valid JSON.
    "serve.close_partial" => serve.close_partial;
    /// Whether a document that violates its schema is an error, even if the schema is not strict. A
    /// stream ends with the finish reason "length" instead.
    "serve.strict_schema" => serve.strict_schema;
    /// The largest request body in bytes.
    "serve.max_body_bytes" => serve.max_body_bytes;
    /// The time limit for the head of a request.
    "serve.head_timeout" => serve.head_timeout;
    /// The time limit for the body of a request.
    "serve.body_timeout" => serve.body_timeout;
    /// How long a client may accept no bytes before its connection is closed and the upstream call
    /// is cancelled.
    "serve.write_timeout" => serve.write_timeout;
    /// The largest number of requests processed at a time.
    "serve.max_concurrent_requests" => serve.max_concurrent_requests;
    /// The largest number of waiting requests; the next one gets 429.
    "serve.max_queued_requests" => serve.max_queued_requests;
    /// How long a request may wait before it gets 503.
    "serve.queue_timeout" => serve.queue_timeout;
    /// The largest number of open connections; fewer if the system allows fewer open files.
    "serve.max_connections" => serve.max_connections;
    /// The largest number of subscribers to `/api/runs/events`; the next one gets 429. They do not
    /// count as requests.
    "serve.max_event_subscribers" => serve.max_event_subscribers;
    /// How long running requests may finish after the gateway was stopped.
    "serve.shutdown_timeout" => serve.shutdown_timeout;
    /// After how much silence a stream sends a keep-alive comment.
    "serve.keep_alive" => serve.keep_alive;
    /// The time limit for one request, from the start of its processing to the end of its response.
    "serve.run_timeout" => serve.run_timeout;
    /// The largest answer of one call in bytes.
    "serve.max_answer_bytes" => serve.max_answer_bytes;
};

/// The settings of one model.
pub(super) const MODEL_KEYS: &[Key<OwnModel>] = keys! { OwnModel:
    /// The context window in tokens.
    "window" like "32768" => window;
    /// Whether input and answer share the window. With `false` the answer has its own `answer_cap`.
    "shared" => shared;
    /// The largest answer in tokens. Without it the window is the limit.
    "answer_cap" like "4096" => answer_cap;
    /// The tokenizer: an encoding ("o200k_base", "cl100k_base", …), a family from [tokenizers], or
    /// the path of a `tokenizer.json`. Without it counts are estimates.
    "tokenizer" like "\"tokenizers/my-model/tokenizer.json\"" => tokenizer;
    /// The path of its `tokenizer_config.json`. Without it the one in the folder of the tokenizer.
    "tokenizer_config" like "\"tokenizers/my-model/tokenizer_config.json\"" => tokenizer_config;
    /// The path of its chat template, if that is a separate file.
    "chat_template" like "\"tokenizers/my-model/chat_template.jinja\"" => chat_template;
    /// Whether the model accepts the beginning of its answer.
    "prefill" => prefill;
    /// Whether the model supports JSON mode.
    "json" => json;
    /// Whether the model calls tools.
    "tools" => tools;
    /// The price of a million input tokens, in `serve.currency`. Costs are shown for models with an
    /// input and an output price.
    "input_price" like "0.15" => input_price;
    /// The price of a million output tokens.
    "output_price" like "0.6" => output_price;
    /// The price of a million input tokens from the provider's cache. Without it the input price.
    "cached_input_price" like "0.075" => cached_input_price;
};
