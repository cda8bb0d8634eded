//! Plans of chat requests.

// Plans that can be checked by hand.
mod cases;
// Properties of plans, over a million random requests.
mod laws;
// The same properties under other rules.
mod rules;
// Compact descriptions of requests.
mod sketch;
