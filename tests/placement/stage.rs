//! A driver on a stage: a scripted clock, nodes and store around it.

use std::sync::Arc;

use leasehold::codec::Format;
use leasehold::model::hlc::HybridTimestamp;
use leasehold::model::ids::{GroupId, Incarnation, NodeId};
use leasehold::model::lease::Lease;
use leasehold::model::message::{GrantAnswer, LeaseGranted, Verdict};
use leasehold::model::reads::Reads;
use leasehold::model::timings::Timings;
use leasehold::model::topology::{Assignment, Assignments, Topology};
use leasehold::placement::driver::PlacementDriver;
use leasehold::placement::io::{
    BatchWrite, Input, Notice, Now, Output, RequestId, StoreReply, StoreRequest, Stored,
};
use leasehold::placement::record::encode;
use leasehold::placement::retention::Retain;
use leasehold::placement::storing::Storing;

/// Some of the writes on stage are deltas.
pub const SNAPSHOT_EVERY: u32 = 3;

pub const BEGIN: u64 = 1_700_000_000_000;

pub fn node(number: u64) -> Incarnation {
    restarted(number, 0)
}

/// The same node under another id.
pub fn restarted(number: u64, times: u64) -> Incarnation {
    Incarnation {
        name: format!("node{number}").into(),
        id: NodeId::from_halves(number, times),
    }
}

pub fn group(partition: i64) -> GroupId {
    format!("table/1/{partition}").parse().unwrap()
}

pub fn at(milliseconds: u64) -> HybridTimestamp {
    HybridTimestamp::new(BEGIN + milliseconds, 0).unwrap()
}

/// What the store holds, apart from any driver.
#[derive(Clone, Default)]
pub struct Shelf {
    pub stored: Stored,
    pub revision: u64,
    pub writes: Vec<BatchWrite>,
}

pub struct Stage {
    pub driver: PlacementDriver,
    pub shelf: Shelf,
    pub time: u64,
    pub offers: Vec<(NodeId, LeaseGranted)>,
    pub stopped: Vec<(NodeId, Option<HybridTimestamp>)>,
    pub notices: Vec<Notice>,
    /// Requests kept back instead of being carried out.
    pub held: Option<Vec<(RequestId, StoreRequest)>>,
}

impl Stage {
    /// Three nodes, `partitions` groups of one table on all three, an empty store.
    pub fn new(partitions: i64) -> Self {
        let wished = Storing {
            format: Format::Columnar,
            snapshot_every: SNAPSHOT_EVERY,
        };
        let (timings, retain) = (Timings::default(), Retain::default());
        let mut driver = PlacementDriver::new(timings, retain, wished, Reads::default());
        let names = || (1..=3).map(|number| node(number).name);
        let assignments: Assignments = (0..partitions)
            .map(|partition| (group(partition), Assignment::stable(names())))
            .collect();
        driver.assign(Arc::new(assignments));
        let mut stage = Self {
            driver,
            shelf: Shelf::default(),
            time: 0,
            offers: Vec::new(),
            stopped: Vec::new(),
            notices: Vec::new(),
            held: None,
        };
        stage.input(Input::Topology(Topology::new((1..=3).map(node))));
        stage
    }

    /// As [`new`](Self::new), started, and with every lease published.
    pub fn published(partitions: i64) -> Self {
        let mut stage = Self::new(partitions);
        stage.input(Input::Start);
        stage.run(500);
        stage.accept_all();
        stage.run(500);
        assert!(stage.leases().iter().all(|lease| lease.accepted));
        assert_eq!(stage.leases().len(), partitions as usize);
        stage
    }

    /// Another driver over the same store.
    pub fn rival(&self) -> Self {
        let mut rival = Self::new(self.leases().len() as i64);
        rival.shelf = self.shelf.clone();
        rival.time = self.time;
        rival.input(Input::Start);
        rival
    }

    pub fn now(&self) -> Now {
        Now {
            physical: BEGIN + self.time,
            monotonic: self.time,
        }
    }

    pub fn input(&mut self, input: Input) {
        let mut out = Vec::new();
        self.driver.step(self.now(), input, &mut out);
        for output in out {
            match output {
                Output::Grant(to, offer) => self.offers.push((to, offer)),
                Output::Stopped(to, answer) => self.stopped.push((to, answer.expiration)),
                Output::Notice(notice) => self.notices.push(notice),
                Output::Store(id, request) => match &mut self.held {
                    Some(held) => held.push((id, request)),
                    None => {
                        let reply = self.shelf.execute(request);
                        self.input(Input::Reply(id, reply));
                    }
                },
            }
        }
    }

    /// Lets time pass, with a tick every 500 ms.
    pub fn run(&mut self, milliseconds: u64) {
        for _ in 0..milliseconds / 500 {
            self.time += 500;
            self.input(Input::Tick);
        }
    }

    pub fn answer(&mut self, offer: &LeaseGranted, node: NodeId, verdict: Verdict) {
        let answer = GrantAnswer {
            group: offer.group,
            start: offer.start,
            node,
            verdict,
            sent: at(self.time),
        };
        self.input(Input::Answer(answer));
    }

    /// Every node accepts what it was offered.
    pub fn accept_all(&mut self) {
        for (node, offer) in std::mem::take(&mut self.offers) {
            self.answer(&offer, node, Verdict::Accepted);
        }
    }

    pub fn leases(&self) -> Vec<Lease> {
        self.shelf.stored.chain.batch().leases().collect()
    }

    pub fn lease(&self, partition: i64) -> Lease {
        let batch = self.shelf.stored.chain.batch();
        batch.lease(batch.get(group(partition)).expect("the group has a lease"))
    }
}

impl Shelf {
    pub fn execute(&mut self, request: StoreRequest) -> StoreReply {
        let (won, time) = match &request {
            StoreRequest::Read => return StoreReply::Read(self.stored.clone()),
            StoreRequest::Compact(_) | StoreRequest::PruneSizes { .. } => {
                return StoreReply::Won(self.revision);
            }
            StoreRequest::TakeEpoch { known, time } => (*known == self.stored.epoch, *time),
            StoreRequest::Beat { epoch, time } => (*epoch == self.stored.epoch, *time),
            StoreRequest::Write(write) => (
                write.epoch == self.stored.epoch
                    && write.chain.base() == self.stored.chain.base()
                    && write.chain.step() == self.stored.chain.step(),
                write.time,
            ),
        };
        if !won {
            return StoreReply::Lost(self.stored.clone());
        }
        self.revision += 1;
        self.stored.time = Some(time);
        match request {
            StoreRequest::TakeEpoch { .. } => self.stored.epoch = self.revision,
            StoreRequest::Write(write) => {
                let revision = self.revision;
                let encoded = encode(&write).unwrap();
                let needs = encoded.needs();
                let chain = encoded.chain(revision);
                self.stored.needs = Some(needs);
                self.stored.revision = revision;
                self.stored.chain = chain.clone();
                self.writes.push(*write);
                return StoreReply::Written {
                    revision,
                    chain,
                    needs,
                };
            }
            _ => {}
        }
        StoreReply::Won(self.revision)
    }
}
