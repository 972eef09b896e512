//! Names of events: `ACTOR/SEQ`, or `ACTOR/INCARNATION/SEQ` for any incarnation but the first.
//!
//! The first incarnation is named too, as 0, where the actor's name ends in a slash and digits: event 1 of actor `g/2` is `g/2/0/1`, because
//! `g/2/1` is that of incarnation 2 of `g`. So different events have different names.

use std::fmt;

/// The name of an event: the actor, its incarnation, and the sequence number in that incarnation's log.
///
/// Ordered by actor name, then incarnation, then sequence number, which is each actor's own order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId {
    /// Name of the actor.
    pub actor: String,
    /// Incarnation of the actor; 0 is the first.
    pub incarnation: u32,
    /// Sequence number in the log of that incarnation, from 1.
    pub seq: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.incarnation == 0 && !ends_in_number(&self.actor) {
            write!(f, "{}/{}", self.actor, self.seq)
        } else {
            write!(f, "{}/{}/{}", self.actor, self.incarnation, self.seq)
        }
    }
}

/// Whether a name could be read as that of an actor and an incarnation.
fn ends_in_number(actor: &str) -> bool {
    actor.rsplit_once('/').is_some_and(|(_, last)| is_number(last))
}

/// Whether a text is nothing but digits.
fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A text that names no event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an event name: expected ACTOR/SEQ or ACTOR/INCARNATION/SEQ, SEQ counted from 1")]
pub struct EventIdError(pub String);

impl EventId {
    /// The readings of `text`, the likeliest first.
    ///
    /// The first is the event that has this name. Actor names may themselves hold slashes and digits, and somebody may have written `a/1/5` for
    /// event 5 of actor `a/1`, whose name is `a/1/0/5`; whoever knows the actors takes the first reading that exists.
    ///
    /// # Errors
    /// When there is no reading: no slash, no number at the end, or sequence number 0.
    pub fn readings(text: &str) -> Result<Vec<EventId>, EventIdError> {
        let bad = || EventIdError(text.to_owned());
        let (head, seq) = text.rsplit_once('/').ok_or_else(bad)?;
        let seq: u64 =
            Some(seq).filter(|seq| is_number(seq)).and_then(|seq| seq.parse().ok()).ok_or_else(bad)?;
        if seq == 0 || head.is_empty() {
            return Err(bad());
        }
        let mut readings = Vec::with_capacity(2);
        if let Some((actor, incarnation)) = head.rsplit_once('/')
            && is_number(incarnation)
            && let Ok(incarnation) = incarnation.parse()
            && !actor.is_empty()
        {
            readings.push(EventId { actor: actor.to_owned(), incarnation, seq });
        }
        readings.push(EventId { actor: head.to_owned(), incarnation: 0, seq });
        Ok(readings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_life_is_not_named() {
        let id = EventId { actor: "a".into(), incarnation: 0, seq: 7 };
        assert_eq!(id.to_string(), "a/7");
        assert_eq!(EventId { incarnation: 2, ..id }.to_string(), "a/2/7");
    }

    #[test]
    fn readings_prefer_a_life_and_fall_back_to_a_longer_name() {
        let got = EventId::readings("user/m/1/5").unwrap();
        assert_eq!(got[0], EventId { actor: "user/m".into(), incarnation: 1, seq: 5 });
        assert_eq!(got[1], EventId { actor: "user/m/1".into(), incarnation: 0, seq: 5 });
    }

    #[test]
    fn different_events_have_different_names() {
        let actors =
            ["g", "g/2", "g/2/0", "g/2/0/1", "g/", "/2", "2", "g/02", "g/+2", "g/x", "g/99999999999"];
        let mut names = std::collections::BTreeSet::new();
        for (actor, incarnation, seq) in
            actors.iter().flat_map(|a| (0..3).flat_map(move |i| (1..4).map(move |s| (*a, i, s))))
        {
            let id = EventId { actor: actor.to_owned(), incarnation, seq };
            assert_eq!(EventId::readings(&id.to_string()).unwrap()[0], id, "{id}");
            assert!(names.insert(id.to_string()), "{id} twice");
        }
        assert!(names.contains("g/2/0/1") && names.contains("g/2/1") && names.contains("g/x/1"));
    }

    #[test]
    fn refuses_what_names_nothing() {
        for bad in ["", "a", "a/", "/3", "a/0", "a/x", "a/-1", "a/+1"] {
            assert!(EventId::readings(bad).is_err(), "{bad}");
        }
    }
}
