//! A server over a cluster that has run for a while.
#![allow(dead_code, reason = "each test uses a part")]

use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;

use leasehold::cluster::event::Notice;
use leasehold::cluster::world::Cluster;
use leasehold::daemon::view::{Status, View};
use leasehold::metastorage::memory::MemoryStore;
use leasehold::model::diff::LeaseUpdate;
use leasehold::server::serve;
use leasehold::sim::{Observer, Simulation};
use tokio::sync::oneshot;

/// A server that runs until it is dropped.
pub struct Serving {
    pub view: Arc<View>,
    pub url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
pub struct Newest(pub Option<LeaseUpdate>);

impl Observer for Newest {
    fn stored(&mut self, _cluster: &Cluster, update: &LeaseUpdate) {
        self.0 = Some(update.clone());
    }

    fn notice(&mut self, _cluster: &Cluster, _notice: &Notice) {}
}

/// What a daemon would show of a simulation.
pub fn view(simulation: &Simulation, store: &MemoryStore, newest: Newest) -> View {
    let status = Status {
        version: "0.1.0".to_owned(),
        time: simulation.cluster().now() / 1000,
        ..Status::default()
    };
    let view = View::new(Arc::new(store.clone()), status);
    view.set_leases(Arc::new(newest.0.unwrap()));
    view
}

impl Serving {
    pub fn start(view: View) -> Self {
        let view = Arc::new(view);
        let shown = Arc::clone(&view);
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                let shutdown = async {
                    let _ = stopped.await;
                };
                serve(listener, shown, shutdown).await.unwrap();
            });
        });
        let url = format!("http://{}", told.recv().unwrap());
        Self {
            view,
            url,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Ends the server and waits until it has ended.
    pub fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop();
    }
}
