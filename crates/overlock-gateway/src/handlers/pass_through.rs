//! All the rest below `/v1/`: the upstream's own answer, untouched.

use http_body_util::BodyExt;
use hyper::Response;

use crate::body::Passing;
use crate::routes::{Call, Handled};
use crate::upstream::without_connection;

/// What all paths of the upstream begin with here; there it is the end of its address.
const VERSION: &str = "/v1";

pub(crate) async fn answer(call: Call) -> Handled {
    let settings = &call.gateway.settings;
    let upstream = settings.upstream.address()?;
    let (head, body) = call.request.into_parts();
    let path = head.uri.path_and_query().map_or("", |path| path.as_str());
    let path = path.strip_prefix(VERSION).unwrap_or(path);
    let key_is_ours = !settings.keys.is_empty();
    let client = &call.gateway.client;
    let headers = client.untouched_headers(&head.headers, key_is_ours);
    let (body, passed) = Passing::new(body, &settings.limits)?;
    let answer = client
        .send(head.method, upstream, path, headers, body.boxed_unsync())
        .await
        // What looks like a fault of the upstream may be one of the client.
        .map_err(|error| passed.fault().unwrap_or(error))?;
    let (status, mut headers) = (answer.status, answer.headers.clone());
    without_connection(&mut headers);
    let mut reply = Response::new(answer.into_body());
    *reply.status_mut() = status;
    *reply.headers_mut() = headers;
    Ok(reply)
}
