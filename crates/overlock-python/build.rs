//! Lets a plain `cargo build` link the library on systems whose linkers want every symbol known:
//! Python's come from whoever loads it. For wheels maturin does the same. The code is told which
//! interface of Python it is built for.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
    pyo3_build_config::add_extension_module_link_args();
}
