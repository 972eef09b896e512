//! JSON documents as streams: records, spans and log records, one at a time.
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

mod held;
mod jaeger;
mod kept;
mod otlp;
mod out;
mod records;
pub(crate) mod request;
mod scan;
mod telemetry;
mod zipkin;

#[cfg(test)]
mod tests;

pub(crate) use out::{Found, What};

use self::jaeger::Jaeger;
use self::otlp::Otlp;
use self::out::{Count, Out};
use self::records::Records;
use self::scan::Scanner;
use self::zipkin::Zipkin;
use crate::container::Container;
use crate::otlp::OtlpOptions;

/// Reads documents.
pub(crate) struct Documents {
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
    /// A reader of a source; `None` where the container is none of documents. `records` is the JSON pointer to the array of records,
    /// `limit` the most bytes of one.
    pub(crate) fn new(container: Container, records: Option<&str>, limit: usize) -> Option<Self> {
        let of = match container {
            Container::Json => Of::Records(Records::new(records)),
            Container::Zipkin => Of::Zipkin(Zipkin::default()),
            Container::Jaeger => Of::Jaeger(Box::default()),
            Container::Otlp => Of::Otlp(Box::default()),
            _ => return None,
        };
        Some(Documents { scanner: Scanner::new(limit), of, count: Count::default(), begun: false })
    }

    /// A reader of OTLP, which becomes events as the options say.
    fn otlp(options: OtlpOptions, limit: usize) -> Self {
        let of = Of::Otlp(Box::new(Otlp::new(options)));
        Documents { scanner: Scanner::new(limit), of, count: Count::default(), begun: false }
    }

    /// Says where the first byte is in a larger stream.
    pub(crate) fn at(&mut self, offset: u64, line: u64) {
        if !self.begun {
            self.scanner.at(offset, line);
        }
    }

    /// Whether anything was read.
    pub(crate) fn is_begun(&self) -> bool {
        self.begun
    }

    /// Takes the next piece of the source, cut anywhere.
    pub(crate) fn feed(&mut self, piece: &[u8], sink: &mut dyn FnMut(Found)) {
        self.begun = true;
        let mut out = Out { count: &mut self.count, sink };
        match &mut self.of {
            Of::Records(of) => self.scanner.feed(piece, of, &mut out),
            Of::Zipkin(of) => self.scanner.feed(piece, of, &mut out),
            Of::Jaeger(of) => self.scanner.feed(piece, &mut **of, &mut out),
            Of::Otlp(of) => self.scanner.feed(piece, &mut **of, &mut out),
        }
    }

    /// Takes the end of the source.
    pub(crate) fn finish(&mut self, sink: &mut dyn FnMut(Found)) {
        let mut out = Out { count: &mut self.count, sink };
        match &mut self.of {
            Of::Records(of) => self.scanner.finish(of, &mut out),
            Of::Zipkin(of) => self.scanner.finish(of, &mut out),
            Of::Jaeger(of) => self.scanner.finish(&mut **of, &mut out),
            Of::Otlp(of) => self.scanner.finish(&mut **of, &mut out),
        }
    }
}
