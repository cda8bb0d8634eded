//! stub
use crate::Closing;
pub fn close_trusted(_text: &[u8]) -> Closing {
    todo!()
}
