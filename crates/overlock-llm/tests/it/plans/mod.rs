//! Plans of chat requests.

// Plans that can be checked by hand.
mod cases;
// The laws of plans, over requests of every shape and a million of them.
mod laws;
// The same laws under any rules.
mod rules;
// Requests that are only sketched.
mod sketch;
