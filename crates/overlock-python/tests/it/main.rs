//! What the crates answer to the cases that the Python tests ask too.

// The cases that both doors share.
mod vectors;
