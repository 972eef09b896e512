//! What an event is, in one byte.

use crate::matching::{Reason, Status};

/// The role of an event: send, delivery, or neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Neither of the others.
    Local,
    /// Puts a message or timer on its way.
    Send,
    /// Takes a message, or a timer that fired.
    Delivery,
}

/// Bits 0–1 the role; 2 outside its log's order; 3 has explicit causes or effects; 4 the match is certain; 5–6 the reason
/// of a match, 7 whether the send stands outside its log's order. Without a match, bits 5–7 are the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Info(pub(crate) u8);

const ALONE: u8 = 1 << 2;
const LINKED: u8 = 1 << 3;
const CERTAIN: u8 = 1 << 4;
const SENDER_ALONE: u8 = 1 << 7;
/// Status of a timer that was set and did not fire.
const TIMER_PENDING: u8 = 6;

impl Info {
    /// An event that is matched.
    pub(crate) fn matched(
        role: Role,
        alone: bool,
        reason: Reason,
        certain: bool,
        sender_alone: bool,
    ) -> Info {
        let reason = match reason {
            Reason::None | Reason::Inferred => 0,
            Reason::ChannelOrder => 1,
            Reason::Timer => 2,
            // Clocks, spans and operations tell further edges only, see `links`.
            Reason::MessageId | Reason::Clock | Reason::Parent | Reason::Link | Reason::Operation => 3,
        };
        let mut bits = (role as u8) | (reason << 5);
        bits |= if alone { ALONE } else { 0 };
        bits |= if certain { CERTAIN } else { 0 };
        bits |= if sender_alone { SENDER_ALONE } else { 0 };
        Info(bits)
    }

    /// An event that is not matched.
    pub(crate) fn open(role: Role, alone: bool, status: Status, timer: bool) -> Info {
        let status = match status {
            Status::Local | Status::Matched | Status::Order => 0,
            Status::InFlight if timer => TIMER_PENDING,
            Status::InFlight => 1,
            Status::Lost => 2,
            Status::SenderMissing => 3,
            Status::Duplicate => 4,
            Status::External => 5,
        };
        Info((role as u8) | (status << 5) | if alone { ALONE } else { 0 })
    }

    /// The same, with explicit causes or effects.
    pub(crate) fn linked(self) -> Info {
        Info(self.0 | LINKED)
    }

    /// What it does with messages.
    pub(crate) fn role(self) -> Role {
        match self.0 & 3 {
            1 => Role::Send,
            2 => Role::Delivery,
            _ => Role::Local,
        }
    }

    /// Whether it stands outside its log's order: of the environment, or of a thread outside the handlers.
    pub(crate) fn is_alone(self) -> bool {
        self.0 & ALONE != 0
    }

    /// Whether it has explicit causes or effects.
    pub(crate) fn is_linked(self) -> bool {
        self.0 & LINKED != 0
    }

    /// Whether its match is certain; for matched events.
    pub(crate) fn is_certain(self) -> bool {
        self.0 & CERTAIN != 0
    }

    /// Whether its message was sent outside the order of its sender's log; for matched deliveries.
    pub(crate) fn is_sent_alone(self) -> bool {
        self.0 & SENDER_ALONE != 0
    }

    /// Why it was matched; for matched events.
    pub(crate) fn reason(self) -> Reason {
        match (self.0 >> 5) & 3 {
            0 => Reason::Inferred,
            1 => Reason::ChannelOrder,
            2 => Reason::Timer,
            _ => Reason::MessageId,
        }
    }

    /// What became of its message; for events without a match. [`Status::Local`] where there is none.
    pub(crate) fn status(self) -> Status {
        match self.0 >> 5 {
            1 | TIMER_PENDING => Status::InFlight,
            2 => Status::Lost,
            3 => Status::SenderMissing,
            4 => Status::Duplicate,
            5 => Status::External,
            _ => Status::Local,
        }
    }

    /// Whether it is a message that nobody was seen to receive, and (second) that was overtaken for good; for events
    /// without a match.
    pub(crate) fn never_received(self) -> (bool, bool) {
        let status = self.0 >> 5;
        (self.role() == Role::Send && (status == 1 || status == 2), status == 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked() {
        for role in [Role::Local, Role::Send, Role::Delivery] {
            for alone in [false, true] {
                for reason in [Reason::Inferred, Reason::ChannelOrder, Reason::Timer, Reason::MessageId] {
                    for certain in [false, true] {
                        let info = Info::matched(role, alone, reason, certain, !alone).linked();
                        assert_eq!(
                            (
                                info.role(),
                                info.is_alone(),
                                info.reason(),
                                info.is_certain(),
                                info.is_sent_alone()
                            ),
                            (role, alone, reason, certain, !alone)
                        );
                        assert!(info.is_linked());
                    }
                }
                let lost = Info::open(role, alone, Status::Lost, false);
                assert_eq!(lost.never_received(), (role == Role::Send, true));
                assert!(!Info::open(role, alone, Status::InFlight, true).never_received().0);
                assert_eq!((lost.role(), lost.is_alone(), lost.is_linked()), (role, alone, false));
                for status in [Status::InFlight, Status::Lost, Status::SenderMissing, Status::External] {
                    assert_eq!(Info::open(role, alone, status, false).status(), status);
                }
                assert_eq!(Info::open(role, alone, Status::InFlight, true).status(), Status::InFlight);
            }
        }
    }
}
