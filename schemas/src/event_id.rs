//! Names of events: `ACTOR/SEQ`, or `ACTOR/INCARNATION/SEQ` for any incarnation but the first.

use std::fmt;

/// Which event: the actor, its incarnation, and the sequence number in that incarnation's log.
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
        if self.incarnation == 0 {
            write!(f, "{}/{}", self.actor, self.seq)
        } else {
            write!(f, "{}/{}/{}", self.actor, self.incarnation, self.seq)
        }
    }
}

/// A text that names no event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an event name: expected ACTOR/SEQ or ACTOR/INCARNATION/SEQ, SEQ counted from 1")]
pub struct EventIdError(pub String);

impl EventId {
    /// The readings of `text`, the likeliest first.
    ///
    /// Actor names may themselves hold slashes and digits, so `a/1/5` can be event 5 of incarnation 1 of `a`, or
    /// event 5 of actor `a/1`; whoever knows the actors takes the first reading that exists.
    ///
    /// # Errors
    /// When there is no reading: no slash, no number at the end, or sequence number 0.
    pub fn readings(text: &str) -> Result<Vec<EventId>, EventIdError> {
        let bad = || EventIdError(text.to_owned());
        let (head, seq) = text.rsplit_once('/').ok_or_else(bad)?;
        let seq: u64 = seq.parse().map_err(|_| bad())?;
        if seq == 0 || head.is_empty() {
            return Err(bad());
        }
        let mut readings = Vec::with_capacity(2);
        if let Some((actor, incarnation)) = head.rsplit_once('/')
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
    fn refuses_what_names_nothing() {
        for bad in ["", "a", "a/", "/3", "a/0", "a/x", "a/-1"] {
            assert!(EventId::readings(bad).is_err(), "{bad}");
        }
    }
}
