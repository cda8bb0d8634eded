//! Tests of the public API. The same laws hold for every engine.

// The engines, and the laws for each of them.
mod engines;
// Storing and removing files.
mod indexing;
// Memories of personas.
mod memories;
// Several processes with one file, some of which are killed.
mod processes;
// Resolving mentions to edges.
mod resolving;
// Messages in rooms.
mod rooms;
// Runs, and the right to write to them.
mod runs;
// Keyword search.
mod searching;
// What only a server can do: end connections, refuse permissions, be unreachable.
mod server;
// Test data.
mod sketch;
// Results of strategies.
mod strategies;
// Encrypted connections to a server.
mod tls;
// Vector search and hybrid search.
mod vectors;
// Walks over edges.
mod walking;
