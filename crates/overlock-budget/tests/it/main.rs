//! The budget at its door, with requests as programs send them.

// The laws of plans, over requests of every shape and a million of them.
mod planning;
// Requests that are only sketched.
mod sketch;
