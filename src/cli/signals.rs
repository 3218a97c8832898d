//! Ctrl-C, SIGTERM and the end of the terminal.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals to end, caught from the moment it is made.
#[derive(Debug)]
pub(super) struct Signals {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    hang_up: Signal,
}

impl Signals {
    /// Catches the signals from now on. To be called within a tokio runtime.
    pub(super) fn catch() -> io::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            interrupt: signal(SignalKind::interrupt())?,
            #[cfg(unix)]
            terminate: signal(SignalKind::terminate())?,
            #[cfg(unix)]
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for one; says what it was.
    #[cfg(unix)]
    pub(super) async fn ended(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "interrupted",
            _ = self.terminate.recv() => "terminated",
            _ = self.hang_up.recv() => "terminal closed",
        }
    }

    /// Waits for one; says what it was.
    #[cfg(not(unix))]
    pub(super) async fn ended(&mut self) -> &'static str {
        let _ = tokio::signal::ctrl_c().await;
        "interrupted"
    }
}
