//! A server that ends connections, is of a later version, or cannot be reached.
