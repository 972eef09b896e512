//! The order of an execution, without what its events say.

use demi_schemas::{EventId, Kind};
use rustc_hash::FxHashMap;

use super::error::ExportError;

/// No event.
pub const NONE: u32 = u32::MAX;

/// The relation of an event to a message (how its two ends were joined, or why one is missing), and why one event happens before
/// another that is not behind it in the same log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Joint {
    /// No message, or a fired timer whose setting nobody logged.
    #[default]
    Local,
    /// Both ends have the same message id.
    MessageId,
    /// A timer and its setting.
    Timer,
    /// By position on a channel that is in order.
    ChannelOrder,
    /// From content.
    Inferred,
    /// Which step sent the message is known from replaying on the model.
    Replayed,
    /// Sent, and not received by the end.
    InFlight,
    /// Sent, and overtaken for good.
    Lost,
    /// Received, and the send is where a log is missing.
    SenderMissing,
    /// Received again.
    Duplicate,
    /// From outside, and the send is in no log.
    External,
    /// Vector clocks tell it, and no message.
    Clock,
    /// A span and its parent in another log tell it, and no message.
    Parent,
    /// Through events that a slice leaves out.
    Indirect,
    /// A link of a span to one in another log tells it.
    Link,
    /// Operations of threads tell it.
    Operation,
}

impl Joint {
    /// All of them; the position is the code used in compact columns.
    pub const ALL: [Joint; 16] = [
        Joint::Local,
        Joint::MessageId,
        Joint::Timer,
        Joint::ChannelOrder,
        Joint::Inferred,
        Joint::Replayed,
        Joint::InFlight,
        Joint::Lost,
        Joint::SenderMissing,
        Joint::Duplicate,
        Joint::External,
        Joint::Clock,
        Joint::Parent,
        Joint::Indirect,
        Joint::Link,
        Joint::Operation,
    ];

    /// The word written in files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Joint::Local => "local",
            Joint::MessageId => "message_id",
            Joint::Timer => "timer",
            Joint::ChannelOrder => "channel_order",
            Joint::Inferred => "inferred",
            Joint::Replayed => "replayed",
            Joint::InFlight => "in_flight",
            Joint::Lost => "lost",
            Joint::SenderMissing => "sender_missing",
            Joint::Duplicate => "duplicate",
            Joint::External => "external",
            Joint::Clock => "clock",
            Joint::Parent => "parent",
            Joint::Indirect => "indirect",
            Joint::Link => "link",
            Joint::Operation => "operation",
        }
    }

    /// Whether it joins the two ends of a message, or a timer and its setting.
    #[must_use]
    pub fn is_message(self) -> bool {
        matches!(
            self,
            Joint::MessageId | Joint::Timer | Joint::ChannelOrder | Joint::Inferred | Joint::Replayed
        )
    }
}

/// An edge of happens-before beside the order of a log, as one of its ends sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Neighbor {
    /// The other end.
    pub event: u32,
    /// Why there is an edge.
    pub joint: Joint,
    /// Whether it does not rest on a guess.
    pub certain: bool,
}

/// Cause, effect, why, and whether it does not rest on a guess.
pub(crate) type Joined = (u32, u32, Joint, bool);

/// An execution's events in a linear extension of happens-before, and the edges of that order: an event is known by its rank, from 0.
///
/// Of a recorded execution all of it comes from the order index, so that a picture and a question have one answer.
#[derive(Clone, Debug, Default)]
pub struct Skeleton {
    /// Names of the actors, sorted.
    pub actors: Vec<String>,
    /// By event: the actor's number.
    pub actor: Vec<u32>,
    /// By event: the actor's incarnation.
    pub incarnation: Vec<u32>,
    /// By event: sequence number in the log of that incarnation, from 1.
    pub seq: Vec<u64>,
    /// By event: what it was.
    pub kind: Vec<Kind>,
    /// By event: whether it is in the causal past of the violation.
    pub kept: Vec<bool>,
    /// By event: how the two ends were joined, or why one is missing.
    pub joint: Vec<Joint>,
    /// By event: position in `chain` of its actor, or [`NONE`] for an event that is loose.
    pub place: Vec<u32>,
    /// By actor: its events in the order of its log.
    pub chain: Vec<Vec<u32>>,
    /// By actor: its events that have no place in its order: sends by the environment, and by threads outside handlers.
    pub loose: Vec<Vec<u32>>,
    /// By event: the other end of its message, or of the first of several, or [`NONE`].
    mate: Vec<u32>,
    /// By event: whether that edge does not rest on a guess.
    certain: Vec<bool>,
    /// Edges besides, sorted by effect and by cause: one end, and what it sees.
    into: Vec<(u32, Neighbor)>,
    out_of: Vec<(u32, Neighbor)>,
}

/// What stands beside `key` in pairs sorted by it.
fn beside(pairs: &[(u32, Neighbor)], key: u32) -> impl Iterator<Item = Neighbor> + '_ {
    let from = pairs.partition_point(|pair| pair.0 < key);
    pairs[from..].iter().take_while(move |pair| pair.0 == key).map(|pair| pair.1)
}

impl Skeleton {
    /// How many events there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kind.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kind.is_empty()
    }

    /// The edges into an event, those of its log left out.
    pub fn causes(&self, e: u32) -> impl Iterator<Item = Neighbor> + '_ {
        self.own(e, |mate| mate < e).into_iter().chain(beside(&self.into, e))
    }

    /// The edges out of an event, those of its log left out.
    pub fn effects(&self, e: u32) -> impl Iterator<Item = Neighbor> + '_ {
        self.own(e, |mate| mate > e).into_iter().chain(beside(&self.out_of, e))
    }

    fn own(&self, e: u32, wanted: impl Fn(u32) -> bool) -> Option<Neighbor> {
        let (mate, i) = (self.mate[e as usize], e as usize);
        let edge = Neighbor { event: mate, joint: self.joint[i], certain: self.certain[i] };
        (mate != NONE && wanted(mate)).then_some(edge)
    }

    /// The name of an event.
    #[must_use]
    pub fn id(&self, e: u32) -> EventId {
        let i = e as usize;
        EventId {
            actor: self.actors[self.actor[i] as usize].clone(),
            incarnation: self.incarnation[i],
            seq: self.seq[i],
        }
    }

    /// The number of an actor.
    #[must_use]
    pub fn find_actor(&self, name: &str) -> Option<u32> {
        self.actors.binary_search_by(|a| a.as_str().cmp(name)).ok().map(|i| i as u32)
    }

    /// The event of that name.
    #[must_use]
    pub fn find(&self, id: &EventId) -> Option<u32> {
        let actor = self.find_actor(&id.actor)? as usize;
        let key = (id.incarnation, id.seq);
        [&self.chain[actor], &self.loose[actor]].into_iter().find_map(|list| {
            let of = |e: u32| (self.incarnation[e as usize], self.seq[e as usize]);
            if let Ok(at) = list.binary_search_by_key(&key, |&e| of(e)) {
                return Some(list[at]);
            }
            // Spans may stand in the order of their parents instead of that of their stamps.
            list.iter().copied().find(|&e| of(e) == key)
        })
    }

    /// The event that a text names, as `ACTOR/SEQ` or `ACTOR/INCARNATION/SEQ`.
    ///
    /// # Errors
    /// When it names none; the error tells what there is.
    pub fn named(&self, text: &str) -> Result<u32, ExportError> {
        let readings = EventId::readings(text)?;
        if let Some(e) = readings.iter().find_map(|id| self.find(id)) {
            return Ok(e);
        }
        let known = readings.iter().find_map(|id| self.find_actor(&id.actor));
        let has = match known {
            Some(actor) => {
                let all = self.chain[actor as usize].iter().chain(&self.loose[actor as usize]);
                let (first, last) =
                    (all.clone().min_by_key(|e| self.id(**e)), all.max_by_key(|e| self.id(**e)));
                match (first, last) {
                    (Some(a), Some(b)) => format!("its events go from {} to {}", self.id(*a), self.id(*b)),
                    _ => "it has no events".to_owned(),
                }
            }
            None => format!("actors: {}", self.list_actors()),
        };
        Err(ExportError::NoEvent { name: text.to_owned(), has })
    }

    /// Names of the actors for a message, at most twenty.
    #[must_use]
    pub fn list_actors(&self) -> String {
        let mut text = self.actors.iter().take(20).map(String::as_str).collect::<Vec<_>>().join(", ");
        if self.actors.len() > 20 {
            text.push_str(&format!(" and {} more", self.actors.len() - 20));
        }
        text
    }

    /// The event before it in its actor's own order.
    #[must_use]
    pub fn previous(&self, e: u32) -> Option<u32> {
        let place = self.place[e as usize];
        let chain = &self.chain[self.actor[e as usize] as usize];
        (place != NONE).then(|| chain.get((place as usize).wrapping_sub(1)).copied()).flatten()
    }

    /// The event after it in its actor's own order.
    #[must_use]
    pub fn next(&self, e: u32) -> Option<u32> {
        let place = self.place[e as usize];
        let chain = &self.chain[self.actor[e as usize] as usize];
        (place != NONE).then(|| chain.get(place as usize + 1).copied()).flatten()
    }
}

/// Puts a [`Skeleton`] together from events in a linear extension of happens-before.
#[derive(Debug, Default)]
pub struct Builder {
    names: FxHashMap<String, u32>,
    skeleton: Skeleton,
    loose: Vec<bool>,
    edges: Vec<Joined>,
}

impl Builder {
    /// Adds an event; gives its number. `loose` says that it has no place in the order of its log.
    pub fn push(&mut self, id: &EventId, kind: Kind, kept: bool, loose: bool) -> u32 {
        let actor = self.actor(&id.actor);
        self.push_at(actor, (id.incarnation, id.seq), kind, kept, loose)
    }

    /// Adds an actor that may have no events; gives the number for [`Builder::push_at`].
    pub(crate) fn actor(&mut self, name: &str) -> u32 {
        if let Some(&n) = self.names.get(name) {
            return n;
        }
        let n = self.skeleton.actors.len() as u32;
        self.names.insert(name.to_owned(), n);
        self.skeleton.actors.push(name.to_owned());
        n
    }

    /// As [`Builder::push`], by the actor's number.
    pub(crate) fn push_at(
        &mut self,
        actor: u32,
        (incarnation, seq): (u32, u64),
        kind: Kind,
        kept: bool,
        loose: bool,
    ) -> u32 {
        let s = &mut self.skeleton;
        s.actor.push(actor);
        s.incarnation.push(incarnation);
        s.seq.push(seq);
        s.kind.push(kind);
        s.kept.push(kept);
        s.joint.push(Joint::Local);
        self.loose.push(loose);
        s.kind.len() as u32 - 1
    }

    /// Says what became of the message of an event whose other end is not known.
    pub fn open(&mut self, e: u32, joint: Joint) {
        if let Some(own) = self.skeleton.joint.get_mut(e as usize) {
            *own = joint;
        }
    }

    /// Adds an edge. One whose effect is not later than its cause is left out.
    pub fn join(&mut self, cause: u32, effect: u32, joint: Joint, certain: bool) {
        if cause < effect && (effect as usize) < self.skeleton.len() {
            self.edges.push((cause, effect, joint, certain));
        }
    }

    /// The finished skeleton; actors are sorted by name.
    #[must_use]
    pub fn finish(self) -> Skeleton {
        let Builder { skeleton: mut s, loose, edges, .. } = self;
        let mut sorted: Vec<u32> = (0..s.actors.len() as u32).collect();
        sorted.sort_by(|&a, &b| s.actors[a as usize].cmp(&s.actors[b as usize]));
        let mut number = vec![0; sorted.len()];
        sorted.iter().enumerate().for_each(|(new, &old)| number[old as usize] = new as u32);
        s.actors.sort_unstable();
        s.actor.iter_mut().for_each(|a| *a = number[*a as usize]);
        s.chain = vec![Vec::new(); s.actors.len()];
        s.loose = vec![Vec::new(); s.actors.len()];
        s.place = vec![NONE; s.len()];
        // Events come in an order that keeps that of each log.
        for (e, loose) in loose.iter().enumerate() {
            let lists = if *loose { &mut s.loose } else { &mut s.chain };
            let list = &mut lists[s.actor[e] as usize];
            if !loose {
                s.place[e] = list.len() as u32;
            }
            list.push(e as u32);
        }
        for list in &mut s.loose {
            list.sort_unstable_by_key(|&e| (s.incarnation[e as usize], s.seq[e as usize], e));
        }
        s.mate = vec![NONE; s.len()];
        s.certain = vec![false; s.len()];
        s.take(edges);
        s
    }
}

impl Skeleton {
    /// Takes the edges: of a message that one received the two ends know each other, all others stand in lists.
    fn take(&mut self, mut edges: Vec<Joined>) {
        edges.sort_unstable_by_key(|&(cause, effect, joint, certain)| (effect, cause, joint, !certain));
        edges.dedup_by_key(|edge| (edge.0, edge.1, edge.2));
        for (cause, effect, joint, certain) in edges {
            let (c, e) = (cause as usize, effect as usize);
            if joint.is_message() {
                for end in [c, e] {
                    // Of a message that several received, and that another event repeats, the first edge says how.
                    if !self.joint[end].is_message() {
                        self.joint[end] = joint;
                    }
                }
            }
            let alike = self.joint[c] == joint && self.joint[e] == joint;
            if joint.is_message() && alike && self.mate[c] == NONE && self.mate[e] == NONE {
                (self.mate[c], self.mate[e]) = (effect, cause);
                (self.certain[c], self.certain[e]) = (certain, certain);
            } else {
                self.into.push((effect, Neighbor { event: cause, joint, certain }));
                self.out_of.push((cause, Neighbor { event: effect, joint, certain }));
            }
        }
        self.into.sort_unstable();
        self.out_of.sort_unstable();
    }
}
