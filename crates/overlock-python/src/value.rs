//! Builds Python objects from a scanner's events.
//!
//! Containers are inserted into the document when they open, so the root is always the document so
//! far: finished parts are shared, and only the value at the cut changes. Nothing recurses, so the
//! depth of a document is not limited.

use overlock_json::{Container, CutPlace, Scalar, Scanner, Visitor};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::decode::Until;
use crate::grow;
use crate::scalar::{cleaned_string, is_float, literal, number};
use crate::strings::{LONGEST_KEPT_VALUE, Strings};

/// Callbacks that create some values, as in Python's `json.loads`.
#[derive(Default)]
pub(crate) struct Hooks {
    pub(crate) parse_int: Option<Py<PyAny>>,
    pub(crate) parse_float: Option<Py<PyAny>>,
    pub(crate) object_hook: Option<Py<PyAny>>,
    pub(crate) object_pairs_hook: Option<Py<PyAny>>,
}

impl Hooks {
    /// Whether there are no hooks.
    pub(crate) fn are_none(&self) -> bool {
        let Self {
            parse_int,
            parse_float,
            object_hook,
            object_pairs_hook,
        } = self;
        [parse_int, parse_float, object_hook, object_pairs_hook]
            .iter()
            .all(|hook| hook.is_none())
    }
}

/// A document in progress.
#[derive(Default)]
pub(crate) struct Builder {
    hooks: Hooks,
    root: Option<Py<PyAny>>,
    open: Vec<Open>,
    /// Whether the current value is already in the document.
    placed: bool,
    /// The part of the current string, as written, that is not in the document yet.
    text: Vec<u8>,
    /// The current number or literal, as written.
    bare: Vec<u8>,
    /// A buffer for decoding strings.
    decoded: Vec<u8>,
    error: Option<PyErr>,
}

/// An open container with the name of its current member.
enum Open {
    Array(Py<PyList>),
    Object(Py<PyDict>, Option<Py<PyString>>),
    /// An object for a hook, as a list of pairs.
    Pairs(Py<PyList>, Option<Py<PyString>>),
}

impl Builder {
    pub(crate) fn with_hooks(hooks: Hooks) -> Self {
        Self {
            hooks,
            ..Self::default()
        }
    }

    /// The value of a complete document in one or several pieces.
    pub(crate) fn whole<'py>(
        &mut self,
        py: Python<'py>,
        pieces: &[&str],
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut scanner = Scanner::new();
        for piece in pieces {
            self.feed(py, &mut scanner, piece.as_bytes())?;
        }
        let value = self.value(py, &scanner)?;
        value.ok_or_else(|| PyRuntimeError::new_err("the document has no value"))
    }

    /// Feeds a scanner and applies its events.
    pub(crate) fn feed(
        &mut self,
        py: Python<'_>,
        scanner: &mut Scanner,
        piece: &[u8],
    ) -> PyResult<()> {
        let mut building = Building {
            py,
            builder: self,
            strings: Strings::borrow(),
        };
        scanner.feed_with(piece, &mut building);
        drop(building);
        self.error.take().map_or(Ok(()), Err)
    }

    /// The document so far; nothing if there is none yet.
    ///
    /// It is the same growing object every time.
    pub(crate) fn value<'py>(
        &mut self,
        py: Python<'py>,
        scanner: &Scanner,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match scanner.place() {
            Some(CutPlace::String | CutPlace::Escape) => self.show_text(py, Until::Now)?,
            Some(CutPlace::Literal) => {
                let literal = literal(py, &self.bare);
                self.place(py, literal)?;
            }
            // A number at the root has no value before it is valid, and more digits may follow.
            Some(CutPlace::Number) if self.open.is_empty() => {
                return scanner.is_complete().then(|| self.number(py)).transpose();
            }
            _ => {}
        }
        Ok(self.root.as_ref().map(|root| root.bind(py).clone()))
    }

    /// Adds the new part of the current string to the document.
    fn show_text(&mut self, py: Python<'_>, until: Until) -> PyResult<()> {
        if self.placed && self.text.is_empty() {
            return Ok(());
        }
        let (more, read) = cleaned_string(py, &self.text, until, &mut self.decoded)?;
        self.text.drain(..read);
        let text = if self.placed {
            grow::append(self.take_shown(py)?, &more)?
        } else {
            more
        };
        self.place(py, text.into_any())
    }

    /// Removes the partial string from the document, so that it can grow in place.
    fn take_shown<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        let shown = match self.open.last() {
            None => self.root.take().map(|root| root.into_bound(py)),
            Some(Open::Array(items) | Open::Pairs(items, _)) => {
                let items = items.bind(py);
                items.len().checked_sub(1).and_then(|last| {
                    let shown = items.get_item(last).ok()?;
                    items.set_item(last, py.None()).ok()?;
                    Some(shown)
                })
            }
            Some(Open::Object(members, name)) => {
                let members = members.bind(py);
                let shown = members.get_item(name)?;
                members.set_item(name, py.None())?;
                shown
            }
        };
        shown
            .and_then(|shown| shown.cast_into::<PyString>().ok())
            .ok_or_else(|| {
                PyRuntimeError::new_err(
                    "the document was changed while it was growing; change a copy of it",
                )
            })
    }

    /// Puts a value at the scanner's position, replacing the current one.
    fn place(&mut self, py: Python<'_>, value: Bound<'_, PyAny>) -> PyResult<()> {
        let placed = std::mem::replace(&mut self.placed, true);
        match self.open.last() {
            None => self.root = Some(value.unbind()),
            Some(Open::Array(items)) => put(items.bind(py), placed, &value)?,
            Some(Open::Object(members, name)) => {
                if let Some(name) = name {
                    members.bind(py).set_item(name.bind(py), value)?;
                }
            }
            Some(Open::Pairs(pairs, name)) => {
                let pair = (name, value).into_pyobject(py)?;
                put(pairs.bind(py), placed, &pair)?;
            }
        }
        Ok(())
    }

    fn begin(&mut self, py: Python<'_>, container: Container) -> PyResult<()> {
        let pairs = self.hooks.object_pairs_hook.is_some();
        let opened = match container {
            Container::Object if !pairs => {
                let members = PyDict::new(py);
                self.place(py, members.clone().into_any())?;
                Open::Object(members.unbind(), None)
            }
            _ => {
                let items = PyList::empty(py);
                self.place(py, items.clone().into_any())?;
                match container {
                    Container::Array => Open::Array(items.unbind()),
                    Container::Object => Open::Pairs(items.unbind(), None),
                }
            }
        };
        self.open.push(opened);
        self.placed = false;
        Ok(())
    }

    fn end(&mut self, py: Python<'_>) -> PyResult<()> {
        // The container was inserted when it opened.
        self.placed = true;
        let hooked = match (self.open.pop(), &self.hooks) {
            (
                Some(Open::Pairs(pairs, _)),
                Hooks {
                    object_pairs_hook: Some(hook),
                    ..
                },
            ) => Some(hook.bind(py).call1((pairs,))?),
            (
                Some(Open::Object(members, _)),
                Hooks {
                    object_hook: Some(hook),
                    ..
                },
            ) => Some(hook.bind(py).call1((members,))?),
            _ => None,
        };
        if let Some(hooked) = hooked {
            self.place(py, hooked)?;
        }
        self.placed = false;
        Ok(())
    }

    fn name(&mut self, py: Python<'_>, raw: &[u8], strings: &mut Strings) -> PyResult<()> {
        let made = || Ok(cleaned_string(py, raw, Until::End, &mut self.decoded)?.0);
        let name = strings.get(py, raw, made)?;
        if let Some(Open::Object(_, current) | Open::Pairs(_, current)) = self.open.last_mut() {
            *current = Some(name.unbind());
        }
        Ok(())
    }

    fn scalar(&mut self, py: Python<'_>, kind: Scalar) -> PyResult<()> {
        match kind {
            Scalar::String => self.show_text(py, Until::End)?,
            Scalar::Number => {
                let number = self.number(py)?;
                self.place(py, number)?;
            }
            Scalar::Bool | Scalar::Null => {
                let literal = literal(py, &self.bare);
                self.place(py, literal)?;
            }
        }
        self.bare.clear();
        self.placed = false;
        Ok(())
    }

    /// Adds a complete value.
    fn whole_scalar(
        &mut self,
        py: Python<'_>,
        kind: Scalar,
        raw: &[u8],
        strings: &mut Strings,
    ) -> PyResult<()> {
        let value = match kind {
            Scalar::String if raw.len() <= LONGEST_KEPT_VALUE => {
                let made = || Ok(cleaned_string(py, raw, Until::End, &mut self.decoded)?.0);
                strings.get(py, raw, made)?.into_any()
            }
            Scalar::String => {
                let (text, _) = cleaned_string(py, raw, Until::End, &mut self.decoded)?;
                text.into_any()
            }
            Scalar::Number => {
                self.bare.extend_from_slice(raw);
                let number = self.number(py);
                self.bare.clear();
                number?
            }
            Scalar::Bool | Scalar::Null => literal(py, raw),
        };
        self.place(py, value)?;
        self.placed = false;
        Ok(())
    }

    fn number<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let (None, None) = (&self.hooks.parse_int, &self.hooks.parse_float) {
            return number(py, &self.bare);
        }
        let written = std::str::from_utf8(&self.bare).expect("numbers are ASCII");
        let hook = if is_float(&self.bare) {
            &self.hooks.parse_float
        } else {
            &self.hooks.parse_int
        };
        match hook {
            Some(hook) => hook.bind(py).call1((written,)),
            None => number(py, &self.bare),
        }
    }
}

fn put<'py>(
    items: &Bound<'py, PyList>,
    placed: bool,
    value: &Bound<'py, impl Sized>,
) -> PyResult<()> {
    match items.len().checked_sub(1) {
        Some(last) if placed => items.set_item(last, value.as_any()),
        _ => items.append(value.as_any()),
    }
}

/// A visitor that passes a scanner's events to a builder.
struct Building<'a, 'py> {
    py: Python<'py>,
    builder: &'a mut Builder,
    strings: Strings,
}

impl Building<'_, '_> {
    /// Does nothing after an error.
    fn make(&mut self, make: impl FnOnce(&mut Builder, Python<'_>) -> PyResult<()>) {
        if self.builder.error.is_none() {
            self.builder.error = make(self.builder, self.py).err();
        }
    }
}

impl Visitor for Building<'_, '_> {
    fn open(&mut self, container: Container) {
        self.make(|builder, py| builder.begin(py, container));
    }

    fn close(&mut self, _: Container) {
        self.make(Builder::end);
    }

    fn key(&mut self, raw: &[u8]) {
        let Self {
            py,
            builder,
            strings,
        } = self;
        if builder.error.is_none() {
            builder.error = builder.name(*py, raw, strings).err();
        }
    }

    fn whole_scalar(&mut self, kind: Scalar, raw: &[u8]) {
        let Self {
            py,
            builder,
            strings,
        } = self;
        if builder.error.is_none() {
            builder.error = builder.whole_scalar(*py, kind, raw, strings).err();
        }
    }

    fn text(&mut self, raw: &[u8]) {
        self.builder.text.extend_from_slice(raw);
    }

    fn bare(&mut self, raw: &[u8]) {
        self.builder.bare.extend_from_slice(raw);
    }

    fn scalar(&mut self, kind: Scalar) {
        self.make(|builder, py| builder.scalar(py, kind));
    }
}
