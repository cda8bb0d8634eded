//! stub
use crate::{CloseOptions, Closed, ContextOptions, Contexts, Cut, Fix, NoJson, RenderOptions, Scanner};
use std::borrow::Cow;
#[derive(Clone, Debug)]
pub struct Base<'a> { text: Cow<'a, [u8]>, scanner: Scanner, fixes: Vec<Fix> }
impl<'a> Base<'a> {
    pub fn read<T: AsRef<[u8]> + ?Sized>(_text: &'a T) -> Result<Self, NoJson> { todo!() }
    pub fn text(&self) -> &[u8] { &self.text }
    pub fn scanner(&self) -> &Scanner { &self.scanner }
    pub fn cut(&self) -> Option<Cut> { todo!() }
    pub fn is_complete(&self) -> bool { todo!() }
    pub fn fixes(&self) -> &[Fix] { &self.fixes }
    pub fn close(&self, _options: &CloseOptions) -> Closed { todo!() }
    pub fn contexts(&self, _options: &ContextOptions) -> Contexts { todo!() }
    pub fn render(&self, _options: &RenderOptions) -> String { todo!() }
}
