//! Sources whose lines are mapped: logs of other formats become event records before they are spooled.
//!
//! What a mapping remembers must be known whenever it is used again. Files keep it with their positions. Requests,
//! messages and connections come in no order that anybody knows, so they take only mappings that need none.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use super::batches::Batches;
use super::hand::Work;
use super::{Context, SourceError};
use crate::batch::{Content, Refusal};
use demi_formats::mapping::{HEAD, Mapper, Mapping};
use demi_formats::read::lines::Lines;

/// Mappers kept for the next request.
const MOST_IDLE: usize = 16;

/// What lines come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// Files: in order, with a beginning, and with positions that are saved.
    Files,
    /// Bodies of requests or messages: whole, in no order.
    Bodies,
    /// Connections: cut anywhere between two lines, in no order.
    Connections,
}

pub(crate) fn refuse(reason: impl fmt::Display) -> SourceError {
    SourceError::setting("mapping", reason.to_string())
}

/// The mapping of that name or file, if lines that come so can be mapped with it.
///
/// # Errors
/// When there is none, or it needs what the source cannot give.
pub(crate) fn find(name: &str, carrier: Carrier) -> Result<Mapping, SourceError> {
    let mapping = Mapping::find(name).map_err(refuse)?;
    let needs = mapping.needs().map_err(refuse)?;
    if let Some(why) = needs.end {
        return Err(refuse(format!("'{name}' is for whole files: {why}; use `ingest load`")));
    }
    if let (Some(why), true) = (needs.order, carrier != Carrier::Files) {
        let reason = format!(
            "'{name}' needs all lines in order: {why}; requests, messages and connections come in no order, so use it \
             with a source of type files, or let the log say sequence numbers and message ids"
        );
        return Err(refuse(reason));
    }
    if let (Some(why), Carrier::Connections) = (needs.lines, carrier) {
        let reason = format!(
            "{why} with '{name}', and nobody knows when the last one of a connection ends; use a source of type files or \
             http"
        );
        return Err(refuse(reason));
    }
    Ok(mapping)
}

/// What bodies and stretches of connections become, each by itself. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Bodies {
    /// None where they hold event records.
    mapping: Option<Arc<Mapping>>,
    idle: Arc<Mutex<Vec<Mapper>>>,
}

impl fmt::Debug for Bodies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.mapping.as_ref().map(|mapping| &mapping.name);
        f.debug_struct("Bodies").field("mapping", &name).finish_non_exhaustive()
    }
}

impl Bodies {
    /// Those of a source with that `mapping`, or none.
    ///
    /// # Errors
    /// As [`find`].
    pub(crate) fn of(mapping: Option<&str>, carrier: Carrier) -> Result<Self, SourceError> {
        let mapping = mapping.map(|name| find(name, carrier)).transpose()?.map(Arc::new);
        Ok(Bodies { mapping, idle: Arc::default() })
    }

    /// Whether they are mapped.
    pub(super) fn are_mapped(&self) -> bool {
        self.mapping.is_some()
    }

    /// Appends what the lines of a body became. `offset` tells where in the source a line is, from where it is in the body;
    /// the first one has the given number.
    fn append(
        &self,
        source: &str,
        bytes: &[u8],
        (offset, number): (impl Fn(u64) -> u64, u64),
        (limit, system): (usize, &str),
        out: &mut Batches<'_>,
    ) -> Result<(), SourceError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut mapper = match (idle, &self.mapping) {
            (Some(mapper), _) => mapper,
            (None, Some(mapping)) => Mapper::new(mapping).map_err(refuse)?,
            (None, None) => return Ok(()),
        };
        mapper.forget();
        mapper.count_nothing();
        mapper.limit_records(limit);
        mapper.begin(source, &bytes[..bytes.len().min(HEAD)]);
        let mut units = Vec::new();
        for (mut line, range) in Lines::new(bytes, 0, number, limit) {
            line.offset = offset(line.offset);
            mapper.line(line, &bytes[range], &mut units);
            if !units.drain(..).all(|unit| out.add(unit, system)) {
                break;
            }
        }
        mapper.end(&mut units);
        let _listened = units.into_iter().all(|unit| out.add(unit, system));
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MOST_IDLE {
            idle.push(mapper);
        }
        Ok(())
    }

    /// Appends what a message became; its number in the stream is the offset of all its items.
    pub(super) fn message(
        &self,
        context: &Context,
        stream: &str,
        bytes: &[u8],
        number: u64,
        out: &mut Batches<'_>,
    ) {
        let how = (context.limits.line_bytes, &*context.origin.system);
        if let Err(error) = self.append(stream, bytes, (|_| number, 1), how, out) {
            // The same mapping was compiled at the start.
            tracing::error!(%error, "a message cannot be mapped");
        }
    }

    /// Makes durable what became of a body, whose first line has that offset and number.
    pub(super) async fn submit(
        &self,
        context: &Context,
        stream: &Arc<str>,
        bytes: Bytes,
        (offset, number): (u64, u64),
        patience: Duration,
    ) -> Result<(), Refusal> {
        if !self.are_mapped() {
            let lines = Content::Lines { offset, line: number, bytes };
            return context.intake.submit(context.batch(stream, lines, Vec::new()), patience).await.map(drop);
        }
        let work = Work { context, stream, bytes: bytes.len(), most: u64::MAX, patience };
        let (bodies, name) = (self.clone(), stream.clone());
        let (limit, system) = (context.limits.line_bytes, context.origin.system.clone());
        let mapped = work.hand_over(move |out| {
            let place = (|start| offset + start, number);
            bodies.append(&name, &bytes, place, (limit, &system), out)
        });
        mapped.await?.map_err(|error| {
            // The same mapping was compiled at the start.
            tracing::error!(%error, "a body cannot be mapped");
            Refusal::Closed
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(name: &str, carrier: Carrier) -> String {
        find(name, carrier).unwrap_err().to_string()
    }

    #[test]
    fn a_source_that_cannot_give_what_a_mapping_needs_says_so() {
        for name in ["govector", "logfmt", "csv", "akka", "native", "tracing"] {
            assert!(find(name, Carrier::Files).is_ok(), "{name}");
        }
        for carrier in [Carrier::Bodies, Carrier::Connections] {
            assert!(reason("logfmt", carrier).contains("it counts sequence numbers"));
            assert!(find("tracing", carrier).is_ok() && find("native", carrier).is_ok());
        }
        for name in ["zipkin", "otlp", "shiviz"] {
            assert!(reason(name, Carrier::Files).contains("is for whole files"), "{name}");
        }
        assert!(reason("govectr", Carrier::Files).contains("govector"));
        assert!(reason("no/such.toml", Carrier::Files).contains("no/such.toml"));
    }

    #[test]
    fn a_body_is_mapped_by_itself_and_positions_are_not_made_up() {
        let bodies = Bodies::of(Some("tracing"), Carrier::Bodies).unwrap();
        let line =
            |clock: &str| format!("{{\"TracerIdentity\":\"a\",\"Tag\":\"T\",\"VectorClock\":{clock}}}\n");
        let text = line("{\"a\":7}") + &line("{\"b\":3}");
        for _ in 0..2 {
            let mut items = Vec::new();
            let mut out = Batches::new(u64::MAX, |batch| {
                items.extend(batch);
                true
            });
            bodies.append("http://h", text.as_bytes(), (|at| at, 1), (1000, "s"), &mut out).unwrap();
            assert!(out.end());
            assert_eq!(items[0].rejected, None);
            let record = demi_schemas::EventRecord::parse(&items[0].bytes).unwrap();
            assert_eq!((record.actor.as_str(), record.seq), ("a", 7));
            let why = items[1].rejected.as_ref().unwrap();
            assert!(why.code() == "rule" && why.reason().contains("none can be counted"), "{why:?}");
            assert_eq!((items.len(), items[1].line), (2, 2));
        }
    }
}
