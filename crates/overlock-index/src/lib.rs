//! Fills a store from a folder of source files.
//!
//! [`index`] finds the files of a folder that are not ignored, splits the changed ones into nodes,
//! stores the nodes, and removes the nodes of deleted files. Each batch of files is committed in one
//! transaction, so an interrupted index can be resumed. [`fill_vectors`] stores embeddings of nodes;
//! the caller computes them. Spans of nodes are offsets in the decoded text, which can differ from
//! the bytes of the file.
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

// Finds and decodes the files.
mod decode;
mod folder;

// Stores their nodes and vectors.
mod file;
mod index;
mod vectors;

pub use decode::{Decoded, decode};
pub use file::VERSION;
pub use index::{Ignored, IndexError, IndexOptions, Indexed, Observe, SkipReason, Skipped, index};
pub use vectors::{Filled, VectorsError, fill_vectors};
