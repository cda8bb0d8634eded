//! What every store promises, whatever keeps it.

/// Where the stores of the tests are: each test has its own.
mod engines;
/// Runs and who may write to them, the same on every engine.
mod runs;

/// What only a server can do: end a connection, refuse a certificate, be of a later version.
mod server;
