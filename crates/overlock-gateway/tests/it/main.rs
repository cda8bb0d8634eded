//! Tests of the gateway over real connections.

// A gateway in front of a model, and a client for it.
mod door;
// An upstream with a list of replies.
mod fake;
// The log of a test.
mod captured_log;
// An upstream that records its requests and can wait.
mod echo;
// Pipelines as other processes run them.
mod stage;
// Answers that are not streamed.
mod whole;
// Streamed answers.
mod stream;
// Tool calls, several choices, plain text and errors.
mod others;
// Responses that continue other responses, and errors before the first call.
mod chained;
// The Messages door.
mod messages;
// The Responses door.
mod responses;
// Streaming changes nothing but the time of arrival.
mod law;
// How the modules of the gateway depend on one another.
mod modules;
// The finish reasons of answers, streamed or not.
mod endings;
// Answers that violate a schema of their request.
mod schemas;
// Answers that the model is asked to correct.
mod corrections;
// Misbehaviour of upstreams.
mod upstreams;
// Servers of known products.
mod servers;
// Behaviour of real models that failed once.
mod real_models;
// Recorded runs and idempotency keys.
mod recorded;
// Strategies are reordered by their success.
mod strategies;
// First calls that fail temporarily.
mod retries;
// The records of runs, for every kind of end.
mod kept;
// Replays for retries with the same key.
mod keyed;
// Routes, keys, queue, forwarded paths, metrics and logs.
mod shell;
// Exported traces.
mod traces;
// The JSON API.
mod api;
// The token cost of answers.
mod cost;
// Search in recorded runs, and totals.
mod found;
// Pipelines of other processes.
mod pipelines;
// Event streams of runs.
mod events;
// Hostile and broken clients.
mod hostile;
// The gateway and its API description, compared by `cargo xtask test`.
mod described;
// Third-party clients, which `cargo xtask test` installs.
mod clients;
// The page, as files and in a browser, which `cargo xtask test` installs.
mod page;
