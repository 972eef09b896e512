//! The kinds of files that a mapping reads.

use schemars::JsonSchema;
use serde::Deserialize;

/// What a file is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Container {
    /// Event records as this program writes them, one a line.
    Native,
    /// Text: each record is found by one of `patterns`.
    Text,
    /// One JSON object a line.
    JsonLines,
    /// JSON documents: an array of records, one record, or several documents one behind the other.
    Json,
    /// `key=value` pairs, one record a line.
    Logfmt,
    /// EDN maps as Jepsen writes histories, one behind the other or in a vector, list or set around them, on any lines; `:key` becomes `key`.
    /// Also called `edn-lines`.
    #[serde(alias = "edn-lines")]
    Edn,
    /// XML: the elements in the outermost one, or those that `records` names. Attributes and elements count by their names, text beside them as
    /// `#text`, the name of the record's own element as `#name`.
    Xml,
    /// Comma-separated values with a header line that names the columns.
    Csv,
    /// OTLP in JSON: traces and logs of OpenTelemetry.
    Otlp,
    /// Zipkin v2 spans in JSON.
    Zipkin,
    /// Traces as Jaeger's query service and user interface give them in JSON.
    Jaeger,
}

impl Container {
    /// Whether sources are documents, and no lines.
    pub(crate) fn is_of_documents(self) -> bool {
        use Container::{Edn, Jaeger, Json, Otlp, Xml, Zipkin};
        matches!(self, Json | Edn | Xml | Otlp | Zipkin | Jaeger)
    }

    /// Whether the format itself says what each event is, so that a mapping says nothing of it.
    pub(crate) fn is_told(self) -> bool {
        matches!(self, Container::Native | Container::Otlp | Container::Zipkin | Container::Jaeger)
    }
}
