//! Waiting for a store's next revision.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::contract::StoreError;

/// Something behind a lock whose changes can be waited for.
#[derive(Debug, Default)]
pub struct Watched<T> {
    state: Mutex<T>,
    changed: Condvar,
}

impl<T> Watched<T> {
    pub const fn new(state: T) -> Self {
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Locks the state. After a panic under the lock the store is not to be trusted.
    pub fn lock(&self) -> Result<MutexGuard<'_, T>, StoreError> {
        self.state.lock().map_err(|_| broken())
    }

    /// Tells those who wait that the state has changed.
    pub fn notify(&self) {
        self.changed.notify_all();
    }

    /// Waits until the state passes the test; false if it did not within `wait`.
    pub fn wait(&self, wait: Duration, ready: impl Fn(&T) -> bool) -> Result<bool, StoreError> {
        let state = self.lock()?;
        if ready(&state) {
            return Ok(true);
        }
        if wait.is_zero() {
            return Ok(false);
        }
        let (state, _) = self
            .changed
            .wait_timeout_while(state, wait, |state| !ready(state))
            .map_err(|_| broken())?;
        Ok(ready(&state))
    }
}

/// What is left of a `wait` that began some time ago.
pub struct Patience {
    wait: Duration,
    since: Option<Instant>,
}

impl Patience {
    #[allow(
        clippy::disallowed_methods,
        reason = "a caller that waits waits in real time; one that does not wait reads no clock"
    )]
    pub fn new(wait: Duration) -> Self {
        let since = (!wait.is_zero()).then(Instant::now);
        Self { wait, since }
    }

    pub fn left(&self) -> Duration {
        match self.since {
            Some(since) => self.wait.saturating_sub(since.elapsed()),
            None => Duration::ZERO,
        }
    }
}

pub fn broken() -> StoreError {
    StoreError::Unavailable("an earlier operation on this store panicked: open it again".into())
}
