//! Lets a run be called off without losing what has arrived.
//!
//! What came of an answer before Ctrl-C was paid for: it is taken as an answer that was cut, like
//! any other, as long as it can hold something new. After that nobody is asked any more.

use std::future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;

use futures_util::future::{BoxFuture, Either, Shared, select};
use futures_util::{FutureExt, StreamExt, stream};
use overlock_llm::{Backend, BackendError, Call, Event, Events, NextCall, Wants};

use crate::signals::called_off;

/// Somebody may call the run off. Clones are about the same run.
#[derive(Clone)]
pub(super) struct Interrupt {
    signal: Shared<BoxFuture<'static, ()>>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// How many bytes of an answer can be expected to hold nothing new.
    repeated: AtomicUsize,
    /// Whether nobody is asked any more.
    has_stopped: AtomicBool,
}

/// A backend that can be interrupted.
pub(super) struct Interruptible {
    pub(super) backend: Box<dyn Backend>,
    pub(super) interrupt: Interrupt,
}

impl Interrupt {
    /// Calls the run off at Ctrl-C, and when the process is asked to end.
    pub(super) fn new() -> Self {
        Self {
            signal: called_off().map(|_| ()).boxed().shared(),
            state: Arc::default(),
        }
    }

    /// A call is about to be made.
    pub(super) fn asking(&self, ask: &NextCall) {
        /// A fence, small talk and a word on the progress take no more.
        const AROUND: usize = 200;
        let repeated = match (ask.wants, ask.overlap.len()) {
            // What to count is named as a whole or not at all.
            (Wants::Kpis, _) => usize::MAX,
            (_, 0) => 0,
            (_, overlap) => overlap + AROUND,
        };
        self.state.repeated.store(repeated, Ordering::Relaxed);
    }

    /// Comes when the run was called off and all that arrived has been taken. It must be polled
    /// after the run in the same task, which is what wakes it.
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

    /// An answer up to its end, or up to Ctrl-C.
    fn listen(self, events: Events<'_>) -> Events<'_> {
        let begun = (self, events, 0);
        let heard = stream::unfold(begun, |(interrupt, mut events, received)| async move {
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
        heard.boxed()
    }
}

impl Backend for Interruptible {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Events<'_>, BackendError>> {
        let answer = async move {
            let signal = self.interrupt.signal.clone();
            match select(signal, self.backend.call(call)).await {
                Either::Right((events, _)) => Ok(self.interrupt.clone().listen(events?)),
                Either::Left(_) => self.interrupt.stop().await,
            }
        };
        answer.boxed()
    }

    fn starts_at_cut(&self, call: &Call) -> bool {
        self.backend.starts_at_cut(call)
    }
}
