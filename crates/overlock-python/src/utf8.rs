//! The UTF-8 of a `str`, without a copy if Python has it cached.
//!
//! `PyUnicode_AsUTF8AndSize` is in Python's stable interface only since 3.10, so `PyO3` copies every
//! `str` in a wheel that supports 3.9. But `CPython` exports it with the same signature since 3.3,
//! and releases before 3.10 will not change any more. On Windows the stable interface is a separate
//! library without it in 3.9. There, and for other interfaces, the type of `PyO3` is used.

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

    /// A `str` as UTF-8, readable without holding the interpreter.
    pub(crate) struct Utf8 {
        /// Points into `_text`.
        utf8: NonNull<str>,
        /// Keeps the string alive and prevents it from growing in place.
        _text: Py<PyString>,
    }

    // SAFETY: a `str` is immutable, and its UTF-8 does not move while the `str` exists, which is
    // held. Dropping it changes a reference count, which `Py` does safely.
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

        /// Fails for lone surrogates, which UTF-8 cannot encode.
        fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
            let text = given.cast::<PyString>()?;
            let mut len = 0;
            // SAFETY: the interpreter is attached, which `given` shows, `text` is a `str`, and
            // `len` can be written to.
            let bytes = unsafe { PyUnicode_AsUTF8AndSize(text.as_ptr(), &raw mut len) };
            let (false, Ok(len)) = (bytes.is_null(), usize::try_from(len)) else {
                return Err(PyErr::fetch(given.py()));
            };
            // SAFETY: a pointer that is not null points to so many bytes of UTF-8, owned by the
            // `str`.
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
