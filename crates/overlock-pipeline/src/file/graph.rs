//! s
use super::Pipeline;
/// s
pub fn graph(pipeline: &Pipeline) -> String {
    let _ = pipeline;
    unimplemented!()
}

/// s
pub fn drawing(pipeline: &Pipeline) -> String {
    let _ = pipeline;
    unimplemented!()
}
