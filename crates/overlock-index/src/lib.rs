//! Fills a store from a folder of sources.
//!
//! [`index`] finds the files of a folder that are not ignored, takes those apart that have changed,
//! keeps what they define, and removes what is gone. Every batch of files is on the disk as a whole,
//! so that an index that is stopped, or killed, goes on where it was. [`fill_vectors`] gives nodes
//! the vectors of an embedding model, whoever computes them. Spans of nodes are those of the text,
//! which is not always what the bytes of the file are.
//!
//! ```
//! use overlock_index::{Ignored, IndexOptions, index};
//! use overlock_store::{Filter, Query, Search};
//!
//! let folder = tempfile::tempdir()?;
//! std::fs::write(folder.path().join("Cart.cs"), "class Cart { int Total() { return 1; } }")?;
//! let store = overlock_store::in_memory()?;
//! let indexed = index(&*store, "shop", folder.path(), IndexOptions::default(), &mut Ignored)?;
//! assert_eq!((indexed.changed, indexed.nodes), (1, 3));
//!
//! let query = Query { search: Search::Keyword("total"), filter: Filter::default(), limit: 5 };
//! assert_eq!(store.search(&query)?[0].node.qualified, "Cart.Total");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Which files, and what they say.
mod decode;
mod folder;

// What is kept of them.
mod file;
mod index;
mod vectors;

pub use decode::{Decoded, decode};
pub use file::VERSION;
pub use index::{Ignored, IndexError, IndexOptions, Indexed, Observe, Skipped, Why, index};
pub use vectors::{Filled, VectorsError, fill_vectors};
