//! Batches as bodies of spool frames, and back.
//!
//! A body is the length of its head (4 bytes), the head as JSON, and the content: lines as they came, or items one
//! after the other (tag, offset, line, then a record as JSON or code, reason and raw bytes, each with its length).

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::batch::{Batch, Content, Item, Origin, Outcome, PositionUpdate};

const RECORD: u8 = 0;
const REJECTED: u8 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    source: String,
    system: String,
    stream: String,
    content: Kind,
    #[serde(default, skip_serializing_if = "is_zero")]
    offset: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    line: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    positions: Vec<(String, Option<Value>)>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Lines,
    Items,
    Nothing,
}

/// Why a frame holds no batch: a defect, or a spool of another version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the frame holds no batch: {0}")]
pub struct CodecError(String);

/// The batch as the body of a frame.
#[must_use]
pub fn encode(batch: &Batch) -> Vec<u8> {
    let (content, offset, line) = match &batch.content {
        Content::Lines { offset, line, .. } => (Kind::Lines, *offset, *line),
        Content::Items(_) => (Kind::Items, 0, 0),
        Content::Nothing => (Kind::Nothing, 0, 0),
    };
    let head = Head {
        source: batch.origin.source.to_string(),
        system: batch.origin.system.to_string(),
        stream: batch.stream.to_string(),
        content,
        offset,
        line,
        positions: batch.positions.iter().map(|p| (p.key.clone(), p.value.clone())).collect(),
    };
    // Text, numbers and JSON values can always be written as JSON.
    let head = serde_json::to_vec(&head).unwrap_or_default();
    let mut out = Vec::with_capacity(4 + head.len() + content_len(&batch.content));
    out.extend_from_slice(&(head.len() as u32).to_le_bytes());
    out.extend_from_slice(&head);
    match &batch.content {
        Content::Lines { bytes, .. } => out.extend_from_slice(bytes),
        Content::Items(items) => items.iter().for_each(|item| put_item(&mut out, item)),
        Content::Nothing => {}
    }
    out
}

fn content_len(content: &Content) -> usize {
    match content {
        Content::Lines { bytes, .. } => bytes.len(),
        Content::Items(_) => content.len(),
        Content::Nothing => 0,
    }
}

fn put_item(out: &mut Vec<u8>, item: &Item) {
    let tag = if matches!(item.outcome, Outcome::Record(_)) { RECORD } else { REJECTED };
    out.push(tag);
    out.extend_from_slice(&item.offset.to_le_bytes());
    out.extend_from_slice(&item.line.to_le_bytes());
    match &item.outcome {
        Outcome::Record(json) => put(out, json),
        Outcome::Rejected { raw, code, reason } => {
            put(out, code.as_bytes());
            put(out, reason.as_bytes());
            put(out, raw);
        }
    }
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// A batch read back from a frame.
#[derive(Debug)]
pub struct Decoded {
    /// Who handed it over.
    pub origin: Origin,
    /// The file or connection.
    pub stream: String,
    /// Where the source was after it.
    pub positions: Vec<PositionUpdate>,
    /// What it holds.
    pub content: DecodedContent,
}

/// Content of a batch read back: records are still text.
#[derive(Debug)]
pub enum DecodedContent {
    /// See [`Content::Lines`].
    Lines {
        /// Offset of the first byte.
        offset: u64,
        /// Number of the first line, 0 where nobody counts.
        line: u64,
        /// The lines.
        bytes: Bytes,
    },
    /// See [`Content::Items`].
    Items(Vec<DecodedItem>),
    /// Nothing.
    Nothing,
}

impl DecodedContent {
    /// Lines or items in it.
    #[must_use]
    pub fn count(&self) -> u64 {
        match self {
            DecodedContent::Lines { bytes, .. } => {
                let open = !bytes.is_empty() && !bytes.ends_with(b"\n");
                memchr::memchr_iter(b'\n', bytes).count() as u64 + u64::from(open)
            }
            DecodedContent::Items(items) => items.len() as u64,
            DecodedContent::Nothing => 0,
        }
    }
}

/// An item read back.
#[derive(Debug, PartialEq, Eq)]
pub struct DecodedItem {
    /// Offset of its first byte.
    pub offset: u64,
    /// Its line number, or 0.
    pub line: u64,
    /// A record as JSON, or raw bytes that were rejected.
    pub bytes: Bytes,
    /// Code and reason of the rejection.
    pub rejected: Option<(String, String)>,
}

/// Reads the body of a frame.
///
/// # Errors
/// When it is not what [`encode`] writes.
pub fn decode(body: Vec<u8>) -> Result<Decoded, CodecError> {
    let mut rest = Bytes::from(body);
    let head = take(&mut rest).ok_or_else(|| CodecError("the head is cut off".into()))?;
    let head: Head = serde_json::from_slice(&head).map_err(|e| CodecError(e.to_string()))?;
    let content = match head.content {
        Kind::Lines => DecodedContent::Lines { offset: head.offset, line: head.line, bytes: rest },
        Kind::Nothing => DecodedContent::Nothing,
        Kind::Items => {
            let mut items = Vec::new();
            while !rest.is_empty() {
                items.push(take_item(&mut rest).ok_or_else(|| CodecError("an item is cut off".into()))?);
            }
            DecodedContent::Items(items)
        }
    };
    let positions = head.positions.into_iter().map(|(key, value)| PositionUpdate { key, value }).collect();
    let origin = Origin { source: head.source.into(), system: head.system.into() };
    Ok(Decoded { origin, stream: head.stream, positions, content })
}

fn take(rest: &mut Bytes) -> Option<Bytes> {
    let len = u32::from_le_bytes(rest.get(..4)?.try_into().ok()?) as usize;
    if rest.len() - 4 < len {
        return None;
    }
    let _ = rest.split_to(4);
    Some(rest.split_to(len))
}

fn take_item(rest: &mut Bytes) -> Option<DecodedItem> {
    let tag = *rest.first()?;
    let offset = u64::from_le_bytes(rest.get(1..9)?.try_into().ok()?);
    let line = u64::from_le_bytes(rest.get(9..17)?.try_into().ok()?);
    let _ = rest.split_to(17);
    let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).ok();
    match tag {
        RECORD => Some(DecodedItem { offset, line, bytes: take(rest)?, rejected: None }),
        REJECTED => {
            let (code, reason) = (text(take(rest)?)?, text(take(rest)?)?);
            Some(DecodedItem { offset, line, bytes: take(rest)?, rejected: Some((code, reason)) })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use demi_schemas::EventRecord;
    use proptest::prelude::*;

    use super::*;

    fn batch(content: Content) -> Batch {
        let positions = vec![
            PositionUpdate { key: "k\n".into(), value: Some(serde_json::json!({"at": 7})) },
            PositionUpdate { key: "gone".into(), value: None },
        ];
        let origin = Origin { source: "s".into(), system: "y".into() };
        Batch { origin, stream: "/var/log/ä.log".into(), content, positions }
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let record = EventRecord::parse(br#"{"actor":"a","seq":1,"kind":"start","x":[1]}"#).unwrap();
        let items = vec![
            Item {
                offset: 5,
                line: 2,
                outcome: Outcome::Record(serde_json::to_vec(&record).unwrap().into()),
            },
            Item {
                offset: 9,
                line: 0,
                outcome: Outcome::Rejected {
                    raw: Bytes::from_static(b"\xff\n"),
                    code: "c".into(),
                    reason: "r".into(),
                },
            },
        ];
        let got = decode(encode(&batch(Content::Items(items)))).unwrap();
        assert_eq!((&*got.origin.source, &*got.origin.system, &*got.stream), ("s", "y", "/var/log/ä.log"));
        assert_eq!(got.positions, batch(Content::Nothing).positions);
        let DecodedContent::Items(items) = got.content else { panic!("{:?}", got.content) };
        assert_eq!(EventRecord::parse(&items[0].bytes).unwrap(), record);
        assert_eq!((items[0].offset, items[0].line, &items[0].rejected), (5, 2, &None));
        assert_eq!(items[1].rejected, Some(("c".into(), "r".into())));
        assert_eq!(&items[1].bytes[..], b"\xff\n");
    }

    proptest! {
        #[test]
        fn lines_come_back_and_garbage_is_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..200), offset: u64, cut in 0usize..400, at: usize, bit in 0u8..8,
        ) {
            let whole = encode(&batch(Content::Lines { offset, line: 3, bytes: bytes.clone().into() }));
            let got = decode(whole.clone()).unwrap();
            let DecodedContent::Lines { offset: o, line, bytes: b } = got.content else { panic!("no lines") };
            prop_assert_eq!((o, line, &b[..]), (offset, 3, &bytes[..]));
            let _ = decode(whole[..cut.min(whole.len())].to_vec());
            let mut flipped = whole;
            let at = at % flipped.len();
            flipped[at] ^= 1 << bit;
            let _ = decode(flipped);
            let _ = decode(bytes);
        }
    }
}
