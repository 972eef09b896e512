//! What events say, in a temporary file: found by event, and walked through for a search.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use demi_order::export::Content;

use crate::error::ReportError;

/// Texts of a record, before the offset and the flag.
const TEXTS: usize = 9;
/// A record begins with its event and its length.
const HEAD: usize = 8;

/// Writes records one after the other, in any order of events.
pub(crate) struct ContentsWriter {
    file: tempfile::NamedTempFile,
    out: BufWriter<File>,
    at: Vec<u64>,
    end: u64,
    record: Vec<u8>,
}

impl ContentsWriter {
    pub(crate) fn new(events: usize) -> Result<ContentsWriter, ReportError> {
        let folder = std::env::temp_dir();
        let file =
            tempfile::Builder::new().prefix(".demi-report-").tempfile().map_err(ReportError::io(&folder))?;
        let out = BufWriter::with_capacity(1 << 20, file.reopen().map_err(ReportError::io(&folder))?);
        Ok(ContentsWriter { file, out, at: vec![u64::MAX; events], end: 0, record: Vec::new() })
    }

    pub(crate) fn add(&mut self, e: u32, content: &Content) -> Result<(), ReportError> {
        self.record.clear();
        for text in texts(content) {
            let length = text.map_or(0, |t| t.len() as u32 + 1);
            self.record.extend(length.to_le_bytes());
            self.record.extend(text.unwrap_or("").as_bytes());
        }
        let offset = content.offset.and_then(|o| i64::try_from(o).ok()).unwrap_or(-1);
        self.record.extend(offset.to_le_bytes());
        self.record.push(u8::from(content.external));
        if let Some(at) = self.at.get_mut(e as usize) {
            *at = self.end;
        }
        let length = self.record.len() as u32;
        let written = self
            .out
            .write_all(&e.to_le_bytes())
            .and_then(|()| self.out.write_all(&length.to_le_bytes()))
            .and_then(|()| self.out.write_all(&self.record));
        self.end += (HEAD + self.record.len()) as u64;
        written.map_err(ReportError::io(self.file.path()))
    }

    pub(crate) fn finish(mut self) -> Result<Contents, ReportError> {
        self.out.flush().map_err(ReportError::io(self.file.path()))?;
        let path = self.file.path().to_owned();
        let file = self.file.reopen().map_err(ReportError::io(&path))?;
        Ok(Contents { file, path, at: self.at, _remove: self.file.into_temp_path() })
    }
}

fn texts(content: &Content) -> [Option<&str>; TEXTS] {
    [
        content.msg_id.as_deref(),
        content.from.as_deref(),
        content.to.as_deref(),
        content.type_.as_deref(),
        content.payload.as_deref(),
        content.fields.as_deref(),
        content.time.as_deref(),
        content.reason.as_deref(),
        content.source.as_deref(),
    ]
}

/// The records, to be read.
pub(crate) struct Contents {
    file: File,
    path: PathBuf,
    at: Vec<u64>,
    _remove: tempfile::TempPath,
}

impl Contents {
    /// What an event says.
    pub(crate) fn get(&self, e: u32) -> Result<Content, ReportError> {
        let Some(&at) = self.at.get(e as usize).filter(|at| **at != u64::MAX) else {
            return Ok(Content::default());
        };
        let mut head = [0; HEAD];
        self.file.read_exact_at(&mut head, at).map_err(ReportError::io(&self.path))?;
        let mut record = vec![0; length(&head)];
        self.file.read_exact_at(&mut record, at + HEAD as u64).map_err(ReportError::io(&self.path))?;
        decode(&record).ok_or_else(|| broken(&self.path))
    }

    /// Calls `each` with every event's content, in the order of writing.
    pub(crate) fn walk(&self, mut each: impl FnMut(u32, &Content)) -> Result<(), ReportError> {
        let file = File::open(&self.path).map_err(ReportError::io(&self.path))?;
        let mut reader = BufReader::with_capacity(1 << 20, file);
        let mut record = Vec::new();
        let mut head = [0; HEAD];
        for _ in self.at.iter().filter(|at| **at != u64::MAX) {
            reader.read_exact(&mut head).map_err(ReportError::io(&self.path))?;
            record.resize(length(&head), 0);
            reader.read_exact(&mut record).map_err(ReportError::io(&self.path))?;
            let content = decode(&record).ok_or_else(|| broken(&self.path))?;
            each(u32::from_le_bytes([head[0], head[1], head[2], head[3]]), &content);
        }
        Ok(())
    }
}

fn length(head: &[u8; HEAD]) -> usize {
    u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize
}

fn broken(path: &Path) -> ReportError {
    ReportError::File { path: path.to_owned(), reason: "the temporary file was changed".into() }
}

fn decode(mut rest: &[u8]) -> Option<Content> {
    let mut content = Content::default();
    let fields = [
        &mut content.msg_id,
        &mut content.from,
        &mut content.to,
        &mut content.type_,
        &mut content.payload,
        &mut content.fields,
        &mut content.time,
        &mut content.reason,
        &mut content.source,
    ];
    for field in fields {
        let (head, tail) = rest.split_at_checked(4)?;
        rest = tail;
        if let Some(length) = u32::from_le_bytes(head.try_into().ok()?).checked_sub(1) {
            let (text, tail) = rest.split_at_checked(length as usize)?;
            *field = Some(std::str::from_utf8(text).ok()?.into());
            rest = tail;
        }
    }
    let (offset, flag) = rest.split_at_checked(8)?;
    content.offset = u64::try_from(i64::from_le_bytes(offset.try_into().ok()?)).ok();
    content.external = flag == [1];
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_come_back_in_any_order() {
        let content = |n: u64| Content {
            payload: Some(format!("p{n}\u{0}é").into()),
            type_: (n == 1).then(|| "".into()),
            offset: (n != 2).then_some(n),
            external: n == 0,
            ..Content::default()
        };
        let mut writer = ContentsWriter::new(4).unwrap();
        for e in [2, 0, 1] {
            writer.add(e, &content(u64::from(e))).unwrap();
        }
        let contents = writer.finish().unwrap();
        for e in 0..3 {
            assert_eq!(contents.get(e).unwrap(), content(u64::from(e)));
        }
        assert_eq!(contents.get(3).unwrap(), Content::default());
        let mut seen = Vec::new();
        contents.walk(|e, c| seen.push((e, c.external))).unwrap();
        assert_eq!(seen, [(2, false), (0, true), (1, false)]);
    }
}
