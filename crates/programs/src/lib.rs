//! Programs as they are: Maelstrom nodes, in any language, under a deterministic scheduler with a clock of their own.
//!
//! A node is a model whose state is its local history: what it has read, and when its clock went on. [`Nodes`] remembers what the program answered
//! to every history, and executes what is new in processes that wait in a pool. Clients and their operations are actors of the same model, and
//! the workload's property is judged on the history that they make.

mod book;
mod error;
mod model;
mod nodes;
mod pool;
mod process;
mod register;
mod registry;
mod resolve;
mod tried;
mod workloads;

pub use book::{Book, Event, Operation, Outcome};
pub use error::{Fault, ProgramError};
pub use model::{Judged, Msg, ProgramModel, State};
pub use nodes::{Input, Local, Nodes, Work};
pub use process::{Answer, Launch, Process};
pub use register::{Action, Interval, is_linearizable};
pub use registry::{WithPrograms, launches};
pub use resolve::resolve;
pub use tried::{Trial, try_program};
pub use workloads::{WORKLOADS, Workload};
