//! Rows of the table of messages, made from the records of their ends and what was found out about these.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, UInt32Array};
use arrow_schema::SchemaRef;
use arrow_select::take::take;

use crate::error::LineageError;
use crate::index::{Index, Role};
use crate::matching::{Evidence, Matching, Reason, Status};
use crate::read::{Events, NONE, is_send};

/// Columns of a message that its record tells.
pub(crate) const RECORDED: [&str; 4] = ["msg_id", "from", "to", "type"];

/// The end of a message that an event is.
pub(crate) struct End {
    /// Whether it sends.
    sends: bool,
    /// Whether it receives.
    receives: bool,
    /// The other end, or [`NONE`].
    mate: u32,
    /// What became of the message.
    status: Status,
    /// Why the ends are taken for those of one message.
    reason: Reason,
    /// Whether no other match is possible.
    certain: bool,
}

/// The parts of an event's name: actor, incarnation and sequence number.
pub(crate) type Name<'a> = (&'a str, u32, u64);

/// The ends of all messages, by event.
pub(crate) trait Ends {
    /// What an event is.
    fn end(&self, event: u32) -> Result<End, LineageError>;
    /// The further edges into an event.
    fn further(&self, event: u32) -> Result<Vec<(u32, Evidence)>, LineageError>;
    /// An event's name.
    fn name(&self, event: u32) -> Result<Name<'_>, LineageError>;
}

impl Ends for (&Events, &Matching) {
    fn end(&self, event: u32) -> Result<End, LineageError> {
        let ((events, matching), e) = (self, event as usize);
        Ok(End {
            sends: is_send(events.kind[e]),
            receives: events.kind[e].is_delivery(),
            mate: matching.mates()[e],
            status: matching.status[e],
            reason: matching.reason[e],
            certain: matching.certain[e],
        })
    }

    fn further(&self, event: u32) -> Result<Vec<(u32, Evidence)>, LineageError> {
        Ok(self.1.extra_into(event).collect())
    }

    fn name(&self, event: u32) -> Result<Name<'_>, LineageError> {
        let events = self.0;
        let (incarnation, seq) = events.places.get(event);
        Ok((events.actor_name(events.actor[event as usize]), incarnation, seq))
    }
}

impl Ends for Index {
    fn end(&self, event: u32) -> Result<End, LineageError> {
        let info = self.info(event)?;
        let (sends, receives) = (info.role() == Role::Send, info.role() == Role::Delivery);
        Ok(match self.mate(event)? {
            Some(mate) => {
                let (status, reason, certain) = (Status::Matched, info.reason(), info.is_certain());
                End { sends, receives, mate, status, reason, certain }
            }
            None => {
                let (status, reason) = (info.status(), Reason::None);
                End { sends, receives, mate: NONE, status, reason, certain: false }
            }
        })
    }

    fn further(&self, event: u32) -> Result<Vec<(u32, Evidence)>, LineageError> {
        if self.info(event)?.is_linked() {
            self.links().causes(event).map(Iterator::collect)
        } else {
            Ok(Vec::new())
        }
    }

    fn name(&self, event: u32) -> Result<Name<'_>, LineageError> {
        let (actor, incarnation, seq) = self.place(event)?;
        Ok((&self.header().actors[actor].name, incarnation, seq))
    }
}

/// A row of the table.
struct MessageRow {
    /// Whose record tells of it, by its place among those given.
    record: u32,
    send: u32,
    receive: u32,
    status: Status,
    reason: Reason,
    certain: bool,
}

/// Rows of the table, with the columns of `schema`, told by these events: one a send or timer set, one a receive that has none, and one a
/// further edge. `records` has a row for each event, where columns are wanted that records tell.
pub(crate) fn rows(
    schema: &SchemaRef,
    events: &[u32],
    records: Option<&RecordBatch>,
    ends: &impl Ends,
) -> Result<RecordBatch, LineageError> {
    let mut rows: Vec<MessageRow> = Vec::new();
    for (&event, record) in events.iter().zip(0..) {
        let End { sends, receives, mate, status, reason, certain } = ends.end(event)?;
        let unmatched = receives && mate == NONE && !matches!(status, Status::Local | Status::Matched);
        if sends || unmatched {
            let (send, receive) = if sends { (event, mate) } else { (mate, event) };
            rows.push(MessageRow { record, send, receive, status, reason, certain });
        }
        for (cause, Evidence { reason, certain }) in ends.further(event)? {
            let status = Status::of_edge(reason);
            rows.push(MessageRow { record, send: cause, receive: event, status, reason, certain });
        }
    }
    // What is no message has no sender, receiver, id and type.
    let told = |row: &MessageRow| (row.status != Status::Order).then_some(row.record);
    let taken: UInt32Array = rows.iter().map(told).collect();
    let names = |of: fn(&MessageRow) -> u32| -> Result<Vec<Option<Name<'_>>>, LineageError> {
        let name = |event| if event == NONE { Ok(None) } else { ends.name(event).map(Some) };
        rows.iter().map(|row| name(of(row))).collect()
    };
    let wanted = |side: &str| schema.fields().iter().any(|field| field.name().starts_with(side));
    let sends = if wanted("send_") { names(|row| row.send)? } else { Vec::new() };
    let receives = if wanted("receive_") { names(|row| row.receive)? } else { Vec::new() };
    let column = |name: &str| -> Result<ArrayRef, LineageError> {
        let (side, part) = match name.split_once('_') {
            Some(("send", part)) => (&sends, part),
            Some(("receive", part)) => (&receives, part),
            _ => (&sends, name),
        };
        Ok(match part {
            "actor" => Arc::new(side.iter().map(|e| e.map(|e| e.0)).collect::<StringArray>()),
            "incarnation" => Arc::new(side.iter().map(|e| e.map(|e| e.1 as i32)).collect::<Int32Array>()),
            "seq" => Arc::new(side.iter().map(|e| e.map(|e| e.2 as i64)).collect::<Int64Array>()),
            "status" => Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.status.as_str()))),
            "reason" => Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.reason.as_str()))),
            "certain" => Arc::new(BooleanArray::from_iter(rows.iter().map(|row| Some(row.certain)))),
            told => {
                let records = records.and_then(|batch| batch.column_by_name(told));
                take(records.ok_or(LineageError::WriterGone)?, &taken, None)?
            }
        })
    };
    let columns = schema.fields().iter().map(|field| column(field.name())).collect::<Result<_, _>>()?;
    Ok(RecordBatch::try_new(schema.clone(), columns)?)
}
