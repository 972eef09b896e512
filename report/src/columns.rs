//! Columns of events for the page, with one table of texts.

use demi_order::export::{Content, NONE, Skeleton};
use rustc_hash::FxHashMap;

use crate::data::{AFFECTED, Columns, EXTERNAL, KEPT, LOOSE, NOTHING};

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
pub(crate) struct Filling {
    texts: Texts,
    columns: Columns,
}

impl Filling {
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
        let mate = s.mate[i];
        let known = mate != NONE;
        c.mate.push(if known { i64::from(mate) } else { NOTHING });
        c.mate_actor.push(if known { i64::from(s.actor[mate as usize]) } else { NOTHING });
        c.type_.push(self.texts.maybe(content.type_.as_deref()));
        c.payload.push(self.texts.maybe(content.payload.as_deref()));
        c.from.push(self.texts.maybe(content.from.as_deref()));
        c.to.push(self.texts.maybe(content.to.as_deref()));
        c.time.push(self.texts.maybe(content.time.as_deref()));
        c.source.push(self.texts.maybe(content.source.as_deref()));
        c.offset.push(content.offset.and_then(|o| i64::try_from(o).ok()).unwrap_or(NOTHING));
    }

    /// The finished columns.
    pub(crate) fn finish(self) -> Columns {
        Columns { texts: self.texts.texts, ..self.columns }
    }
}
