//! What a mapping needs to know besides the line at hand.

use super::Mapper;
use crate::container::Container;
use crate::mapping::compile::Compiled;
use crate::mapping::file::{Choose, Mapping, Ticks};
use crate::mapping::stamp::Formats;
use crate::read::encoding::Encoding;

/// What a mapping needs of the log that it reads. Sources that cannot give it cannot use the mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Why it needs the end of a log, which a log that goes on does not have.
    pub end: Option<&'static str>,
    /// Why it needs all lines in their order, from the first one on.
    pub order: Option<&'static str>,
    /// Why it needs several lines at a time.
    pub lines: Option<&'static str>,
}

impl Mapping {
    /// What this mapping needs.
    ///
    /// # Errors
    /// As [`Mapper::new`].
    pub fn needs(&self) -> Result<Needs, crate::mapping::MappingError> {
        Ok(needs(&Mapper::new(self)?.mapping))
    }
}

impl Mapper {
    /// What its sources are decoded from.
    pub fn encoding(&self) -> Option<Encoding> {
        self.mapping.encoding
    }

    /// What a source is made of.
    #[must_use]
    pub fn container(&self) -> Container {
        self.mapping.input.container
    }

    /// Whether a wrapper is taken off its lines.
    #[must_use]
    pub fn is_wrapped(&self) -> bool {
        self.mapping.input.wrapper.is_some()
    }

    /// Whether sequence numbers are counted from the first line of a load on.
    pub fn counts(&self) -> bool {
        counts(&self.mapping)
    }

    /// Whether events depend on the name of the source.
    pub fn uses_the_name(&self) -> bool {
        let mapping = &self.mapping;
        let by_name = |name: &str| {
            let emits = mapping.rules.iter().flat_map(|rule| &rule.emits);
            let others = mapping.label.iter().chain(mapping.clock.iter().map(|(value, _)| value));
            emits.into_iter().any(|emit| emit.names(name)) || others.into_iter().any(|t| t.names(name))
        };
        // The name of a pod stands in that of its file.
        by_name("@stem") || by_name("@file") || (self.is_wrapped() && by_name("wrapper_name"))
    }

    /// Whether the beginning of a source tells how it is read.
    pub fn looks_at_the_beginning(&self) -> bool {
        let input = &self.mapping.input;
        input.header.is_some() || input.choose == Choose::Best && self.mapping.patterns.len() > 1
    }
}

fn needs(mapping: &Compiled) -> Needs {
    Needs { end: end(mapping), order: order(mapping), lines: lines(mapping) }
}

fn end(mapping: &Compiled) -> Option<&'static str> {
    let deduces = mapping.clock.as_ref().is_some_and(|(_, clock)| clock.deduce_host);
    match mapping.input.container {
        Container::Json | Container::Xml | Container::Otlp | Container::Zipkin | Container::Jaeger => {
            Some("it reads whole documents")
        }
        _ if mapping.encoding.is_some() => Some("it decodes a whole file"),
        _ if mapping.input.newest_first => Some("the newest record stands first"),
        _ if deduces => Some("it finds out whose events they are from all clocks of an execution"),
        _ if mapping.delimiter.is_some() || mapping.label.is_some() => {
            Some("it makes a system of each execution, and a source writes one system")
        }
        _ => None,
    }
}

fn order(mapping: &Compiled) -> Option<&'static str> {
    let emits = || mapping.rules.iter().filter(|rule| !rule.skip).flat_map(|rule| &rule.emits);
    match mapping.input.container {
        Container::Native => None,
        Container::Csv => Some("the first line names the columns"),
        _ if mapping.input.header.is_some() => Some("the first lines say how the others are read"),
        _ if mapping.input.choose == Choose::Best && mapping.patterns.len() > 1 => {
            Some("the first lines choose its pattern")
        }
        _ if mapping.phases.is_some() => Some("it takes the order of the lines for that of time"),
        _ if emits().any(|emit| emit.link.is_some()) => Some("it joins sends and receives by counting them"),
        _ if counts(mapping) => Some("it counts sequence numbers"),
        _ if !mapping.carry.is_empty() => Some("it carries values forward from line to line"),
        _ if emits().any(|emit| emit.formats.is_some()) && given_a_date(mapping) => {
            Some("its stamps have no day, which goes on from stamp to stamp")
        }
        _ => None,
    }
}

/// Whether stamps lack the year or the day.
pub(super) fn given_a_date(mapping: &Compiled) -> bool {
    let mut formats =
        mapping.rules.iter().flat_map(|rule| &rule.emits).filter_map(|emit| emit.formats.as_deref());
    formats.any(Formats::is_given_a_date)
}

/// Whether there are events whose sequence numbers the log does not tell.
fn counts(mapping: &Compiled) -> bool {
    let ticks = mapping.clock.as_ref().is_some_and(|(_, clock)| clock.ticks == Ticks::Every);
    let own = mapping.input.container.is_told();
    let mut emits = mapping.rules.iter().filter(|rule| !rule.skip).flat_map(|rule| &rule.emits);
    !own && !ticks && emits.any(|emit| emit.seq.is_none())
}

fn lines(mapping: &Compiled) -> Option<&'static str> {
    let several = matches!(mapping.input.container, Container::Edn | Container::Xml)
        || mapping.start.is_some()
        || mapping.patterns.iter().any(|pattern| pattern.lines > 1);
    several.then_some("a record of it may be several lines")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_mappings_say_what_they_need() {
        let needs = |name: &str| Mapping::named(name).unwrap().needs().unwrap();
        assert_eq!(needs("native"), Needs::default());
        assert!(needs("zipkin").end.is_some());
        assert!(needs("shiviz").end.unwrap().contains("each execution"));
        let govector = needs("govector");
        assert!(govector.end.is_none() && govector.order.is_some() && govector.lines.is_some());
        assert!(needs("akka").lines.is_some());
        assert_eq!(needs("logfmt").order, Some("it counts sequence numbers"));
        assert_eq!(needs("tracing"), Needs::default(), "its clocks say the sequence numbers");
    }
}
