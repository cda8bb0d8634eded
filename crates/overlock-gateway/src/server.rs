//! Accepts connections until it is told to stop.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use crate::gateway::Gateway;
use crate::routes;

impl Gateway {
    /// Serves until `stop` is done, and then until the requests are that are being worked on.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
    ) -> std::io::Result<()> {
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut stop => return Ok(()),
            };
            let Ok((stream, _)) = accepted else { continue };
            let _ = stream.set_nodelay(true);
            let gateway = Arc::clone(&self);
            let head_time = gateway.settings.limits.head_time;
            let service = service_fn(move |request| {
                let gateway = Arc::clone(&gateway);
                async move { Ok::<_, Infallible>(routes::answer(gateway, request).await) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(head_time)
                .serve_connection(TokioIo::new(stream), service);
            tokio::spawn(connection);
        }
    }
}
