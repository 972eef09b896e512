//! From a line of a log, or a text in it, to the event that it became.

use std::error::Error;
use std::fmt;
use std::io::BufRead;
use std::path::Path;
use std::str::FromStr;

use demi_common::sealed::SealedFile;
use demi_formats::Source;
use demi_lineage::export::{self, Content};
use demi_lineage::window::{self, Window};
use demi_lineage::{BuildOptions, LineageError, ViolationSpec};
use demi_schemas::Kind;
use demi_schemas::summary::BuildSummary;
use regex::{Regex, RegexBuilder};

/// What is looked for.
#[derive(Clone, Debug)]
pub enum Needle {
    /// Events whose type, content, fields, state, sender, receiver or time hold the expression.
    Text(Regex),
    /// The event that a line of a file became.
    Line(LineOf),
}

/// A line of a file, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineOf {
    file: String,
    line: u64,
}

impl fmt::Display for LineOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl FromStr for LineOf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted =
            || format!("'{text}' names no line of a file: expected FILE:LINE, lines are counted from 1");
        let (file, line) = text.rsplit_once(':').ok_or_else(wanted)?;
        match line.parse() {
            Ok(line) if line > 0 && !file.is_empty() => Ok(LineOf { file: file.to_owned(), line }),
            _ => Err(wanted()),
        }
    }
}

impl Needle {
    /// A text, whatever the case, or a regular expression.
    ///
    /// # Errors
    /// When it is no regular expression.
    pub fn text(text: &str, is_regex: bool) -> Result<Needle, Box<dyn Error>> {
        let pattern = if is_regex { text.to_owned() } else { regex::escape(text) };
        Ok(Needle::Text(RegexBuilder::new(&pattern).case_insensitive(!is_regex).build()?))
    }

    /// What a violation is that is named by a line or a text; none for all other violations.
    fn of_violation(spec: &ViolationSpec) -> Result<Option<Needle>, Box<dyn Error>> {
        let ViolationSpec::Unknown(text) = spec else { return Ok(None) };
        Ok(match text.split_once(':') {
            Some(("line", line)) => Some(Needle::Line(line.parse()?)),
            Some(("text", text)) => Some(Needle::text(text, true)?),
            _ => None,
        })
    }
}

/// An event that was found.
#[derive(Clone, Debug)]
pub struct Hit {
    /// Its place in the order, from 0.
    pub rank: u32,
    /// What it says.
    pub content: Content,
}

/// The events of an execution that hold what is looked for, in their order.
///
/// # Errors
/// When the execution or the file of a line cannot be read, or the line became no event.
pub fn find(exec: &Path, needle: &Needle) -> Result<Vec<Hit>, Box<dyn Error>> {
    let mut hits = Vec::new();
    match needle {
        Needle::Text(regex) => {
            // A kind is looked for by its whole name: every event has one.
            let is_whole =
                |kind: &Kind| regex.find(kind.as_str()).is_some_and(|m| m.len() == kind.as_str().len());
            let wanted: Vec<Kind> = Kind::ALL.into_iter().filter(is_whole).collect();
            let kinds = if wanted.is_empty() { Vec::new() } else { export::skeleton(exec)?.kind };
            export::contents(
                exec,
                |_| true,
                |rank, content| -> Result<(), LineageError> {
                    let is_kind = || kinds.get(rank as usize).is_some_and(|kind| wanted.contains(kind));
                    if holds(regex, &content) || is_kind() {
                        hits.push(Hit { rank, content });
                    }
                    Ok(())
                },
            )?;
        }
        Needle::Line(line) => {
            let offset = offset_of(line)?;
            // The nearest event of the file before the line, to be named where the line became none.
            let (mut file_known, mut before) = (false, None);
            export::contents(
                exec,
                |_| true,
                |rank, content| -> Result<(), LineageError> {
                    let Some(at) = content.offset.filter(|_| is_same(content.source.as_deref(), &line.file))
                    else {
                        return Ok(());
                    };
                    file_known = true;
                    if at == offset {
                        hits.push(Hit { rank, content });
                    } else if at < offset && before.is_none_or(|(nearest, _)| nearest < at) {
                        before = Some((at, rank));
                    }
                    Ok(())
                },
            )?;
            if hits.is_empty() {
                if !file_known {
                    return Err(format!("no event comes from {}", line.file).into());
                }
                let skeleton = export::skeleton(exec)?;
                let nearest = before.map_or_else(String::new, |(_, rank)| {
                    format!("; the nearest event before it is {}", skeleton.id(rank))
                });
                return Err(format!("no event comes from {line}{nearest}").into());
            }
        }
    }
    hits.sort_by_key(|hit| hit.rank);
    Ok(hits)
}

fn holds(regex: &Regex, content: &Content) -> bool {
    let texts = [
        &content.type_,
        &content.payload,
        &content.fields,
        &content.state,
        &content.from,
        &content.to,
        &content.msg_id,
        &content.time,
    ];
    texts.into_iter().flatten().any(|text| regex.is_match(text))
}

/// Whether a file that records name is the one that is meant: the shorter of the two paths is the end of the other.
fn is_same(source: Option<&str>, file: &str) -> bool {
    let Some(source) = source else { return false };
    let (source, file) = (Path::new(source), Path::new(file.strip_prefix("./").unwrap_or(file)));
    source.ends_with(file) || file.ends_with(source)
}

/// Where a line begins, in the unpacked bytes of its file.
fn offset_of(line: &LineOf) -> Result<u64, Box<dyn Error>> {
    let opened = Source::file(&line.file).read();
    let (_, mut stream) = opened.map_err(|error| {
        format!("{error}; a line is counted in its file, which must be there to be read, by a path from the current folder")
    })?;
    let (mut offset, mut number, mut begun) = (0, 1, false);
    while number < line.line {
        let (used, ended) = {
            let bytes = stream.fill_buf()?;
            match bytes.iter().position(|b| *b == b'\n') {
                Some(end) => (end + 1, true),
                None => (bytes.len(), false),
            }
        };
        if used == 0 {
            let lines = number - u64::from(!begun);
            return Err(format!("{} has {lines} lines, and no line {}", line.file, line.line).into());
        }
        begun = !ended;
        stream.consume(used);
        offset += used as u64;
        number += u64::from(ended);
    }
    Ok(offset)
}

/// Builds an execution of a part of the events, or of all.
///
/// # Errors
/// As [`build`], and when there is no such part.
pub fn build_window(
    files: &[SealedFile],
    mut options: BuildOptions,
    window: &Window,
    out: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<BuildSummary, Box<dyn Error>> {
    if window.is_everything() {
        return build(files, &options, out, say);
    }
    let beside = out.parent().filter(|parent| parent.is_dir()).unwrap_or(Path::new("."));
    let place = tempfile::Builder::new().prefix(".demi-window-").tempdir_in(beside)?;
    let windowed = window::cut(files, &options.system, window, place.path(), say)?;
    options.window = Some(windowed.summary);
    build(&[windowed.file], &options, out, say)
}

/// Builds an execution. A violation that is named by a line or a text is looked for in the order, which is built first.
///
/// # Errors
/// When there is no such event, or the execution cannot be built.
pub fn build(
    files: &[SealedFile],
    options: &BuildOptions,
    out: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<BuildSummary, Box<dyn Error>> {
    let Some(needle) = Needle::of_violation(&options.violation)? else {
        return Ok(demi_lineage::build(files, options, out, say)?);
    };
    let beside = out.parent().filter(|parent| parent.is_dir()).unwrap_or(Path::new("."));
    let place = tempfile::Builder::new().prefix(".demi-find-").tempdir_in(beside)?;
    let exec = place.path().join("order");
    let order = BuildOptions { violation: ViolationSpec::None, copy: false, ..options.clone() };
    demi_lineage::build(files, &order, &exec, say)?;
    let hits = find(&exec, &needle)?;
    let Some(first) = hits.first() else {
        let ViolationSpec::Unknown(named) = &options.violation else {
            return Err("no event is named".into());
        };
        let (_, what) = named.split_once(':').unwrap_or(("", named));
        return Err(format!(
            "no event holds the text of the violation, '{what}', a regular expression: `query EXEC find TEXT` looks for others in an execution \
             that was built with `--violation none`"
        )
        .into());
    };
    let name = export::skeleton(&exec)?.id(first.rank).to_string();
    let options = BuildOptions { violation: ViolationSpec::Event(name.clone()), ..options.clone() };
    let mut summary = demi_lineage::build(files, &options, out, say)?;
    if let Some(others) = hits.len().checked_sub(1).filter(|others| *others > 0) {
        summary.warnings.push(format!(
            "the violation is {name}, the first of the events that hold it; {others} others do"
        ));
    }
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_file_is_named_by_its_number() {
        assert_eq!("C:/x:y.log:17".parse(), Ok(LineOf { file: "C:/x:y.log".into(), line: 17 }));
        for bad in ["a.log", "a.log:", "a.log:0", ":3", "a.log:x"] {
            assert!(bad.parse::<LineOf>().unwrap_err().contains("FILE:LINE"), "{bad}");
        }
    }

    #[test]
    fn a_file_is_known_by_the_end_of_its_path() {
        for (source, file) in [
            ("logs/a.log", "logs/a.log"),
            ("/x/logs/a.log", "logs/a.log"),
            ("logs/a.log", "/x/logs/a.log"),
            ("a.log", "./a.log"),
        ] {
            assert!(is_same(Some(source), file), "{source} {file}");
        }
        for (source, file) in [("logs/a.log", "b.log"), ("logs/aa.log", "a.log"), ("x/a.log", "y/a.log")] {
            assert!(!is_same(Some(source), file), "{source} {file}");
        }
        assert!(!is_same(None, "a.log"));
    }

    #[test]
    fn lines_begin_behind_the_ends_of_those_before() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.log").display().to_string();
        std::fs::write(&file, "one\n\nthree\r\nfour").unwrap();
        let at = |line| offset_of(&LineOf { file: file.clone(), line }).map_err(|e| e.to_string());
        assert_eq!([at(1), at(2), at(3), at(4)], [Ok(0), Ok(4), Ok(5), Ok(12)]);
        assert!(at(6).unwrap_err().contains("has 4 lines"));
        std::fs::write(&file, "one\ntwo\n").unwrap();
        assert!(
            offset_of(&LineOf { file: file.clone(), line: 9 })
                .unwrap_err()
                .to_string()
                .contains("has 2 lines")
        );
    }
}
