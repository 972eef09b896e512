//! Batches as bodies of spool frames, and back.
//!
//! A body is the length of its head (4 bytes), the head as JSON, and the content: lines as they came, or items one
//! after the other (tag, offset, line, then a record as JSON or code, reason and raw bytes, each with its length).

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use demi_formats::Rejection;

use super::batch::{Batch, Content, Item, Origin, PositionUpdate};

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
    let mut out = Vec::with_capacity(4 + head.len() + batch.content.len());
    out.extend_from_slice(&(head.len() as u32).to_le_bytes());
    out.extend_from_slice(&head);
    match &batch.content {
        Content::Lines { bytes, .. } => out.extend_from_slice(bytes),
        Content::Items(items) => items.iter().for_each(|item| put_item(&mut out, item)),
        Content::Nothing => {}
    }
    out
}

fn put_item(out: &mut Vec<u8>, item: &Item) {
    out.push(if item.rejected.is_none() { RECORD } else { REJECTED });
    out.extend_from_slice(&item.offset.to_le_bytes());
    out.extend_from_slice(&item.line.to_le_bytes());
    if let Some(why) = &item.rejected {
        put(out, why.code().as_bytes());
        put(out, why.reason().as_bytes());
    }
    put(out, &item.bytes);
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Reads the body of a frame.
///
/// # Errors
/// When it is not what [`encode`] writes.
pub fn decode(body: Vec<u8>) -> Result<Batch, CodecError> {
    let mut rest = Bytes::from(body);
    let head = take(&mut rest).ok_or_else(|| CodecError("the head is cut off".into()))?;
    let head: Head = serde_json::from_slice(&head).map_err(|e| CodecError(e.to_string()))?;
    let content = match head.content {
        Kind::Lines => Content::Lines { offset: head.offset, line: head.line, bytes: rest },
        Kind::Nothing => Content::Nothing,
        Kind::Items => {
            let mut items = Vec::new();
            while !rest.is_empty() {
                items.push(take_item(&mut rest).ok_or_else(|| CodecError("an item is cut off".into()))?);
            }
            Content::Items(items)
        }
    };
    let positions = head.positions.into_iter().map(|(key, value)| PositionUpdate { key, value }).collect();
    let origin = Origin { source: head.source.into(), system: head.system.into() };
    Ok(Batch { origin, stream: head.stream.into(), content, positions })
}

fn take(rest: &mut Bytes) -> Option<Bytes> {
    let len = u32::from_le_bytes(rest.get(..4)?.try_into().ok()?) as usize;
    if rest.len() - 4 < len {
        return None;
    }
    let _ = rest.split_to(4);
    Some(rest.split_to(len))
}

fn take_item(rest: &mut Bytes) -> Option<Item> {
    let tag = *rest.first()?;
    let offset = u64::from_le_bytes(rest.get(1..9)?.try_into().ok()?);
    let line = u64::from_le_bytes(rest.get(9..17)?.try_into().ok()?);
    let _ = rest.split_to(17);
    let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).ok();
    let rejected = match tag {
        RECORD => None,
        REJECTED => Some(Rejection::read(text(take(rest)?)?, text(take(rest)?)?)),
        _ => return None,
    };
    Some(Item { offset, line, bytes: take(rest)?, rejected })
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
            Item { offset: 5, line: 2, bytes: serde_json::to_vec(&record).unwrap().into(), rejected: None },
            Item {
                offset: 9,
                line: 0,
                bytes: Bytes::from_static(b"\xff\n"),
                rejected: Some(Rejection::read("c".to_owned(), "r".to_owned())),
            },
        ];
        let given = batch(Content::Items(items));
        assert_eq!(decode(encode(&given)).unwrap(), given);
    }

    proptest! {
        #[test]
        fn lines_come_back_and_garbage_is_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..200), offset: u64, cut in 0usize..400, at: usize, bit in 0u8..8,
        ) {
            let whole = encode(&batch(Content::Lines { offset, line: 3, bytes: bytes.clone().into() }));
            let got = decode(whole.clone()).unwrap();
            let Content::Lines { offset: o, line, bytes: b } = got.content else { panic!("no lines") };
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
