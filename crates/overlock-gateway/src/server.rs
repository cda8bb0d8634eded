//! Accepts connections until it is told to stop.

use std::convert::Infallible;
use std::future::pending;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{AbortHandle, Abortable};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use overlock_runs::LAST_WORDS;
#[cfg(target_os = "linux")]
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use crate::gateway::Gateway;
use crate::routes::{self, Peer};
use crate::timer::ConnectionTimer;
use crate::write_timeout::WriteTimeout;

/// A head is no longer than this.
const HEAD_BYTES: usize = 64 << 10;

/// How long a system without free descriptors is left alone.
const BREATHER: Duration = Duration::from_millis(50);

/// Whether a client has gone before it was let in, which keeps nobody else out.
fn is_of_one_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::Interrupted
    )
}

/// Has the system take few bytes in advance for a client.
///
/// A socket is only writable again when a part of its send buffer is free. With megabytes in the
/// buffer, a slow client would look like one that does not read.
fn few_unsent_bytes(stream: &TcpStream) {
    #[cfg(target_os = "linux")]
    {
        const UNSENT_BYTES: u32 = 128 << 10;
        // Without it only very slow clients are worse off.
        let _ = SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = stream;
}

/// How often it is looked whether the last runs have ended.
const LOOK: Duration = Duration::from_millis(20);

/// How long those who listen to events have to read the last of them.
const LAST_EVENTS: Duration = Duration::from_millis(500);

impl Gateway {
    /// Serves until `stop` is done, and then until the requests are that are being worked on, for
    /// as long as they may take.
    pub async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let limits = self.settings.limits;
        let graceful = GracefulShutdown::new();
        let most = limits.connections.min(Semaphore::MAX_PERMITS);
        let connections = Arc::new(Semaphore::new(most));
        let exporting = self.exporter.clone();
        let exporting = exporting.map(|exporter| tokio::spawn(async move { exporter.run().await }));
        let mut stop = std::pin::pin!(stop);
        loop {
            // Who comes when all are taken waits before the door, at the system's expense.
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
                    Arc::clone(&self).talk(stream, client, graceful.watcher(), permit);
                }
                (_, Err(error)) if is_of_one_client(&error) => {}
                _ => sleep(BREATHER).await,
            }
        }
        drop(listener);
        // Those who take longer are left to whoever runs this.
        let _ = timeout(limits.shutdown_time, async {
            tokio::select! {
                () = graceful.shutdown() => {}
                () = self.leave_readers() => {}
            }
        })
        .await;
        if let Some(recorder) = &self.recorder {
            // The records of the last answers may still wait to be written.
            let _ = timeout(LAST_WORDS, recorder.settle()).await;
        }
        if let (Some(exporter), Some(exporting)) = (&self.exporter, exporting) {
            exporter.close();
            let _ = timeout(LAST_WORDS, exporting).await;
        }
        Ok(())
    }

    /// Ends what has no end of its own, when all has been told, and does not wait for those who do
    /// not read it.
    async fn leave_readers(&self) {
        if let Some(recorder) = &self.recorder {
            while !recorder.is_idle() {
                sleep(LOOK).await;
            }
            recorder.settle().await;
            recorder.events.close();
            sleep(LAST_EVENTS).await;
            recorder.events.hang_up();
        }
        pending::<()>().await;
    }

    fn talk(
        self: Arc<Self>,
        stream: TcpStream,
        client: SocketAddr,
        watcher: Watcher,
        permit: OwnedSemaphorePermit,
    ) {
        // Small events go out at once.
        let _ = stream.set_nodelay(true);
        few_unsent_bytes(&stream);
        let limits = self.settings.limits;
        let stream = WriteTimeout::new(stream, limits.write_time);
        let (hang_up, registration) = AbortHandle::new_pair();
        let peer = Peer {
            address: client,
            hang_up,
        };
        let service = service_fn(move |request| {
            let (gateway, peer) = (Arc::clone(&self), peer.clone());
            async move { Ok::<_, Infallible>(routes::answer(gateway, request, peer).await) }
        });
        let connection = http1::Builder::new()
            .timer(ConnectionTimer::default())
            .header_read_timeout(limits.head_time)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        let connection = Abortable::new(watcher.watch(connection), registration);
        tokio::spawn(async move {
            // A client that breaks off or talks nonsense is no news.
            let _ = connection.await;
            drop(permit);
        });
    }
}
