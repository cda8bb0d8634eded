//! The gateway from outside, over real connections.

// What a client sees of a gateway, and the model behind it.
mod door;
// Answers that come at once.
mod whole;
// Answers that come as they are written.
mod stream;
