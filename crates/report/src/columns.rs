//! Columns of events for the page, with one table of texts.

use demi_lineage::export::{Content, NONE, Skeleton};
use rustc_hash::FxHashMap;

use crate::data::{AFFECTED, Columns, EXTERNAL, Edges, KEPT, LOOSE, NOTHING};

/// Numbers texts as they come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    numbers: FxHashMap<Box<str>, u32>,
    pub(crate) texts: Vec<String>,
}

impl Texts {
    /// The number of a text.
    pub(crate) fn number(&mut self, text: &str) -> u32 {
        if let Some(&n) = self.numbers.get(text) {
            return n;
        }
        let n = self.texts.len() as u32;
        self.numbers.insert(text.into(), n);
        self.texts.push(text.to_owned());
        n
    }

    /// The number of a text, or [`NOTHING`].
    pub(crate) fn maybe(&mut self, text: Option<&str>) -> i64 {
        text.map_or(NOTHING, |t| i64::from(self.number(t)))
    }
}

/// Columns that grow event by event.
#[derive(Debug, Default)]
pub(crate) struct ColumnBuilder {
    texts: Texts,
    columns: Columns,
    /// Where the events that are told end.
    end: u32,
    /// Effect, cause, how they are joined, whether that is certain.
    edges: Vec<(u32, u32, u8, bool)>,
}

impl ColumnBuilder {
    /// No events yet, of those before `end`.
    pub(crate) fn until(end: u32) -> ColumnBuilder {
        ColumnBuilder { end, ..ColumnBuilder::default() }
    }

    /// Adds an event of the skeleton with what it says.
    pub(crate) fn push(&mut self, s: &Skeleton, e: u32, content: &Content) {
        let i = e as usize;
        let c = &mut self.columns;
        c.actor.push(s.actor[i]);
        c.incarnation.push(s.incarnation[i]);
        c.seq.push(s.seq[i]);
        c.kind.push(s.kind[i] as u8);
        let affected = content.reason.as_deref() == Some("affected");
        let flags = [
            (s.kept[i], KEPT),
            (content.external, EXTERNAL),
            (s.place[i] == NONE, LOOSE),
            (affected, AFFECTED),
        ];
        c.flags.push(flags.iter().filter(|f| f.0).map(|f| f.1).sum());
        c.joint.push(s.joint[i] as u8);
        c.place.push(if s.place[i] == NONE { NOTHING } else { i64::from(s.place[i]) });
        c.type_.push(self.texts.maybe(content.type_.as_deref()));
        c.payload.push(self.texts.maybe(content.payload.as_deref()));
        c.fields.push(self.texts.maybe(content.fields.as_deref()));
        c.msg_id.push(self.texts.maybe(content.msg_id.as_deref()));
        c.from.push(self.texts.maybe(content.from.as_deref()));
        c.to.push(self.texts.maybe(content.to.as_deref()));
        c.time.push(self.texts.maybe(content.time.as_deref()));
        c.source.push(self.texts.maybe(content.source.as_deref()));
        c.offset.push(content.offset.and_then(|o| i64::try_from(o).ok()).unwrap_or(NOTHING));
        self.edges.extend(s.causes(e).map(|edge| (e, edge.event, edge.joint as u8, edge.certain)));
        // An edge within is told by its effect.
        let beyond = s.effects(e).filter(|edge| edge.event >= self.end);
        self.edges.extend(beyond.map(|edge| (edge.event, e, edge.joint as u8, edge.certain)));
    }

    /// The finished columns.
    pub(crate) fn finish(mut self, s: &Skeleton) -> Columns {
        self.edges.sort_unstable();
        let mut edges = Edges::default();
        for (effect, cause, joint, certain) in self.edges {
            edges.cause.push(cause);
            edges.cause_actor.push(s.actor[cause as usize]);
            edges.effect.push(effect);
            edges.effect_actor.push(s.actor[effect as usize]);
            edges.joint.push(joint);
            edges.certain.push(u8::from(certain));
        }
        Columns { texts: self.texts.texts, edges, ..self.columns }
    }
}
