//! Allows `cargo build` to link the extension on systems whose linkers require all symbols, which
//! the Python interpreter provides at run time. Also sets the `cfg`s of the Python interface.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
    pyo3_build_config::add_extension_module_link_args();
}
