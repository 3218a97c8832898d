//! The state of the network: which links are impaired, how, and until when.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use super::heap::Micros;
use super::scenario::{Place, Process};

/// What is wrong with a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Trouble {
    /// Nothing gets through; streams wait.
    Cut,
    /// So many messages of a hundred are lost; streams send again.
    Lose(u32),
    /// So many messages of a hundred arrive twice.
    Duplicate(u32),
    /// Each message is late by something up to this.
    Reorder(Micros),
    /// Everything is late by this.
    Slow(Micros),
    /// Everything is stuck until it is over.
    Clog,
    /// Streams of the store wait.
    CutWatch,
    /// Streams of the store are late by this.
    LagWatch(Micros),
}

/// An impairment of the links from some processes to others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Impairment {
    pub from: Place,
    pub to: Place,
    pub trouble: Trouble,
    pub until: Micros,
}

/// What becomes of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fate {
    /// When the first copy arrives: so much later than usual. None if it does not.
    pub first: Option<Micros>,
    /// When the second copy arrives, if there is one.
    pub second: Option<Micros>,
}

/// What becomes of something in a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StreamFate {
    /// It waits until the link works again.
    Waits,
    /// It is late by so much.
    Late(Micros),
}

/// A stream sends again what was lost after so long.
const SEND_AGAIN: Micros = 200_000;

/// The impairments.
#[derive(Debug, Default)]
pub(super) struct Network {
    impairments: Vec<Impairment>,
}

impl Network {
    pub fn impair(&mut self, impairment: Impairment) {
        self.impairments.push(impairment);
    }

    /// Takes away what is over.
    pub fn expire(&mut self, now: Micros) {
        self.impairments.retain(|impairment| impairment.until > now);
    }

    /// Takes away everything.
    pub fn heal(&mut self) {
        self.impairments.clear();
    }

    /// Whether anything is impaired.
    pub fn is_impaired(&self) -> bool {
        !self.impairments.is_empty()
    }

    fn on(&self, from: Process, to: Process) -> impl Iterator<Item = &Impairment> {
        let on = move |impairment: &&Impairment| {
            impairment.from.covers(from) && impairment.to.covers(to)
        };
        self.impairments.iter().filter(on)
    }

    /// Whether nothing at all gets from one process to another.
    pub fn is_cut(&self, from: Process, to: Process) -> bool {
        let mut on = self.on(from, to);
        on.any(|impairment| matches!(impairment.trouble, Trouble::Cut | Trouble::Clog))
    }

    /// What becomes of a message sent now.
    pub fn message(
        &self,
        from: Process,
        to: Process,
        now: Micros,
        random: &mut ChaCha8Rng,
    ) -> Fate {
        let mut fate = Fate {
            first: Some(0),
            second: None,
        };
        for impairment in self.on(from, to) {
            match impairment.trouble {
                Trouble::Cut => fate.first = None,
                Trouble::Lose(percent) => {
                    if random.random_range(0..100) < percent {
                        fate.first = None;
                    }
                }
                Trouble::Duplicate(percent) => {
                    if random.random_range(0..100) < percent {
                        fate.second = Some(random.random_range(0..SEND_AGAIN * 10));
                    }
                }
                Trouble::Reorder(most) => {
                    let late = random.random_range(0..=most);
                    fate.first = fate.first.map(|first| first + late);
                }
                Trouble::Slow(late) => fate.first = fate.first.map(|first| first + late),
                Trouble::Clog => {
                    let late = impairment.until - now;
                    fate.first = fate.first.map(|first| first.max(late));
                    fate.second = fate.second.map(|second| second.max(late));
                }
                Trouble::CutWatch | Trouble::LagWatch(_) => {}
            }
        }
        if fate.first.is_none() {
            fate.second = None;
        }
        fate
    }

    /// What becomes of something that the store streams now.
    pub fn stream(&self, to: Process, random: &mut ChaCha8Rng) -> StreamFate {
        let mut late = 0;
        for impairment in self.on(Process::Store, to) {
            match impairment.trouble {
                Trouble::Cut | Trouble::Clog | Trouble::CutWatch => return StreamFate::Waits,
                Trouble::Lose(percent) => {
                    for _ in 0..10 {
                        if random.random_range(0..100) >= percent {
                            break;
                        }
                        late += SEND_AGAIN;
                    }
                }
                Trouble::Slow(more) | Trouble::LagWatch(more) => late += more,
                Trouble::Duplicate(_) | Trouble::Reorder(_) => {}
            }
        }
        StreamFate::Late(late)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn with(trouble: Trouble) -> Network {
        let mut network = Network::default();
        network.impair(Impairment {
            from: Place::Nodes,
            to: Place::One(Process::Driver(0)),
            trouble,
            until: 1_000_000,
        });
        network
    }

    fn fates(network: &Network, from: Process, to: Process) -> Vec<Fate> {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let fate = |_| network.message(from, to, 400_000, &mut random);
        (0..1000).map(fate).collect()
    }

    const NODE: Process = Process::Node(2);
    const DRIVER: Process = Process::Driver(0);

    #[test]
    fn a_cut_is_one_way_and_over_at_its_time() {
        let mut network = with(Trouble::Cut);
        assert!(network.is_cut(NODE, DRIVER));
        assert!(!network.is_cut(DRIVER, NODE));
        assert!(!network.is_cut(NODE, Process::Driver(1)));
        assert!(
            fates(&network, NODE, DRIVER)
                .iter()
                .all(|fate| fate.first.is_none())
        );
        network.expire(999_999);
        assert!(network.is_cut(NODE, DRIVER));
        network.expire(1_000_000);
        assert!(!network.is_impaired());
    }

    #[test]
    fn some_are_lost_some_come_twice_and_some_are_late() {
        let lost = fates(&with(Trouble::Lose(30)), NODE, DRIVER);
        let lost = lost.iter().filter(|fate| fate.first.is_none()).count();
        assert!((250..350).contains(&lost), "{lost}");
        let twice = fates(&with(Trouble::Duplicate(30)), NODE, DRIVER);
        let twice = twice.iter().filter(|fate| fate.second.is_some()).count();
        assert!((250..350).contains(&twice), "{twice}");
        let late = fates(&with(Trouble::Reorder(500)), NODE, DRIVER);
        assert!(late.iter().any(|fate| fate.first > Some(400)));
        assert!(late.iter().any(|fate| fate.first < Some(100)));
        let slow = fates(&with(Trouble::Slow(500)), NODE, DRIVER);
        assert!(slow.iter().all(|fate| fate.first == Some(500)));
        let stuck = fates(&with(Trouble::Clog), NODE, DRIVER);
        assert!(stuck.iter().all(|fate| fate.first == Some(600_000)));
    }

    #[test]
    fn streams_wait_or_are_late_and_lose_nothing() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut stream = |trouble| {
            let mut network = Network::default();
            network.impair(Impairment {
                from: Place::All,
                to: Place::Nodes,
                trouble,
                until: 1,
            });
            network.stream(NODE, &mut random)
        };
        assert_eq!(stream(Trouble::Cut), StreamFate::Waits);
        assert_eq!(stream(Trouble::CutWatch), StreamFate::Waits);
        assert_eq!(stream(Trouble::LagWatch(7)), StreamFate::Late(7));
        assert_eq!(
            stream(Trouble::Lose(100)),
            StreamFate::Late(10 * SEND_AGAIN)
        );
    }
}
