//! How large keys, values and transactions may be, and which transactions are valid.

use std::collections::BTreeSet;

use crate::metastorage::contract::{Condition, Op, StoreError, Transaction};

/// Limits of a store. Above them a transaction is refused and changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Largest key, bytes.
    pub key: usize,
    /// Largest value, bytes.
    pub value: usize,
    /// Largest transaction: all keys and values of its conditions and operations, bytes.
    pub transaction: usize,
    /// Most conditions and operations of a transaction, counted together.
    pub operations: usize,
}

impl Default for Limits {
    /// Keys of 1 KiB, values of 64 MiB, transactions of 80 MiB with 4,096 operations.
    fn default() -> Self {
        Self {
            key: 1 << 10,
            value: 64 << 20,
            transaction: 80 << 20,
            operations: 4096,
        }
    }
}

impl Limits {
    /// Checks a transaction, both branches whichever will be taken.
    ///
    /// # Errors
    /// If it is above a limit or writes a key twice in a branch.
    pub fn check(&self, transaction: &Transaction) -> Result<(), StoreError> {
        let Transaction {
            conditions,
            then,
            or_else,
        } = transaction;
        let operations = conditions.len() + then.len() + or_else.len();
        if operations > self.operations {
            return Err(StoreError::Invalid(format!(
                "{operations} conditions and operations, the limit is {}",
                self.operations
            )));
        }
        let mut total = 0;
        for condition in conditions {
            total += match condition {
                Condition::Exists(key)
                | Condition::Absent(key)
                | Condition::ModRevision(key, _) => self.key(key)?,
                Condition::Value(key, value) => self.key(key)? + self.value(value)?,
            };
        }
        for op in then.iter().chain(or_else) {
            total += match op {
                Op::Put(key, value) => self.key(key)? + self.value(value)?,
                Op::Delete(key) | Op::Get(key) | Op::GetPrefix(key) => self.key(key)?,
            };
        }
        within("a transaction", total, self.transaction)?;
        distinct(then)?;
        distinct(or_else)
    }

    fn key(&self, key: &[u8]) -> Result<usize, StoreError> {
        within("a key", key.len(), self.key)
    }

    fn value(&self, value: &[u8]) -> Result<usize, StoreError> {
        within("a value", value.len(), self.value)
    }
}

fn within(what: &'static str, size: usize, limit: usize) -> Result<usize, StoreError> {
    if size > limit {
        return Err(StoreError::TooLarge {
            what,
            size: size as u64,
            limit: limit as u64,
        });
    }
    Ok(size)
}

fn distinct(branch: &[Op]) -> Result<(), StoreError> {
    let mut written = BTreeSet::new();
    for op in branch {
        let (Op::Put(key, _) | Op::Delete(key)) = op else {
            continue;
        };
        if !written.insert(key) {
            return Err(StoreError::Invalid(format!(
                "key `{}` is written twice in one branch",
                key.escape_ascii()
            )));
        }
    }
    Ok(())
}
