//! A long random run of the library used as documented, by hand:
//!
//!     cargo run --release -p demi-tikv-raft --example soak -- models/tikv-raft/scenarios/correct.toml 10000000
//!
//! It ends with the first violation, or after so many deliveries.

use std::error::Error;
use std::time::Instant;

use demi_replay::fuzz::{FuzzOptions, fuzz};
use demi_replay::{Names, Simulator};
use demi_schemas::Scenario;
use demi_tikv_raft::TikvRaft;

#[allow(clippy::print_stdout, reason = "it is what the program is for")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("which scenario file?")?;
    let deliveries: u64 = args.next().ok_or("how many deliveries?")?.parse()?;
    let seed: u64 = args.next().map_or(Ok(1), |seed| seed.parse())?;

    let scenario = Scenario::parse(&std::fs::read_to_string(path)?)?;
    let mut names = Names::default();
    let model = TikvRaft::new(&scenario, &mut names)?;
    let first = Simulator::new(model, names, &scenario)?;
    let (began, mut done, mut runs, mut round) = (Instant::now(), 0, 0, 0);
    while done < deliveries {
        // A simulator remembers every message that it has seen, so that each round begins with a new one.
        let (mut made, left) = (0, deliveries - done);
        let options = FuzzOptions::new(seed + round, 100, 1_000);
        let found = fuzz(&mut first.clone(), &scenario, &options, &mut |so_far| {
            (made, runs) = (so_far.executed, runs + 1);
            made < left
        })?;
        done += made;
        if let Some(found) = found {
            println!("seed {}: {:?} after {} deliveries", seed + round, found.violation, found.deliveries);
            break;
        }
        round += 1;
    }
    println!("{done} deliveries in {runs} runs, {:.1} s", began.elapsed().as_secs_f64());
    Ok(())
}
