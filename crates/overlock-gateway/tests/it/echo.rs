//! An upstream that records its requests, and waits for permits on one path.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use overlock_llm::testing::within_patience;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};

pub(crate) struct Echo {
    pub(crate) base: String,
    state: Arc<State>,
    /// Receives every arrival and every cancellation of a request to `/v1/wait`.
    pub(crate) events: mpsc::UnboundedReceiver<Event>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Arrived,
    GivenUp,
}

struct State {
    /// Each permit lets one request to `/v1/wait` continue.
    gate: Semaphore,
    requests: AtomicUsize,
    events: mpsc::UnboundedSender<Event>,
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

impl Echo {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let base = format!(
            "http://{}/base/v1",
            listener.local_addr().expect("an address")
        );
        let (sender, events) = mpsc::unbounded_channel();
        let state = Arc::new(State {
            gate: Semaphore::new(0),
            requests: AtomicUsize::new(0),
            events: sender,
        });
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                let service = service_fn(move |request| {
                    let state = Arc::clone(&state);
                    async move { Ok::<_, Infallible>(answer(request, state).await) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self {
            base,
            state,
            events,
        }
    }

    /// Lets a waiting request continue.
    pub(crate) fn let_one_go(&self) {
        self.state.gate.add_permits(1);
    }

    /// The number of requests so far.
    pub(crate) fn requests(&self) -> usize {
        self.state.requests.load(Ordering::SeqCst)
    }

    pub(crate) async fn next(&mut self) -> Event {
        let event = within_patience("a request upstream", self.events.recv()).await;
        event.expect("the upstream lives")
    }
}

/// Reports the cancellation of a waiting request.
struct Waiting<'a> {
    state: &'a State,
    is_done: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            let _ = self.state.events.send(Event::GivenUp);
        }
    }
}

async fn wait(state: &State) {
    let mut waiting = Waiting {
        state,
        is_done: false,
    };
    let _ = state.events.send(Event::Arrived);
    let permit = state.gate.acquire().await.expect("the gate stays");
    permit.forget();
    waiting.is_done = true;
}

async fn answer(request: Request<Incoming>, state: Arc<State>) -> Response<Body> {
    state.requests.fetch_add(1, Ordering::SeqCst);
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    if path == "/base/v1/wait" {
        wait(&state).await;
    }
    if path == "/base/v1/drip" {
        // One piece immediately, and one after a permit.
        let pieces = stream::unfold(0, move |sent| {
            let state = Arc::clone(&state);
            async move {
                if sent == 1 {
                    wait(&state).await;
                }
                let piece = Ok(Frame::data(Bytes::from(format!("piece {sent}\n"))));
                (sent < 2).then_some((piece, sent + 1))
            }
        });
        return Response::new(BodyExt::boxed_unsync(StreamBody::new(pieces)));
    }
    let Ok(body) = body.collect().await else {
        return Response::new(Full::default().boxed_unsync());
    };
    let body = body.to_bytes();
    let headers: Map<String, Value> = head
        .headers
        .iter()
        .map(|(name, value)| {
            (
                name.to_string(),
                json!(String::from_utf8_lossy(value.as_bytes())),
            )
        })
        .collect();
    let reported = json!({
        "method": head.method.as_str(),
        "uri": head.uri.to_string(),
        "headers": headers,
        "body": String::from_utf8_lossy(&body),
        "length": body.len(),
    });
    Response::builder()
        .status(if path == "/base/v1/teapot" { 418 } else { 200 })
        .header("content-type", "application/json")
        .header("x-of-the-upstream", "kept")
        .header("set-cookie", "one=1")
        .header("set-cookie", "two=2")
        .header("connection", "x-of-the-hop")
        .header("x-of-the-hop", "not kept")
        .body(Full::from(reported.to_string()).boxed_unsync())
        .expect("a response")
}
