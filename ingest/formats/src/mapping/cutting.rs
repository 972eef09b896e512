//! Cutting a line by an expression that is a row of parts, without an automaton.
//!
//! Most patterns of logs are such a row: runs of a class of characters, with texts between them, as in `^(?<host>\S+) (?<what>.*)$`. Where the
//! text behind a run begins with a character that is not in the run's class, there is one way to cut. Where it can be in it, the first cut that the
//! expression would try is tried; if that leads nowhere, the expression itself is asked. Only for ASCII, where a byte is a character.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// A part of the row.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    /// This text.
    Text(Vec<u8>),
    /// Characters of a class, a bit for each.
    Run {
        of: u128,
        least: usize,
        greedy: bool,
    },
    /// A group begins or ends: its number.
    Open(usize),
    Close(usize),
    /// The end of a line.
    End,
}

/// An expression that is a row of parts, anchored at the beginning.
#[derive(Clone, Debug)]
pub(super) struct Row {
    parts: Vec<Part>,
    groups: usize,
}

/// What came of cutting.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// By number of the group: where it is, in bytes.
    Found(Vec<Option<(usize, usize)>>),
    /// The expression does not match.
    Nothing,
    /// Only the expression knows.
    Unknown,
}

impl Row {
    /// The row of an expression, if it is one. `^` and `$` are at each line.
    pub(super) fn of(expression: &str) -> Option<Row> {
        let hir = ParserBuilder::new().multi_line(true).build().parse(expression).ok()?;
        let mut parts = Vec::new();
        let mut groups = 0;
        flatten(&hir, &mut parts, &mut groups)?;
        // The first is the beginning of the line, which stands for itself.
        (parts.first() == Some(&Part::Open(usize::MAX))).then(|| parts.remove(0))?;
        let sound = parts.iter().enumerate().all(|(i, part)| match part {
            Part::Open(group) => *group != usize::MAX,
            Part::End => i + 1 == parts.len(),
            _ => true,
        });
        (sound && !parts.is_empty()).then_some(Row { parts, groups: groups + 1 })
    }

    /// Cuts a text of ASCII from its beginning on. Of several cuts the one is taken that the expression tries first.
    pub(super) fn cut(&self, line: &[u8]) -> Cut {
        let mut groups: Vec<Option<(usize, usize)>> = vec![None; self.groups];
        let mut at = 0;
        // Whether a cut was one of several.
        let mut guessed = false;
        let lost = |guessed| if guessed { Cut::Unknown } else { Cut::Nothing };
        for (i, part) in self.parts.iter().enumerate() {
            match part {
                Part::Open(group) => groups[*group] = Some((at, at)),
                Part::Close(group) => groups[*group] = groups[*group].map(|(begin, _)| (begin, at)),
                Part::End if line.get(at).is_none_or(|b| *b == b'\n') => {}
                Part::Text(text) if line[at..].starts_with(text) => at += text.len(),
                Part::End | Part::Text(_) => return lost(guessed),
                Part::Run { of, least, greedy } => {
                    let rest = &line[at..];
                    let longest = rest.iter().position(|b| of & bit(*b) == 0).unwrap_or(rest.len());
                    let next =
                        self.parts[i + 1..].iter().find(|p| !matches!(p, Part::Open(_) | Part::Close(_)));
                    let length = match next {
                        None if *greedy => Some(longest),
                        None => Some(*least),
                        // A run over lines might end with any of them.
                        Some(Part::End) if of & bit(b'\n') != 0 => return Cut::Unknown,
                        Some(Part::End) => Some(longest),
                        Some(Part::Run { of: others, least: 1.., .. }) if of & others == 0 => Some(longest),
                        Some(Part::Text(text)) if of & bit(text[0]) == 0 => Some(longest),
                        Some(Part::Text(text)) => {
                            // The text may go on behind the run.
                            let most = longest.saturating_add(text.len()).min(rest.len());
                            let from = (*least).min(most);
                            let found = match greedy {
                                true => memchr::memmem::rfind(&rest[from..most], text),
                                false => memchr::memmem::find(&rest[from..most], text),
                            };
                            guessed |= found.is_some();
                            found.map(|found| from + found)
                        }
                        Some(_) => {
                            guessed = true;
                            Some(if *greedy { longest } else { *least })
                        }
                    };
                    match length {
                        Some(length) if (*least..=longest).contains(&length) => at += length,
                        _ => return lost(guessed),
                    }
                }
            }
        }
        groups[0] = Some((0, at));
        Cut::Found(groups)
    }
}

fn bit(byte: u8) -> u128 {
    1 << (byte & 127)
}

/// Adds the parts of an expression. The beginning of the line is the group that is none.
fn flatten(hir: &Hir, parts: &mut Vec<Part>, groups: &mut usize) -> Option<()> {
    match hir.kind() {
        HirKind::Empty => {}
        HirKind::Look(Look::StartLF) => parts.push(Part::Open(usize::MAX)),
        HirKind::Look(Look::EndLF) => parts.push(Part::End),
        HirKind::Literal(text) if text.0.is_ascii() => match parts.last_mut() {
            Some(Part::Text(before)) => before.extend_from_slice(&text.0),
            _ => parts.push(Part::Text(text.0.to_vec())),
        },
        HirKind::Concat(all) => all.iter().try_for_each(|part| flatten(part, parts, groups))?,
        HirKind::Capture(capture) => {
            let group = capture.index as usize;
            *groups = (*groups).max(group);
            parts.push(Part::Open(group));
            flatten(&capture.sub, parts, groups)?;
            parts.push(Part::Close(group));
        }
        HirKind::Repetition(run) if run.max.is_none() => {
            let HirKind::Class(class) = run.sub.kind() else { return None };
            parts.push(Part::Run { of: ascii(class), least: run.min as usize, greedy: run.greedy });
        }
        _ => return None,
    }
    Some(())
}

/// The characters of a class that are ASCII.
fn ascii(class: &Class) -> u128 {
    let set = |from: u32, to: u32| (from..=to.min(127)).fold(0, |set, c| set | 1 << c);
    match class {
        Class::Unicode(class) => {
            class.ranges().iter().fold(0, |all, range| all | set(range.start() as u32, range.end() as u32))
        }
        Class::Bytes(class) => {
            class.ranges().iter().fold(0, |all, range| all | set(range.start().into(), range.end().into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::RegexBuilder;

    use super::*;

    /// What the expression itself finds at the beginning.
    fn asked(expression: &str, line: &str) -> Cut {
        let regex = RegexBuilder::new(expression).multi_line(true).build().unwrap();
        match regex.captures(line).filter(|found| found.get(0).unwrap().start() == 0) {
            None => Cut::Nothing,
            Some(found) => {
                Cut::Found((0..found.len()).map(|i| found.get(i).map(|g| (g.start(), g.end()))).collect())
            }
        }
    }

    #[test]
    fn patterns_of_logs_are_rows() {
        let spark = r"^(?<Date>\S+) (?<Time>\S+) (?<Level>\S+) (?<Component>\S+?): (?<Content>.*)$";
        let line = "17/06/09 20:10:40 INFO executor.Executor: Got: 1";
        let cut = Row::of(spark).unwrap().cut(line.as_bytes());
        assert!(matches!(&cut, Cut::Found(groups) if groups[4] == Some((23, 40))), "{cut:?}");
        assert_eq!(cut, asked(spark, line));
        for no in [
            "(?<a>x)",
            r"\A(?<a>x+)",
            r"^(?<a>\d+(,\d+)+)$",
            "^(?<a>x|y)",
            r"^(?<a>\S+)\b",
            "^(?<a>x)?",
            "^é(?<a>.*)",
            "(?i)^x(?<a>.*)",
        ] {
            assert!(Row::of(no).is_none(), "{no}");
        }
    }

    proptest! {
        #[test]
        fn a_row_cuts_as_the_expression_does(
            parts in proptest::collection::vec(("[ab:\n]{0,2}", "[sdw.n]", "[*+]", any::<bool>(), any::<bool>()), 1..4),
            end in "[ab: ]{0,2}",
            anchored: bool,
            line in "[ab1: \n]{0,12}",
        ) {
            let mut expression = "^".to_owned();
            for (i, (before, class, how, lazy, named)) in parts.iter().enumerate() {
                let class = match class.as_str() {
                    "s" => r"\S",
                    "d" => r"\d",
                    "w" => r"\w",
                    "n" => "[^:]",
                    _ => ".",
                };
                let run = format!("{class}{how}{}", if *lazy { "?" } else { "" });
                expression.push_str(before);
                expression.push_str(&if *named { format!("(?<g{i}>{run})") } else { run });
            }
            expression.push_str(&end);
            if anchored {
                expression.push('$');
            }
            let row = Row::of(&expression).unwrap();
            let cut = row.cut(line.as_bytes());
            if cut != Cut::Unknown {
                let mut wanted = asked(&expression, &line);
                if let Cut::Found(groups) = &mut wanted {
                    groups.resize(row.groups, None);
                }
                prop_assert_eq!(cut, wanted, "{} in '{}'", expression, line);
            }
        }
    }
}
