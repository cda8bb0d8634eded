//! stub
use crate::{Closing, Cut, Place};
use serde::{Deserialize, Serialize};
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Container { Object, Array }
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scalar { String, Number, Bool, Null }
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct Offence { pub offset: usize, pub kind: OffenceKind }
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum OffenceKind { #[error("stub")] Stub }
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scanner {}
impl Scanner {
    pub fn new() -> Self { Self::default() }
    pub fn feed(&mut self, _piece: &[u8]) { todo!() }
    pub fn feed_with(&mut self, _piece: &[u8], _visitor: &mut impl Visitor) { todo!() }
    pub fn offset(&self) -> usize { todo!() }
    pub fn offence(&self) -> Option<&Offence> { todo!() }
    pub fn is_complete(&self) -> bool { todo!() }
    pub fn cut(&self) -> Option<Cut> { todo!() }
    pub fn place(&self) -> Place { todo!() }
    pub fn path(&self) -> String { todo!() }
    pub fn depth(&self) -> usize { todo!() }
    pub fn closing(&self, _strict: bool) -> Option<Closing> { todo!() }
}
/// What is told of a document while it is scanned; the default methods do nothing.
pub trait Visitor {
    /// A container opens.
    fn open(&mut self, _container: Container) {}
    /// A container closes.
    fn close(&mut self, _container: Container) {}
    /// A whole key, as written, without its quotes.
    fn key(&mut self, _raw: &[u8]) {}
    /// A piece of a string value as written, without its quotes; may split an escape.
    fn text(&mut self, _raw: &[u8]) {}
    /// A value that is no container has ended.
    fn scalar(&mut self, _kind: Scalar) {}
}
impl Visitor for () {}
