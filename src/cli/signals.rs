//! Ctrl-C and SIGTERM.

/// Waits for a signal to end; its name.
pub(super) async fn ended() -> &'static str {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            return tokio::select! {
                _ = tokio::signal::ctrl_c() => "interrupted",
                _ = terminate.recv() => "terminated",
            };
        }
    }
    let _ = tokio::signal::ctrl_c().await;
    "interrupted"
}
