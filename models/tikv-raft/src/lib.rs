//! Nodes of the [`raft`] crate as a model.
//!
//! The library runs as it is, with its own `RawNode`, `Ready` and `Storage`; the model is the program around it that an
//! application has to write: it ticks, steps, persists, sends, applies and answers clients. Each documented way to get
//! that program wrong is a switch. What is what: `README.md` beside this crate.
//!
//! ```no_run
//! use demi_tikv_raft::{NAME, TikvRaft};
//!
//! fn main() {
//!     demi_commands::main(demi_commands::Models::new().with(NAME, TikvRaft::new))
//! }
//! ```

mod application;
mod calls;
mod client;
mod entries;
mod error;
mod invariants;
mod layers;
mod library_text;
mod message;
mod model;
mod node;
mod ready;
mod rebuild;
mod requests;
mod settings;
mod state;
mod stored;
mod system;
mod text;
mod volatile;

pub use application::{Application, Applied, Members};
pub use client::Client;
pub use entries::{Entries, Slot};
pub use error::{BadRequest, Corrupt};
pub use message::{Msg, Wire};
pub use node::Node;
pub use settings::{NAME, Settings, Switches};
pub use state::State;
pub use stored::{Disk, Hard, Stored};
pub use system::TikvRaft;
pub use volatile::{Flow, Peer, PendingRead, Role, Volatile};
