//! All the rest below `/v1/`: the upstream's own answer, untouched.

use http_body_util::BodyExt;
use hyper::Response;
use hyper::header::CONTENT_LENGTH;

use crate::body::{Passing, whole};
use crate::routes::{Call, Handled};
use crate::upstream::without_connection;

/// What all paths of the upstream begin with here; there it is the end of its address.
const VERSION: &str = "/v1";

/// A refusal is no longer than this.
const LONGEST_REFUSAL: usize = 1 << 20;

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
        .send(
            head.method,
            (upstream, path),
            headers,
            body.boxed_unsync(),
            Some(call.deadline),
        )
        .await
        // What looks like a fault of the upstream may be one of the client.
        .map_err(|error| passed.fault().unwrap_or(error))?;
    let (status, mut headers) = (answer.status, answer.headers.clone());
    without_connection(&mut headers);
    let is_refused = status.is_client_error() || status.is_server_error();
    // A refusal may say the key back; what is packed cannot be looked into.
    let body = if is_refused && client.has_key() && answer.packing().is_none() {
        let mut answer = answer;
        let said = answer.read_whole(LONGEST_REFUSAL).await?;
        headers.remove(CONTENT_LENGTH);
        whole(client.bytes_without_key(said))
    } else {
        answer.into_body()
    };
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    *reply.headers_mut() = headers;
    Ok(reply)
}
