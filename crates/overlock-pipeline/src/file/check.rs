//! s
use super::{Checked, ReadOptions};
/// s
pub fn read(name: &str, text: &str, options: &ReadOptions<'_>) -> Checked {
    let _ = (name, text, options);
    unimplemented!()
}
