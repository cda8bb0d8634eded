//! The gateway from outside, over real connections.

// What a client sees of a gateway, and the model behind it.
mod door;
// An upstream that says what it is told to.
mod fake;
// An upstream that tells what it heard, and waits where it is told to.
mod echo;
// Pipelines as other processes run them.
mod stage;
// Answers that come at once.
mod whole;
// Answers that come as they are written.
mod stream;
// What is no document: tool calls, several answers, plain text, errors.
mod others;
// Streaming changes nothing but the time of arrival.
mod law;
// How the modules of the gateway depend on one another.
mod modules;
// What an answer is called at its end, streamed or not.
mod endings;
// Answers that violate a schema of their request.
mod schemas;
// Answers that the model is asked to correct.
mod corrections;
// What upstreams do that they should not, or not like this.
mod upstreams;
// Servers of known products.
mod servers;
// What failed with real models, each behaviour by its name.
mod real_models;
// What is kept, and what is not asked twice.
mod recorded;
// Strategies are reordered by what has worked.
mod strategies;
// First calls that fail for a reason that may pass.
mod retries;
// What is kept of a run, however its answer ended.
mod kept;
// What is said again to whoever asks the same with the same key.
mod keyed;
// What stands around a chat: routes, keys, places, the rest of `/v1/`, figures and logs.
mod shell;
// What a collector of traces is told.
mod traces;
// One object in, one object out, and recorded runs.
mod api;
// What answers cost in tokens.
mod cost;
// Runs that are looked for among all that are recorded, and what they took together.
mod found;
// What is told of runs of pipelines, which other processes make.
mod pipelines;
// What is told of runs while they happen.
mod events;
// Clients that mean harm, or cannot do better.
mod hostile;
// The gateway and its description, which `cargo xtask test` has compared.
mod described;
// Clients that others wrote, which `cargo xtask test` installs.
mod clients;
// The page, as files and in a browser, which `cargo xtask test` installs.
mod page;
