//! The names of the actors. Workers and executors are numbered; all others are there once.

use demi_replay::names::{ActorId, Names};

/// Number of a worker, and of the executor it runs.
pub type Number = u16;

/// Numbers beyond this are taken for a slip of the pen.
pub const MAX_NUMBER: Number = 200;

macro_rules! actors {
    ($($(#[$doc:meta])* $field:ident = $name:literal,)*) => {
        /// The actors that are there once, and how to find the others.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Actors {
            $($(#[$doc])* pub $field: ActorId,)*
            /// `Worker1`; `executor1` follows, then `Worker2`.
            first: ActorId,
        }

        impl Actors {
            /// Makes the names known.
            pub fn new(names: &mut Names) -> Actors {
                let actors = Actors {
                    $($field: names.id($name),)*
                    first: ActorId(u16::try_from(names.len()).unwrap_or(u16::MAX)),
                };
                for number in 1..=MAX_NUMBER {
                    names.id(&format!("Worker{number}"));
                    names.id(&format!("executor{number}"));
                }
                actors
            }
        }
    };
}

actors! {
    blocks = "BlockManagerMaster",
    tracker = "MapOutputTracker",
    master = "Master",
    /// Tells a new master that it leads.
    agent = "leaderElectionAgent",
    /// Stands for the code that repeats registrations.
    retries = "ScheduleFunctionPlaceholder",
    supervisor = "DAGSchedulerActorSupervisor",
    /// Job and stage logic of the driver program.
    jobs = "$a",
    /// The temporary actor under whose name `jobs` asks for locations.
    asking = "Z2V0TG9jYXRpb25zLWJsb2NrSWRzVG9CbG9ja01hbmFnZXJzLWdldENhY2hlTG9jcw==",
    scheduler = "CoarseGrainedScheduler",
    client = "AppClient",
    // Temporary actors under whose names the start-up thread asks.
    ask_blocks = "dGVsbC1yZWdpc3RlckJsb2NrTWFuYWdlci1pbml0aWFsaXpl",
    ask_port = "c3RhcnQtb3JnJGFwYWNoZSRzcGFyayRTcGFya0NvbnRleHQkJGNyZWF0ZVRhc2tTY2hlZHVsZXItPGluaXQ+",
    ask_props = "aW5pdGlhbGl6ZUV2ZW50UHJvY2Vzc0FjdG9yLTxpbml0Pi08aW5pdD4=",
}

impl Actors {
    /// The worker of that number.
    pub fn worker(&self, number: Number) -> ActorId {
        ActorId(self.first.0 + 2 * (number - 1))
    }

    /// The executor of that number.
    pub fn executor(&self, number: Number) -> ActorId {
        ActorId(self.first.0 + 2 * (number - 1) + 1)
    }

    /// The number of a worker (`true`) or executor (`false`).
    pub fn number(&self, actor: ActorId) -> Option<(bool, Number)> {
        let at = actor.0.checked_sub(self.first.0)?;
        (at < 2 * MAX_NUMBER).then_some((at % 2 == 0, at / 2 + 1))
    }
}
