//! A small actor system whose log can be loaded: four actors hand numbers on to each other and add them up.
//!
//!     cargo run -p demi-log --example counter -- events.jsonl
//!     demi-lineage ingest load --store store --system counter events.jsonl
//!     demi-lineage build --store store --system counter --out exec
//!
//! Each actor is a thread with an inbox. With a second argument, what the actors themselves know of their messages is
//! written to that file, one line a message: the event that sent it and the event that received it.

use std::fmt::Write as _;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use demi_log::MsgId;
use tracing_subscriber::prelude::*;

const ACTORS: usize = 4;
/// Times that each first message is handed on.
const HOPS: u64 = 40;

struct Message {
    id: MsgId,
    from: String,
    hops: u64,
    /// Position of the sending in its sender's own count of events.
    sent_as: u64,
}

struct Actor {
    name: String,
    inbox: Receiver<Option<Message>>,
    peers: Vec<(String, Sender<Option<Message>>)>,
    /// Told when a message is handed on no further.
    ended: Sender<()>,
    total: u64,
    /// Events of this actor so far, counted by itself.
    events: u64,
    known: String,
}

impl Actor {
    fn send(&mut self, to: u64, hops: u64) {
        let (name, inbox) = &self.peers[to as usize % ACTORS];
        let id =
            demi_log::send!(self.name.as_str(), name.as_str(), "Add", payload = %format_args!("Add({hops})"));
        self.events += 1;
        // A peer that has stopped takes no more messages.
        let _ = inbox.send(Some(Message { id, from: self.name.clone(), hops, sent_as: self.events }));
    }

    fn receive(&mut self, message: Message) {
        let Message { id, from, hops, sent_as } = message;
        let name = self.name.as_str();
        demi_log::receive!(name, from.as_str(), "Add", id, payload = %format_args!("Add({hops})"));
        self.events += 1;
        let _ = writeln!(self.known, "{from}/{sent_as} {name}/{}", self.events);
        self.total += hops;
        demi_log::state!(name, total = self.total);
        self.events += 1;
        if hops > 0 {
            self.send(self.total, hops - 1);
        } else {
            let _ = self.ended.send(());
        }
    }

    fn run(mut self, first: u64) -> String {
        demi_log::start!(self.name.as_str());
        self.events += 1;
        self.send(first, HOPS);
        while let Ok(Some(message)) = self.inbox.recv() {
            self.receive(message);
        }
        demi_log::stop!(self.name.as_str());
        self.known
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let log = arguments.next().ok_or("give the file to write to")?;
    let known = run(log)?;
    if let Some(path) = arguments.next() {
        std::fs::write(path, known)?;
    }
    Ok(())
}

/// Runs the system, whose log goes to a file; gives back what the actors know of their messages.
pub fn run(log: impl AsRef<std::path::Path>) -> Result<String, Box<dyn std::error::Error>> {
    let (layer, guard) = demi_log::Builder::new().to_file(log)?;
    tracing_subscriber::registry().with(layer).init();

    let (ended, all_ended) = channel();
    let (peers, inboxes): (Vec<_>, Vec<_>) = (0..ACTORS)
        .map(|n| {
            let (sender, inbox) = channel();
            ((format!("counter-{n}"), sender), inbox)
        })
        .unzip();
    let threads: Vec<_> = inboxes
        .into_iter()
        .enumerate()
        .map(|(n, inbox)| {
            let (name, peers, ended) = (peers[n].0.clone(), peers.clone(), ended.clone());
            let actor = Actor { name, inbox, peers, ended, total: 0, events: 0, known: String::new() };
            thread::spawn(move || actor.run(n as u64 + 1))
        })
        .collect();
    all_ended.iter().take(ACTORS).for_each(drop);
    for (_, inbox) in &peers {
        inbox.send(None)?;
    }
    let mut known = String::new();
    for thread in threads {
        known += &thread.join().map_err(|_| "an actor panicked")?;
    }
    guard.close()?;
    Ok(known)
}
