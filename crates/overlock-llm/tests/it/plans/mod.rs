//! Plans of chat requests.

// Plans that can be checked by hand.
mod cases;
// Properties of plans, over a million random requests.
mod laws;
// Random sketches, the same every time.
mod numbers;
// What is dropped fits in place of nothing that stays.
mod order;
// What is sent, recounted by `tiktoken`.
mod recount;
// How tool results are shortened, and the order in which parts give way.
mod results;
// The same properties under other rules.
mod rules;
// Compact descriptions of requests.
mod sketch;
