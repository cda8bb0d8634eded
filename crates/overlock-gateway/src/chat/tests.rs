//! The memory of a request that waits.

use serde_json::json;

use super::*;
use crate::settings::{Settings, Upstream};

#[test]
fn a_waiting_request_takes_little_memory() {
    let settings = Settings::new(Upstream::none());
    let gateway = Arc::new(Gateway::new(settings, None).expect("a gateway"));
    let incoming = IncomingRequest {
        gateway,
        stats: Arc::new(RequestStats::default()),
        protocol: Protocol::ChatCompletions,
        headers: HeaderMap::new(),
        query: None,
        deadline: Instant::now(),
    };
    let message = json!({ "role": "user", "content": "Hello" });
    let request = json!({ "model": demo::MODEL, "messages": [message] }).to_string();
    let run = incoming.read(request.into()).map_err(|it| it.message);
    let size = size_of_val(&answer(run.expect("it fits")));
    assert!(size <= 1 << 10, "it takes {size} bytes");
}
