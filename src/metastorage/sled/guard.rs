//! sled 0.34 meets some kinds of damage with a panic instead of an error. Here it becomes one.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use crate::metastorage::contract::StoreError;

thread_local! {
    /// Whether this thread is within [`guarded`], which tells of a panic itself.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Runs something that calls sled; if it panics, `StoreError::Damaged` says with which words.
///
/// What was being done is not used any more afterwards than after an error: reads leave nothing
/// behind, and after a failed write the store is given up.
pub fn guarded<T>(work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    // The standard hook would print a stack trace before anybody could say what it means.
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                usual(panic);
            }
        }));
    });
    let outer = GUARDED.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    result.unwrap_or_else(|panic| Err(StoreError::Damaged(words(&*panic))))
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!(
        "sled can't make sense of its files ({})",
        text.unwrap_or("it did not say why").trim()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_its_words() {
        let result = guarded::<()>(|| panic!("no page {}", 7));
        let error = result.expect_err("it panics").to_string();
        assert!(error.contains("no page 7"), "{error}");
        assert_eq!(guarded(|| Ok(1)), Ok(1));
    }
}
