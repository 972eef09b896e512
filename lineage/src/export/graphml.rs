//! GraphML: a node an event, an edge a cause, with everything known of them as data.

use std::io::Write;

use demi_common::text::markup;

use super::causes::Causes;
use super::error::ExportError;
use super::trace::Trace;

/// Names of the data of a node, with their GraphML types.
const NODE: [(&str, &str); 11] = [
    ("event", "string"),
    ("actor", "string"),
    ("incarnation", "int"),
    ("seq", "long"),
    ("kind", "string"),
    ("type", "string"),
    ("from", "string"),
    ("to", "string"),
    ("payload", "string"),
    ("kept", "boolean"),
    ("order", "long"),
];

pub(crate) fn write(trace: &Trace, out: &mut dyn Write) -> Result<(), ExportError> {
    let s = &trace.skeleton;
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">")?;
    for (name, type_) in NODE {
        writeln!(out, "  <key id=\"{name}\" for=\"node\" attr.name=\"{name}\" attr.type=\"{type_}\"/>")?;
    }
    writeln!(out, "  <key id=\"reason\" for=\"edge\" attr.name=\"reason\" attr.type=\"string\"/>")?;
    writeln!(out, "  <key id=\"certain\" for=\"edge\" attr.name=\"certain\" attr.type=\"boolean\"/>")?;
    writeln!(out, "  <graph id=\"execution\" edgedefault=\"directed\">")?;
    for (at, &e) in trace.events.iter().enumerate() {
        let (i, content) = (e as usize, &trace.contents[at]);
        let owned = |text: &Option<Box<str>>| text.as_deref().map(str::to_owned);
        let values = [
            Some(s.id(e).to_string()),
            Some(s.actors[s.actor[i] as usize].clone()),
            Some(s.incarnation[i].to_string()),
            Some(s.seq[i].to_string()),
            Some(s.kind[i].as_str().to_owned()),
            owned(&content.type_),
            owned(&content.from),
            owned(&content.to),
            owned(&content.payload),
            Some(s.kept[i].to_string()),
            Some((e + 1).to_string()),
        ];
        write!(out, "    <node id=\"e{e}\">")?;
        for ((name, _), value) in NODE.iter().zip(values) {
            if let Some(value) = value {
                write!(out, "<data key=\"{name}\">{}</data>", markup(&value))?;
            }
        }
        writeln!(out, "</node>")?;
    }
    for (stamp, causes) in Causes::new(trace) {
        let to = trace.events[stamp.at as usize];
        for cause in causes {
            let (from, reason) = (trace.events[cause.at as usize], cause.why.as_str());
            writeln!(
                out,
                "    <edge source=\"e{from}\" target=\"e{to}\"><data key=\"reason\">{reason}</data><data key=\"certain\">{}</data></edge>",
                cause.certain
            )?;
        }
    }
    writeln!(out, "  </graph>\n</graphml>")?;
    Ok(())
}
