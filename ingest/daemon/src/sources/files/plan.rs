//! What is handed over of the bytes that were read.

use bytes::Bytes;

use super::state::State;
use crate::batch::{Content, Item};
use demi_formats::Rejection;
use demi_formats::read::lines::KEPT_OF_OVERLONG;

/// What is handed over of `bytes`, and the state after it; `None` if they are only the beginning of a line that may
/// go on. With `full` there is more in the file.
pub(super) fn plan(
    state: &State,
    before: &[u8],
    bytes: &Bytes,
    full: bool,
    limit: usize,
) -> Option<(Content, State)> {
    if state.skipping {
        let end = memchr::memchr(b'\n', bytes).map(|n| n + 1);
        let skipped = &bytes[..end.unwrap_or(bytes.len())];
        let mut next = state.after(before, skipped, u64::from(end.is_some()));
        next.skipping = end.is_none();
        return (!skipped.is_empty()).then_some((Content::Nothing, next));
    }
    if let Some(end) = memchr::memrchr(b'\n', bytes).map(|n| n + 1) {
        return Some(whole(state, before, &bytes.slice(..end)));
    }
    if bytes.len() <= limit && !full {
        return None;
    }
    let raw = Bytes::copy_from_slice(&bytes[..bytes.len().min(KEPT_OF_OVERLONG)]);
    let reason =
        format!("the line is longer than the limit of {limit} bytes; its first {} are kept", raw.len());
    let rejected = Some(Rejection::new("too_long", reason));
    let item = Item { offset: state.offset, line: state.line, bytes: raw, rejected };
    let mut next = state.after(before, bytes, 0);
    next.skipping = true;
    Some((Content::Items(vec![item]), next))
}

/// All of `bytes` as lines.
pub(super) fn whole(state: &State, before: &[u8], bytes: &Bytes) -> (Content, State) {
    let open = !bytes.ends_with(b"\n");
    let lines = memchr::memchr_iter(b'\n', bytes).count() as u64 + u64::from(open);
    let content = Content::Lines { offset: state.offset, line: state.line, bytes: bytes.clone() };
    (content, state.after(before, bytes, lines))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::state::HEAD;
    use super::*;

    proptest! {
        /// However a file is read in pieces: its lines are handed over as they are, each once, in order; lines longer
        /// than the limit are at most told, never handed over in part.
        #[test]
        fn every_line_is_handed_over_once(
            lines in prop::collection::vec("[a-c]{0,14}", 0..12), chunk in 1usize..9, limit in 3usize..9,
        ) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let file = tempfile::tempfile().unwrap();
            let mut state = State::new(std::path::Path::new("p"), &file.metadata().unwrap(), false);
            let (mut got, mut told) = (String::new(), 0);
            let mut size = chunk;
            while (state.offset as usize) < text.len() {
                let at = state.offset as usize;
                let before = &text.as_bytes()[at.saturating_sub(HEAD)..at];
                let end = (at + size).min(text.len());
                let bytes = Bytes::copy_from_slice(&text.as_bytes()[at..end]);
                let Some((content, next)) = plan(&state, before, &bytes, false, limit) else {
                    size += 1; // wait for more of the line
                    continue;
                };
                match content {
                    Content::Lines { offset, line, bytes } => {
                        prop_assert_eq!(offset, state.offset);
                        prop_assert_eq!(line as usize, text[..at].matches('\n').count() + 1);
                        got.push_str(std::str::from_utf8(&bytes).unwrap());
                    }
                    Content::Items(items) => told += items.len(),
                    Content::Nothing => {}
                }
                prop_assert!(next.offset > state.offset);
                state = next;
                size = chunk;
            }
            prop_assert!(!state.skipping);
            prop_assert_eq!(state.line as usize, lines.len() + 1);
            // A long line that comes whole in one piece goes on as it is, to be judged later.
            let short = |line: &&str| line.len() <= limit;
            let expected: Vec<&str> = lines.iter().map(String::as_str).filter(short).collect();
            let handed: Vec<&str> = got.lines().filter(short).collect();
            prop_assert_eq!(handed, expected);
            prop_assert_eq!(told + got.lines().filter(|l| l.len() > limit).count(), lines.len() - expected_len(&lines, limit));
        }
    }

    fn expected_len(lines: &[String], limit: usize) -> usize {
        lines.iter().filter(|line| line.len() <= limit).count()
    }
}
