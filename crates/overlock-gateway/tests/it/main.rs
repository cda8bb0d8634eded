//! The gateway from outside, over real connections.

// What a client sees of a gateway, and the model behind it.
mod door;
// An upstream that says what it is told to.
mod fake;
// Answers that come at once.
mod whole;
// Answers that come as they are written.
mod stream;
// What is no document: tool calls, several answers, plain text, errors.
mod others;
// Clients that others wrote, which `cargo xtask test` installs.
mod clients;
