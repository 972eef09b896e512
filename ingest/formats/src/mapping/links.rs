//! Message ids for logs that have none: sends and receives of equal keys are joined in order.

use std::collections::VecDeque;

use demi_schemas::event::{COUNTED_AFTER_LOSS_ID, COUNTED_ID, EARLIEST_ID};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::file::LinkOrder;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Channel {
    /// Ids of sends without a receive, first sent first.
    open: VecDeque<u64>,
    sends: u64,
    receives: u64,
}

/// What was sent and not received yet, by execution and key.
#[derive(Default)]
pub(crate) struct Links {
    channels: FxHashMap<u128, Channel>,
    sends: u64,
    strays: u64,
    /// Whether a record could not be read, which may have been a send or a receive of any channel.
    lost: bool,
}

/// [`Links`] in a form that can be written down; keys are hexadecimal.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct LinksState {
    channels: Vec<(String, Channel)>,
    sends: u64,
    strays: u64,
    #[serde(default)]
    lost: bool,
}

impl LinksState {
    pub(crate) fn restore(self) -> Links {
        let channel =
            |(key, channel): (String, Channel)| Some((u128::from_str_radix(&key, 16).ok()?, channel));
        Links {
            channels: self.channels.into_iter().filter_map(channel).collect(),
            sends: self.sends,
            strays: self.strays,
            lost: self.lost,
        }
    }
}

impl Links {
    /// Learns that a record could not be read.
    pub(crate) fn lose(&mut self) {
        self.lost = true;
    }

    /// What is remembered, to be written down.
    pub(crate) fn state(&self) -> LinksState {
        let mut channels: Vec<_> =
            self.channels.iter().map(|(key, c)| (format!("{key:032x}"), c.clone())).collect();
        channels.sort_by(|a, b| a.0.cmp(&b.0));
        LinksState { channels, sends: self.sends, strays: self.strays, lost: self.lost }
    }

    /// The id of a message from the key of its send or receive. A receive without a send gets an id of its own.
    pub(crate) fn id(&mut self, execution: &str, key: &[String], order: LinkOrder, is_send: bool) -> String {
        let mut bytes = Vec::with_capacity(64);
        for part in std::iter::once(execution).chain(key.iter().map(String::as_str)) {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        let hash = xxh3_128(&bytes);
        let channel = self.channels.entry(hash).or_default();
        match (order, is_send) {
            (LinkOrder::Count, _) => {
                let count = if is_send { &mut channel.sends } else { &mut channel.receives };
                *count += 1;
                let how = if self.lost { COUNTED_AFTER_LOSS_ID } else { COUNTED_ID };
                format!("{how}{:016x}-{count}", hash as u64)
            }
            (LinkOrder::Earlier, true) => {
                self.sends += 1;
                channel.open.push_back(self.sends);
                format!("{EARLIEST_ID}{}", self.sends)
            }
            (LinkOrder::Earlier, false) => {
                let open = channel.open.pop_front();
                // Keys may be as many as messages: only those of open sends are held.
                if channel.open.is_empty() {
                    self.channels.remove(&hash);
                }
                match open {
                    Some(id) => format!("{EARLIEST_ID}{id}"),
                    None => {
                        self.strays += 1;
                        format!("stray{}", self.strays)
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_open_send_is_taken() {
        let mut links = Links::default();
        let key = ["a".to_owned(), "b".to_owned()];
        let mut id = |send, key: &[String]| links.id("", key, LinkOrder::Earlier, send);
        assert_eq!(id(false, &key), "stray1");
        assert_eq!((id(true, &key), id(true, &key)), ("earliest:1".into(), "earliest:2".into()));
        assert_eq!(id(true, &["ab".to_owned(), String::new()]), "earliest:3");
        assert_eq!(
            (id(false, &key), id(false, &key), id(false, &key)),
            ("earliest:1".into(), "earliest:2".into(), "stray2".into())
        );
    }

    #[test]
    fn only_open_sends_are_held() {
        let mut links = Links::default();
        for n in 0..1000 {
            let key = [n.to_string()];
            assert_eq!(links.id("", &key, LinkOrder::Earlier, true), format!("{EARLIEST_ID}{}", n + 1));
            assert_eq!(links.id("", &key, LinkOrder::Earlier, false), format!("{EARLIEST_ID}{}", n + 1));
        }
        assert!(links.channels.is_empty());
    }

    #[test]
    fn counting_needs_no_order() {
        let mut links = Links::default();
        let key = ["k".to_owned()];
        let first = links.id("", &key, LinkOrder::Count, false);
        assert_eq!(links.id("", &key, LinkOrder::Count, true), first);
        assert_ne!(links.id("", &key, LinkOrder::Count, true), first);
        assert_ne!(links.id("other", &key, LinkOrder::Count, true), first);
    }

    #[test]
    fn what_is_counted_behind_a_loss_says_so_also_after_a_restart() {
        let mut links = Links::default();
        let key = ["k".to_owned()];
        let sent = links.id("", &key, LinkOrder::Count, true);
        links.lose();
        let mut links = links.state().restore();
        let received = links.id("", &key, LinkOrder::Count, false);
        assert_eq!(received.strip_prefix(COUNTED_AFTER_LOSS_ID), sent.strip_prefix(COUNTED_ID));
        assert!(links.id("", &key, LinkOrder::Earlier, true).starts_with(EARLIEST_ID));
    }
}
