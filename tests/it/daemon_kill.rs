//! The daemon under faults: killed, starved of room, its files rotated, cut and packed under it, while records come in
//! over all sources. At the end every record is in the store exactly once.
//!
//! `DEMI_KILL_FAULTS` sets the number of faults (default 10), `DEMI_KILL_SEED` the seed (default 1).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failed expectation is a failed test"
)]

use crate::support::kill;

use std::thread;
use std::time::Duration;

use kill::check;
use kill::clients::Clients;
use kill::daemon::Daemon;
use kill::files::Files;
use kill::nats::{Producer, Server};
use kill::random::Random;
use kill::{record, text};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap())
}

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Kill,
    Stop,
    TornTail,
    Rename,
    CopyTruncate,
    Pack,
    Delete,
    Partial,
    ReadOnly,
    Full,
}

const FAULTS: [Fault; 14] = [
    Fault::Kill,
    Fault::Kill,
    Fault::Kill,
    Fault::Stop,
    Fault::TornTail,
    Fault::TornTail,
    Fault::Rename,
    Fault::Rename,
    Fault::CopyTruncate,
    Fault::Pack,
    Fault::Delete,
    Fault::Partial,
    Fault::ReadOnly,
    Fault::Full,
];

#[test]
fn nothing_is_lost_or_doubled_whatever_happens() {
    let (faults, seed) = (number("DEMI_KILL_FAULTS", 10), number("DEMI_KILL_SEED", 1));
    let mut random = Random::new(seed);
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start();
    let queue = server.as_ref().map_or_else(String::new, |server| {
        server.deliver_again_soon();
        let url = server.url();
        format!("[sources.queue]\ntype = \"nats\"\nsystem = \"s\"\nurl = \"{url}\"\nstream = \"EVENTS\"\n")
    });
    let mut daemon = Daemon::new(dir.path(), &queue);
    let files = Files::new(dir.path().join("logs"), "file", 3, record);
    let texts = Files::new(dir.path().join("texts"), "text", 2, text);
    let clients = Clients::start(daemon.addresses(), 2, 2, 2);
    let producer = server.as_ref().map(Producer::start);
    daemon.start();
    let mut read_only = false;
    for n in 0..faults {
        let fault = FAULTS[random.below(FAULTS.len() as u64) as usize];
        eprintln!("fault {n}: {fault:?}");
        match fault {
            Fault::Kill => {
                daemon.kill();
                pause(&mut random, 300);
                daemon.start();
            }
            Fault::Stop => {
                daemon.stop();
                pause(&mut random, 300);
                daemon.start();
            }
            Fault::TornTail => {
                daemon.kill();
                daemon.tear_spool(&mut random);
                daemon.start();
            }
            Fault::Rename => some(&files, &texts, &mut random, Files::rename),
            Fault::CopyTruncate => some(&files, &texts, &mut random, Files::copy_truncate),
            Fault::Pack => {
                let zstd = random.below(2) == 0;
                some(&files, &texts, &mut random, |files, n| files.pack(n, zstd));
            }
            Fault::Delete => files.delete_what_is_durable(&daemon.positions()),
            Fault::Partial => files.leave_partial(random.below(3) as usize, &mut random),
            Fault::ReadOnly if !read_only => {
                read_only = daemon.freeze_store();
                if read_only {
                    pause(&mut random, 1500);
                    if random.below(2) == 0 {
                        daemon.kill();
                        daemon.thaw_store();
                        daemon.start();
                    }
                    daemon.thaw_store();
                    read_only = false;
                }
            }
            Fault::ReadOnly => {}
            Fault::Full => {
                if daemon.freeze_store() {
                    clients.flood(&daemon.addresses());
                    daemon.thaw_store();
                }
            }
        }
        pause(&mut random, 400);
    }
    let expected_files = files.finish();
    let mut expected = clients.finish();
    expected.extend(expected_files);
    expected.extend(texts.finish());
    expected.extend(producer.map(|producer| ("nats-0".to_owned(), producer.finish())));
    daemon.wait_for(expected.values().sum());
    daemon.stop();
    check::everything_once(dir.path(), &expected);
}

/// Does something to one of the files.
fn some(files: &Files, texts: &Files, random: &mut Random, what: impl Fn(&Files, usize)) {
    match random.below(5) as usize {
        n @ 0..3 => what(files, n),
        n => what(texts, n - 3),
    }
}

fn pause(random: &mut Random, most_millis: u64) {
    thread::sleep(Duration::from_millis(random.below(most_millis)));
}
