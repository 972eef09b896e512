//! The raft crate with all commands of a model's own program:
//!
//!     cargo run --release -p demi-tikv-raft --example tikv_raft -- fuzz --scenario models/tikv-raft/scenarios/ignore-must-sync.toml --seed 1 --out found
//!     cargo run --release -p demi-tikv-raft --example tikv_raft -- minimize found --scenario models/tikv-raft/scenarios/ignore-must-sync.toml --out min

use demi_commands::Models;
use demi_tikv_raft::{NAME, TikvRaft};

fn main() {
    demi_commands::main(Models::new().with(NAME, TikvRaft::new));
}
