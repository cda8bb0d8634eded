//! A store at its door: whatever engine is behind it, the same holds.

// The engines, and every law for each of them.
mod engines;
// Files become nodes, and go.
mod indexing;
// What personas remember.
mod memories;
// The processes that read and write one file, and what becomes of it when one is killed.
mod processes;
// Mentions become edges.
mod resolving;
// What is said in rooms.
mod rooms;
// What happens in runs, and who may write to them.
mod runs;
// Nodes are found by words.
mod searching;
// What only a server does: end connections, be of a later version, be somewhere else.
mod server;
// Nodes for tests.
mod sketch;
// Which strategies have worked for models.
mod strategies;
// The way to a server, encrypted or not.
mod tls;
// Nodes are found by vectors, and by both.
mod vectors;
// Edges are followed.
mod walking;
