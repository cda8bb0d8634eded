//! The Python package `overlock`.
//!
//! The binding only translates arguments and results, and releases the interpreter while the crates
//! work. What is easier to write in Python (`complete`, the adapters, the exceptions) is in
//! `python/overlock`.

#![expect(
    clippy::needless_pass_by_value,
    clippy::too_many_arguments,
    reason = "PyO3 passes arguments by value, and Python has keyword arguments"
)]

// Arguments and errors.
mod count;
mod embedder;
mod error;
mod raised;
mod request;
mod result;
mod store;
mod text;
mod utf8;

// JSON to Python objects.
mod decode;
mod grow;
mod scalar;
mod strings;
mod value;
mod whole;

// The functions and classes.
mod budget;
mod code;
mod continuation;
mod index;
mod json;
mod pipeline;
mod scanner;
mod server;
mod tokens;

use pyo3::prelude::*;

#[pymodule]
mod _overlock {
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python uses")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
    #[pymodule_export]
    use crate::budget::{adjusted_max_tokens, plan, safe_message_count};
    #[pymodule_export]
    use crate::code::{classify, compact};
    #[pymodule_export]
    use crate::continuation::Continuation;
    #[pymodule_export]
    use crate::index::index;
    #[pymodule_export]
    use crate::json::{close, contexts, cut, delivered, extract, loads, render, repair, stitch};
    #[pymodule_export]
    use crate::pipeline::Pipeline;
    #[pymodule_export]
    use crate::scanner::Scanner;
    #[pymodule_export]
    use crate::server::discover;
    #[pymodule_export]
    use crate::tokens::{count_tokens, model_info, truncate_to_tokens};
}
