//! Messages, how they are written down, and how those from outside are read.

use std::fmt::Write as _;
use std::sync::Arc;

use demi_schemas::event::TimerInfo;
use serde_json::Value;

use super::config::Config;
use super::state::Entry;
use demi_replay::model::ExternalMessage;
use demi_replay::names::{ActorId, Names};

/// Name of the timer that starts elections.
pub const ELECTION_TIMER: &str = "election-timer";
/// Name of the timer that makes a leader replicate.
pub const HEARTBEAT_TIMER: &str = "heartbeat-timer";
/// Name of the timer that a new candidacy leaves behind and nobody reacts to.
pub const STATE_TIMEOUT: &str = "state-timeout";

/// What members send to each other, get from clients and carry in timers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Msg {
    /// A candidate asks for a vote.
    RequestVote {
        /// Term of the election.
        term: i32,
        /// Who wants to be leader.
        candidate: ActorId,
        /// Term of its last log entry.
        last_term: i32,
        /// Index of its last log entry.
        last_index: i32,
    },
    /// A vote.
    VoteCandidate {
        /// Term of the voter.
        term: i32,
    },
    /// A refused vote.
    DeclineCandidate {
        /// Term of the refusing member, or of the request.
        term: i32,
    },
    /// A candidate tells itself to ask for votes.
    BeginElection,
    /// A new leader tells itself to begin its work.
    ElectedAsLeader,
    /// A leader replicates.
    AppendEntries {
        /// Term of the leader.
        term: i32,
        /// Term of the entry before the first.
        prev_term: i32,
        /// Index of the entry before the first.
        prev_index: i32,
        /// At most five entries of one term.
        entries: Arc<[Entry]>,
        /// Index up to which the leader has committed.
        commit: i32,
    },
    /// A follower has appended.
    AppendSuccessful {
        /// Term of its last log entry.
        term: i32,
        /// Index of its last log entry.
        index: i32,
    },
    /// A follower refuses to append.
    AppendRejected {
        /// Its term.
        term: i32,
        /// Index of its last log entry; 0 in the family that does not send it.
        index: i32,
    },
    /// A member that knows no configuration asks for it.
    RequestConfiguration,
    /// The members, as the sender lists them.
    ChangeConfiguration {
        /// Their names.
        members: Arc<[ActorId]>,
    },
    /// A client's command to append a word.
    ClientMessage {
        /// The word, a number.
        word: u64,
    },
    /// The election timer.
    ElectionTimer {
        /// How many timers the member had set before.
        generation: u32,
    },
    /// The heartbeat timer.
    HeartbeatTimer {
        /// How many timers the member had set before.
        generation: u32,
    },
    /// The state timeout.
    StateTimeout {
        /// How many messages the member had received when it was set.
        generation: u32,
    },
}

impl Msg {
    /// Message type tag; for timers, the name of what they carry.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Msg::RequestVote { .. } => "RequestVote",
            Msg::VoteCandidate { .. } => "VoteCandidate",
            Msg::DeclineCandidate { .. } => "DeclineCandidate",
            Msg::BeginElection => "BeginElection",
            Msg::ElectedAsLeader => "ElectedAsLeader",
            Msg::AppendEntries { .. } => "AppendEntries",
            Msg::AppendSuccessful { .. } => "AppendSuccessful",
            Msg::AppendRejected { .. } => "AppendRejected",
            Msg::RequestConfiguration => "RequestConfiguration",
            Msg::ChangeConfiguration { .. } => "ChangeConfiguration",
            Msg::ClientMessage { .. } => "ClientMessage",
            Msg::ElectionTimer { .. } => "ElectionTimeout",
            Msg::HeartbeatTimer { .. } => "SendHeartbeat",
            Msg::StateTimeout { .. } => "StateTimeout",
        }
    }

    /// The term that the message carries.
    #[must_use]
    pub fn term(&self) -> Option<i32> {
        match *self {
            Msg::RequestVote { term, .. }
            | Msg::VoteCandidate { term }
            | Msg::DeclineCandidate { term }
            | Msg::AppendEntries { term, .. }
            | Msg::AppendSuccessful { term, .. }
            | Msg::AppendRejected { term, .. } => Some(term),
            _ => None,
        }
    }

    /// Full content, exactly as the program logs it.
    #[must_use]
    pub fn payload(&self, config: &Config, names: &Names) -> String {
        let mut out = String::with_capacity(64);
        // Writing to a String cannot fail.
        let _ = self.write(&mut out, config, names);
        out
    }

    fn write(&self, out: &mut String, config: &Config, names: &Names) -> std::fmt::Result {
        let zero_indexed = config.switches.raft58b_zero_indexed_log;
        match self {
            Msg::RequestVote { term, candidate, last_term, last_index } => {
                let candidate = names.get(*candidate);
                write!(out, "(RequestVote,Term({term}),{candidate},Term({last_term}),{last_index})")
            }
            Msg::VoteCandidate { term } => write!(out, "VoteCandidate(Term({term}))"),
            Msg::DeclineCandidate { term } => write!(out, "DeclineCandidate(Term({term}))"),
            Msg::AppendEntries { term, prev_term, prev_index, entries, commit } => {
                write!(
                    out,
                    "AppendEntries(term:Term({term}),prevLog:(Term({prev_term}),{prev_index}),entries:List("
                )?;
                for (i, Entry { word, term, index }) in entries.iter().enumerate() {
                    let comma = if i > 0 { ", " } else { "" };
                    let client = "Some(Actor[akka:///deadLetters])";
                    write!(out, "{comma}Entry(AppendWord({word}),Term({term}),{index},{client})")?;
                }
                match zero_indexed {
                    true => out.write_str("))"),
                    false => write!(out, "),leaderCommit:{commit})"),
                }
            }
            Msg::AppendSuccessful { term, index } => write!(out, "AppendSuccessful(Term({term}),{index})"),
            Msg::AppendRejected { term, index } if zero_indexed => {
                write!(out, "AppendRejected(Term({term}),{index})")
            }
            Msg::AppendRejected { term, .. } => write!(out, "AppendRejected(Term({term}))"),
            Msg::ChangeConfiguration { members } if !config.payload.bare_change_configuration => {
                out.write_str("ChangeConfiguration(StableRaftConfiguration(Set(")?;
                for (i, member) in members.iter().enumerate() {
                    let comma = if i > 0 { ", " } else { "" };
                    write!(out, "{comma}{}", names.get(*member))?;
                }
                out.write_str(")))")
            }
            Msg::ClientMessage { word } if config.payload.client_message_names_client => {
                write!(out, "ClientMessage(Actor[akka:///deadLetters],AppendWord({word}))")
            }
            Msg::ClientMessage { word } => write!(out, "(ClientMessage,AppendWord({word}))"),
            Msg::ElectionTimer { generation } => {
                write!(out, "TimerFingerprint({ELECTION_TIMER},ElectionTimeout,false,{generation})")
            }
            Msg::HeartbeatTimer { generation } => {
                write!(out, "TimerFingerprint({HEARTBEAT_TIMER},SendHeartbeat,true,{generation})")
            }
            Msg::StateTimeout { .. } => out.write_str("TimeoutMarkerFingerprint"),
            Msg::BeginElection
            | Msg::ElectedAsLeader
            | Msg::RequestConfiguration
            | Msg::ChangeConfiguration { .. } => out.write_str(self.type_name()),
        }
    }

    /// What handlers read of a timer: not its generation, which is for logs.
    #[must_use]
    pub fn read_of_timer(&self) -> Option<String> {
        let fired = |name, repeats| format!("TimerFingerprint({name},{},{repeats})", self.type_name());
        match self {
            Msg::ElectionTimer { .. } => Some(fired(ELECTION_TIMER, false)),
            Msg::HeartbeatTimer { .. } => Some(fired(HEARTBEAT_TIMER, true)),
            Msg::StateTimeout { .. } => Some("TimeoutMarkerFingerprint".to_owned()),
            _ => None,
        }
    }

    /// What is logged of a timer besides its payload.
    #[must_use]
    pub fn timer_info(&self) -> TimerInfo {
        let named = |name: &str, repeat: bool, generation: u32| TimerInfo {
            name: Some(name.to_owned()),
            message: Some(self.type_name().to_owned()),
            repeat: Some(repeat),
            generation: Some(u64::from(generation)),
            ..TimerInfo::default()
        };
        match *self {
            Msg::ElectionTimer { generation } => named(ELECTION_TIMER, false, generation),
            Msg::HeartbeatTimer { generation } => named(HEARTBEAT_TIMER, true, generation),
            Msg::StateTimeout { generation } => TimerInfo {
                name: Some(STATE_TIMEOUT.to_owned()),
                generation: Some(u64::from(generation)),
                ..TimerInfo::default()
            },
            _ => TimerInfo::default(),
        }
    }

    /// Re-creates a message from outside. `everyone` is who a configuration means that lists nobody.
    ///
    /// # Errors
    /// What is missing or not understood.
    pub fn external(
        message: ExternalMessage<'_>,
        everyone: &Arc<[ActorId]>,
        names: &mut Names,
    ) -> Result<Msg, String> {
        match message.type_ {
            "ClientMessage" => client_message(message),
            "ChangeConfiguration" => change_configuration(message, everyone, names),
            other => Err(format!(
                "'{other}' cannot come from outside: expected ClientMessage or ChangeConfiguration"
            )),
        }
    }
}

fn client_message(message: ExternalMessage<'_>) -> Result<Msg, String> {
    let field = match message.fields.and_then(|fields| fields.get("word")) {
        Some(Value::String(word)) => word.parse().ok(),
        Some(Value::Number(word)) => word.as_u64(),
        Some(_) => None,
        None => command(message.payload).and_then(|word| word.parse().ok()),
    };
    field.map(|word| Msg::ClientMessage { word }).ok_or_else(|| {
        format!(
            "client message '{}' appends no word: expected a decimal number in its field 'word' or a payload \
             such as (ClientMessage,AppendWord(1))",
            message.payload
        )
    })
}

/// The word inside a client message of either family.
fn command(payload: &str) -> Option<&str> {
    let inner = match payload.strip_prefix("(ClientMessage,") {
        Some(inner) => inner,
        None => payload.strip_prefix("ClientMessage(")?.split_once(',')?.1,
    };
    inner.strip_prefix("AppendWord(")?.strip_suffix("))")
}

fn change_configuration(
    message: ExternalMessage<'_>,
    everyone: &Arc<[ActorId]>,
    names: &mut Names,
) -> Result<Msg, String> {
    let wrong = || {
        format!(
            "configuration '{}' is not understood: expected the field 'members', a list of names, or a payload \
             such as ChangeConfiguration(StableRaftConfiguration(Set(a, b)))",
            message.payload
        )
    };
    let members: Vec<ActorId> = match message.fields.and_then(|fields| fields.get("members")) {
        Some(members) => members
            .as_array()
            .and_then(|list| list.iter().map(|name| Some(names.id(name.as_str()?))).collect())
            .ok_or_else(wrong)?,
        None if message.payload.is_empty() || message.payload == "ChangeConfiguration" => {
            return Ok(Msg::ChangeConfiguration { members: everyone.clone() });
        }
        None => message
            .payload
            .strip_prefix("ChangeConfiguration(StableRaftConfiguration(Set(")
            .and_then(|rest| rest.strip_suffix(")))"))
            .ok_or_else(wrong)?
            .split(", ")
            .filter(|name| !name.is_empty())
            .map(|name| names.id(name))
            .collect(),
    };
    // The common list is shared instead of being copied into every message.
    let members = if members[..] == everyone[..] { everyone.clone() } else { members.into() };
    Ok(Msg::ChangeConfiguration { members })
}
