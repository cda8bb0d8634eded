//! The UTF-8 of a `str`, without a copy where Python has it already.
//!
//! What gives it, `PyUnicode_AsUTF8AndSize`, belongs to Python's stable interface since 3.10, so
//! that `PyO3` copies every `str` in a wheel that serves 3.9 too. It is older than that: every
//! `CPython` since 3.3 exports it with the same signature, and only the headers of 3.9 hide it from
//! whoever keeps to the stable interface. Versions before 3.10 get no more releases that could take
//! it away. On Windows the stable interface is a library of its own, which lacks it in 3.9: there,
//! and for whoever builds for another interface, `PyO3` has the better way.

#[cfg(any(windows, Py_3_10, not(Py_LIMITED_API)))]
pub(crate) use pyo3::pybacked::PyBackedStr as Utf8;

#[cfg(not(any(windows, Py_3_10, not(Py_LIMITED_API))))]
pub(crate) use borrowed::Utf8;

#[cfg(not(any(windows, Py_3_10, not(Py_LIMITED_API))))]
mod borrowed {
    use std::ffi::c_char;
    use std::ops::Deref;
    use std::ptr::NonNull;
    use std::slice;

    use pyo3::ffi;
    use pyo3::prelude::*;
    use pyo3::types::PyString;

    unsafe extern "C" {
        fn PyUnicode_AsUTF8AndSize(
            text: *mut ffi::PyObject,
            len: *mut ffi::Py_ssize_t,
        ) -> *const c_char;
    }

    /// A `str` that is read as UTF-8, also while the interpreter is set free.
    pub(crate) struct Utf8 {
        /// Points into what `_text` owns.
        utf8: NonNull<str>,
        /// Held so that nobody frees it, or lets it grow in its place.
        _text: Py<PyString>,
    }

    // SAFETY: a `str` does not change, and its UTF-8 stays where it is as long as there is the
    // `str`, which is held. Only a reference count is touched otherwise, and `Py` sees to that.
    unsafe impl Send for Utf8 {}

    // SAFETY: it is only ever read.
    unsafe impl Sync for Utf8 {}

    impl Deref for Utf8 {
        type Target = str;

        fn deref(&self) -> &str {
            // SAFETY: the `str` it points into is held by `self`, and does not change.
            unsafe { self.utf8.as_ref() }
        }
    }

    impl FromPyObject<'_, '_> for Utf8 {
        type Error = PyErr;

        /// Lone surrogates, which no UTF-8 has, are an error.
        fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
            let text = given.cast::<PyString>()?;
            let mut len = 0;
            // SAFETY: the interpreter is attached, which `given` shows, `text` is a `str`, and
            // `len` can be written to.
            let bytes = unsafe { PyUnicode_AsUTF8AndSize(text.as_ptr(), &raw mut len) };
            let (false, Ok(len)) = (bytes.is_null(), usize::try_from(len)) else {
                return Err(PyErr::fetch(given.py()));
            };
            // SAFETY: that is where so many bytes of UTF-8 begin, as Python promises of what is
            // not null. They are the `str`'s own.
            let utf8 = unsafe {
                let bytes = slice::from_raw_parts(bytes.cast::<u8>(), len);
                str::from_utf8_unchecked(bytes)
            };
            Ok(Self {
                utf8: NonNull::from(utf8),
                _text: text.to_owned().unbind(),
            })
        }
    }
}
