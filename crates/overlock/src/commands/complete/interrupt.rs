//! Cancels a run without losing the part of an answer that was received.
//!
//! The tokens received before Ctrl-C are paid for, so they count as a cut answer if they can
//! contain something new. No further call is made.

use std::future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;

use futures_util::future::{BoxFuture, Either, Shared, select};
use futures_util::{FutureExt, StreamExt, stream};
use overlock_llm::wire::WireRequest;
use overlock_llm::{Backend, BackendError, Call, Event, Events, NextCall, Wants};

use crate::signals::stop_signal;

/// Whether the run was cancelled. Clones share their state.
#[derive(Clone)]
pub(super) struct Interrupt {
    signal: Shared<BoxFuture<'static, ()>>,
    state: Arc<InterruptState>,
}

#[derive(Default)]
struct InterruptState {
    /// How many bytes at the start of an answer probably repeat known text.
    repeated: AtomicUsize,
    /// Whether the run was cancelled and everything received was taken.
    has_stopped: AtomicBool,
}

/// A backend that can be interrupted.
pub(super) struct Interruptible {
    pub(super) backend: Box<dyn Backend>,
    pub(super) interrupt: Interrupt,
}

impl Interrupt {
    /// Cancels the run at Ctrl-C and at SIGTERM.
    pub(super) fn new() -> Self {
        Self {
            signal: stop_signal().map(|_| ()).boxed().shared(),
            state: Arc::default(),
        }
    }

    /// Must be called before each call.
    pub(super) fn asking(&self, ask: &NextCall) {
        /// The most that a fence, prose and a progress percentage take.
        const AROUND: usize = 200;
        let repeated = match (ask.wants, ask.overlap.len()) {
            // A part of the list of KPIs is useless.
            (Wants::Kpis, _) => usize::MAX,
            (_, 0) => 0,
            (_, overlap) => overlap + AROUND,
        };
        self.state.repeated.store(repeated, Ordering::Relaxed);
    }

    /// Completes when the run was cancelled and everything received was taken. It must be polled
    /// after the run in the same task, because only the run wakes that task.
    pub(super) fn stopped(&self) -> impl Future<Output = ()> {
        let state = Arc::clone(&self.state);
        future::poll_fn(move |_| {
            if state.has_stopped.load(Ordering::Relaxed) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
    }

    async fn stop<T>(&self) -> T {
        self.state.has_stopped.store(true, Ordering::Relaxed);
        future::pending().await
    }

    /// The events of an answer up to its end or to Ctrl-C.
    fn until_stopped(self, events: Events<'_>) -> Events<'_> {
        let start = (self, events, 0);
        let events = stream::unfold(start, |(interrupt, mut events, received)| async move {
            let signal = interrupt.signal.clone();
            let event = match select(signal, events.next()).await {
                Either::Right((event, _)) => event?,
                Either::Left(_) if received > interrupt.state.repeated.load(Ordering::Relaxed) => {
                    return None;
                }
                Either::Left(_) => interrupt.stop().await,
            };
            let length = match &event {
                Ok(Event::Text(text)) => text.len(),
                _ => 0,
            };
            Some((event, (interrupt, events, received + length)))
        });
        events.boxed()
    }
}

impl Backend for Interruptible {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Events<'_>, BackendError>> {
        let answer = async move {
            let signal = self.interrupt.signal.clone();
            match select(signal, self.backend.call(call)).await {
                Either::Right((events, _)) => Ok(self.interrupt.clone().until_stopped(events?)),
                Either::Left(_) => self.interrupt.stop().await,
            }
        };
        answer.boxed()
    }

    fn starts_at_cut(&self, request: &dyn WireRequest) -> bool {
        self.backend.starts_at_cut(request)
    }
}
