//! Accepts connections until shutdown.

use std::future::pending;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures_util::future::{AbortHandle, Abortable};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use overlock_runs::FLUSH_TIMEOUT;
#[cfg(target_os = "linux")]
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use crate::gateway::Gateway;
use crate::handlers::Peer;
use crate::routes;
use crate::write_timeout::WriteTimeout;

/// The longest request head.
const HEAD_BYTES: usize = 64 << 10;

/// The pause after a failed accept, such as without free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Whether an accept failed because of its client only.
fn is_of_one_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::Interrupted
    )
}

/// Limits the unsent bytes in the send buffer of a client.
///
/// A socket is only writable again when a part of its send buffer is free. With megabytes in the
/// buffer, a slow client would look like one that does not read.
fn few_unsent_bytes(stream: &TcpStream) {
    #[cfg(target_os = "linux")]
    {
        const UNSENT_BYTES: u32 = 128 << 10;
        // If it fails, only very slow clients are affected.
        let _ = SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = stream;
}

/// How often the end of the last runs is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The time for subscribers to read the last events.
const LAST_EVENTS: Duration = Duration::from_millis(500);

impl Gateway {
    /// Serves until `stop` is done, then waits for the requests in progress, up to the shutdown time.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let limits = self.settings.limits;
        let graceful = GracefulShutdown::new();
        let router = routes::router(&self);
        let most = limits.connections.min(Semaphore::MAX_PERMITS);
        let connections = Arc::new(Semaphore::new(most));
        let exporting = self.exporter.clone();
        let exporting = exporting.map(|exporter| tokio::spawn(async move { exporter.run().await }));
        let mut stop = std::pin::pin!(stop);
        loop {
            // Connections over the limit wait in the backlog of the operating system.
            let next = async {
                let permit = Arc::clone(&connections).acquire_owned().await;
                (permit, listener.accept().await)
            };
            let (permit, accepted) = tokio::select! {
                next = next => next,
                () = &mut stop => break,
            };
            match (permit, accepted) {
                (Ok(permit), Ok((stream, client))) => {
                    let connection = (stream, client, router.clone());
                    self.serve_connection(connection, graceful.watcher(), permit);
                }
                (_, Err(error)) if is_of_one_client(&error) => {}
                _ => sleep(ACCEPT_PAUSE).await,
            }
        }
        drop(listener);
        // After the shutdown time the process ends, with open requests.
        let _ = timeout(limits.shutdown_time, async {
            tokio::select! {
                () = graceful.shutdown() => {}
                () = self.close_events() => {}
            }
        })
        .await;
        if let Some(recorder) = &self.recorder {
            // The records of the last answers may still wait to be written.
            let _ = timeout(FLUSH_TIMEOUT, recorder.settle()).await;
        }
        if let (Some(exporter), Some(exporting)) = (&self.exporter, exporting) {
            exporter.close();
            let _ = timeout(FLUSH_TIMEOUT, exporting).await;
        }
        Ok(())
    }

    /// Ends the event streams after the last event, and closes the connections of subscribers that do
    /// not read it.
    async fn close_events(&self) {
        if let Some(recorder) = &self.recorder {
            while !recorder.is_idle() {
                sleep(CHECK_INTERVAL).await;
            }
            recorder.settle().await;
            recorder.events.close();
            sleep(LAST_EVENTS).await;
            recorder.events.hang_up();
        }
        pending::<()>().await;
    }

    fn serve_connection(
        &self,
        (stream, client, router): (TcpStream, SocketAddr, Router),
        watcher: Watcher,
        permit: OwnedSemaphorePermit,
    ) {
        // Small events are sent at once.
        let _ = stream.set_nodelay(true);
        few_unsent_bytes(&stream);
        let limits = self.settings.limits;
        let stream = WriteTimeout::new(stream, limits.write_time);
        let (hang_up, registration) = AbortHandle::new_pair();
        let peer = Peer {
            address: client,
            hang_up,
        };
        let router = TowerToHyperService::new(router);
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(peer.clone());
            router.call(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head_time)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        let connection = Abortable::new(watcher.watch(connection), registration);
        tokio::spawn(async move {
            // Errors of clients are not logged.
            let _ = connection.await;
            drop(permit);
        });
    }
}
