//! s
/// s
pub fn schema() -> serde_json::Value {
    unimplemented!()
}
