//! Looking at a simulation from outside.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::cluster::event::{Event, Notice, StoreCall};
use crate::cluster::world::Cluster;
use crate::metastorage::contract::Metastorage;
use crate::model::diff::LeaseUpdate;
use crate::placement::io::{Revision, StoreReply};

/// Sees everything that happens, from outside.
pub trait Observer {
    /// A revision of the leases was written. It is not synced yet.
    fn stored(&mut self, _cluster: &Cluster, _update: &LeaseUpdate) {}

    /// Something worth telling.
    fn notice(&mut self, _cluster: &Cluster, _notice: &Notice) {}

    /// An event is about to happen.
    fn before(&mut self, _cluster: &Cluster, _event: &Event) {}

    /// A request is about to be carried out by the store.
    fn asked(&mut self, _cluster: &Cluster, _store: &dyn Metastorage, _call: &StoreCall) {}

    /// A request has been carried out. The reply has not left the store.
    fn answered(&mut self, _cluster: &Cluster, _store: &dyn Metastorage, _reply: &StoreReply) {}

    /// Somebody else has stored the leases again.
    fn rewritten(&mut self, _cluster: &Cluster, _store: &dyn Metastorage) {}

    /// The store has crashed and lost what came after a revision.
    fn crashed(&mut self, _cluster: &Cluster, _store: &dyn Metastorage, _kept: Revision) {}

    /// An event has happened, with all that followed at that instant.
    fn stepped(&mut self, _cluster: &Cluster, _store: &dyn Metastorage) {}

    /// Whether it has seen enough: then a run ends.
    fn has_enough(&self) -> bool {
        false
    }
}

/// Looks the other way.
impl Observer for () {}

/// Has enough as soon as this is set.
#[derive(Debug)]
pub struct Until<'a>(pub &'a AtomicBool);

impl Observer for Until<'_> {
    fn has_enough(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Two observers, the first one first.
#[derive(Debug)]
pub struct Watching<A, B>(pub A, pub B);

macro_rules! both {
    ($(fn $name:ident($($argument:ident: $kind:ty),*);)*) => {
        impl<O: Observer> Observer for &mut O {
            $(fn $name(&mut self, $($argument: $kind),*) { (**self).$name($($argument),*); })*

            fn has_enough(&self) -> bool {
                (**self).has_enough()
            }
        }

        impl<A: Observer, B: Observer> Observer for Watching<A, B> {
            $(fn $name(&mut self, $($argument: $kind),*) {
                self.0.$name($($argument),*);
                self.1.$name($($argument),*);
            })*

            fn has_enough(&self) -> bool {
                self.0.has_enough() || self.1.has_enough()
            }
        }
    };
}

both! {
    fn stored(cluster: &Cluster, update: &LeaseUpdate);
    fn notice(cluster: &Cluster, notice: &Notice);
    fn before(cluster: &Cluster, event: &Event);
    fn asked(cluster: &Cluster, store: &dyn Metastorage, call: &StoreCall);
    fn answered(cluster: &Cluster, store: &dyn Metastorage, reply: &StoreReply);
    fn rewritten(cluster: &Cluster, store: &dyn Metastorage);
    fn crashed(cluster: &Cluster, store: &dyn Metastorage, kept: Revision);
    fn stepped(cluster: &Cluster, store: &dyn Metastorage);
}
