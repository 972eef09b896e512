//! Programs as they are: Maelstrom nodes, in any language, under a deterministic scheduler with a clock of their own.
//!
//! A node is a model whose state is its local history: what it has read, and when its clock went on. [`Nodes`] remembers what the program answered
//! to every history, and executes what is new in processes that wait in a pool. Clients and their operations are actors of the same model, and
//! the workload's property is judged on the history that they make.

mod book;
mod checkers;
mod edn;
mod error;
mod folders;
mod follow;
mod fressian;
mod history;
mod lines;
mod logged;
mod model;
mod nodes;
mod pool;
mod process;
mod registry;
mod resolve;
mod services;
mod settle;
mod told;
mod tried;
mod workloads;

pub use book::{Book, Event, Operation, Outcome};
pub use checkers::{
    Action, Anomaly, Consistency, Interval, Sums, is_linearizable, list_append, rw_register, sums,
};
pub use error::{Fault, ProgramError};
pub use follow::{FollowError, Followed, Parting, follow_log};
pub use history::{Done, Fate, History, HistoryError};
pub use logged::LogError;
pub use model::{Judged, Msg, ProgramModel, Served, State};
pub use nodes::{Input, Local, Nodes, Root, Work};
pub use process::{Answer, Disk, Launch, Process};
pub use registry::{WithPrograms, launches};
pub use resolve::resolve;
pub use services::SERVICES;
pub use told::Told;
pub use tried::{Trial, try_program};
pub use workloads::{WORKLOADS, Workload};
