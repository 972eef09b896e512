//! JSON, EDN and XML documents as streams: records, spans and log records, one at a time.
//!
//! A file may be one document of any length, or many one behind the other. It is read once, in pieces cut anywhere, and each record is
//! handed out as soon as its last byte is there. Memory is bounded by the longest record that is taken; a longer one is rejected alone,
//! with its place. Two things can make it more, each with a bound of its own: spans of OTLP and Jaeger whose resource or process stands behind them
//! (`held.rs`: 4 MiB in memory, the rest in a file), and the record of which log records were the same (`otlp::Repeats`).
//!
//! A document that is broken keeps what stands before the break. Reading goes on with the next line that begins with an array or object
//! and is not indented further than the broken document.
//!
//! Where an object names a member twice, both are read.

mod edn;
mod held;
mod jaeger;
mod kept;
mod otlp;
mod out;
mod records;
pub mod request;
mod scan;
mod telemetry;
mod xml;
mod zipkin;

#[cfg(test)]
mod tests;

pub(crate) use out::Found;

use self::edn::Edn;
use self::jaeger::Jaeger;
use self::otlp::Otlp;
use self::out::{Count, Out};
use self::records::Records;
use self::scan::Scanner;
use self::xml::Xml;
use self::zipkin::Zipkin;
use crate::container::Container;
use crate::otlp::OtlpOptions;
use crate::read::lines::Line;

/// Reads documents.
pub(crate) enum Documents {
    Edn(Box<Edn>),
    Json(Box<Json>),
    Xml(Box<Xml>),
}

/// Reads documents of JSON.
pub(crate) struct Json {
    scanner: Scanner,
    of: Of,
    count: Count,
    begun: bool,
}

/// What the documents are made of.
enum Of {
    Records(Records),
    Zipkin(Zipkin),
    Jaeger(Box<Jaeger>),
    // Far larger than the others.
    Otlp(Box<Otlp>),
}

impl Documents {
    /// A reader of a source; `None` where the container is none of documents. `records` is the JSON pointer to the array of records, or the path of their elements,
    /// `limit` the most bytes of one; `telemetry` is for spans and logs.
    pub(crate) fn new(
        container: Container,
        records: Option<&str>,
        telemetry: OtlpOptions,
        limit: usize,
    ) -> Option<Self> {
        let of = match container {
            Container::Edn => return Some(Documents::Edn(Box::new(Edn::new(limit)))),
            Container::Xml => return Some(Documents::Xml(Box::new(Xml::new(records, limit)))),
            Container::Json => Of::Records(Records::new(records)),
            Container::Zipkin => Of::Zipkin(Zipkin::new(telemetry)),
            Container::Jaeger => Of::Jaeger(Box::new(Jaeger::new(telemetry))),
            Container::Otlp => Of::Otlp(Box::new(Otlp::new(telemetry))),
            _ => return None,
        };
        let json = Json { scanner: Scanner::new(limit), of, count: Count::default(), begun: false };
        Some(Documents::Json(Box::new(json)))
    }

    /// A reader of OTLP, which becomes events as the options say.
    fn otlp(options: OtlpOptions, limit: usize) -> Self {
        let of = Of::Otlp(Box::new(Otlp::new(options)));
        let json = Json { scanner: Scanner::new(limit), of, count: Count::default(), begun: false };
        Documents::Json(Box::new(json))
    }

    /// Takes the next piece of the source, cut anywhere.
    pub(crate) fn feed(&mut self, piece: &[u8], sink: &mut dyn FnMut(Found)) {
        match self {
            Documents::Edn(edn) => edn.feed(piece, sink),
            Documents::Json(json) => json.feed(piece, sink),
            Documents::Xml(xml) => xml.feed(piece, sink),
        }
    }

    /// Takes a line of the source, which is `bytes`; of one that is too long these are the first.
    pub(crate) fn line(&mut self, line: &Line, bytes: &[u8], sink: &mut dyn FnMut(Found)) {
        match self {
            Documents::Edn(edn) => {
                edn.at_line(line);
                match line.overlong {
                    Some(_) => edn.too_long(line, bytes, sink),
                    None => edn.feed(bytes, sink),
                }
            }
            Documents::Json(json) => {
                if !json.begun {
                    json.scanner.at(line.offset, line.number.max(1));
                }
                json.feed(bytes, sink);
            }
            Documents::Xml(xml) => {
                xml.at(line.offset, line.number.max(1));
                xml.feed(bytes, sink);
            }
        }
        if line.terminated {
            self.feed(b"\n", sink);
        }
    }

    /// Takes the end of the source.
    pub(crate) fn finish(&mut self, sink: &mut dyn FnMut(Found)) {
        match self {
            Documents::Edn(edn) => edn.finish(sink),
            Documents::Json(json) => json.finish(sink),
            Documents::Xml(xml) => xml.finish(sink),
        }
    }

    /// Where to go on reading later, offset and line, where that is not behind the last line; of JSON and XML it is the beginning.
    pub(crate) fn unfinished(&self) -> Option<(u64, u64)> {
        match self {
            Documents::Edn(edn) => edn.unfinished(),
            Documents::Json(json) => json.begun.then_some((0, 1)),
            Documents::Xml(xml) => xml.begun().then_some((0, 1)),
        }
    }

    /// What closes the collection around the place where it is, and the line in which that begins.
    pub(crate) fn entered(&self) -> Option<(char, u64)> {
        match self {
            Documents::Edn(edn) => edn.entered(),
            Documents::Json(_) | Documents::Xml(_) => None,
        }
    }

    /// Goes on within a collection.
    pub(crate) fn enter(&mut self, entered: Option<(char, u64)>) {
        if let Documents::Edn(edn) = self {
            edn.enter(entered);
        }
    }
}

impl Json {
    fn feed(&mut self, piece: &[u8], sink: &mut dyn FnMut(Found)) {
        self.begun = true;
        let mut out = Out { count: &mut self.count, sink };
        match &mut self.of {
            Of::Records(of) => self.scanner.feed(piece, of, &mut out),
            Of::Zipkin(of) => self.scanner.feed(piece, of, &mut out),
            Of::Jaeger(of) => self.scanner.feed(piece, &mut **of, &mut out),
            Of::Otlp(of) => self.scanner.feed(piece, &mut **of, &mut out),
        }
    }

    fn finish(&mut self, sink: &mut dyn FnMut(Found)) {
        let mut out = Out { count: &mut self.count, sink };
        match &mut self.of {
            Of::Records(of) => self.scanner.finish(of, &mut out),
            Of::Zipkin(of) => self.scanner.finish(of, &mut out),
            Of::Jaeger(of) => self.scanner.finish(&mut **of, &mut out),
            Of::Otlp(of) => self.scanner.finish(&mut **of, &mut out),
        }
    }
}
