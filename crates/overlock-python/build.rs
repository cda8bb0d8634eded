//! Lets a plain `cargo build` link the library on systems whose linkers want every symbol known:
//! Python's come from whoever loads it. For wheels maturin does the same.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
