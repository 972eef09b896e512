//! An exploration that was stopped, in its folder: what `explore --resume` goes on from.

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use demi_common::regular;
use demi_explore::{Saved, SavedError};
use demi_schemas::Schedule;
use serde::{Deserialize, Serialize};

use crate::explore_args::{ExploreArgs, Part};

/// The file in the folder.
const FILE: &str = "unfinished.jsonl.zst";
/// The version of its format.
const FORMAT: &str = "demi-unfinished/2";
/// How strongly it is compressed.
const LEVEL: i32 = 3;

/// What an exploration depends on: by name, as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings(Vec<(String, String)>);

impl Settings {
    /// What is asked for.
    pub fn of(args: &ExploreArgs, scenario: &str, recorded: Option<&Schedule>) -> Settings {
        let number = |n: Option<u64>| n.map_or_else(|| "nothing".to_owned(), |n| n.to_string());
        let settings = [
            ("the program", env!("CARGO_PKG_VERSION").to_owned()),
            ("--scenario", scenario.to_owned()),
            ("--from", recorded.map_or_else(|| "nothing".to_owned(), Schedule::to_text)),
            ("--at", number(args.at)),
            ("--every", number(args.every)),
            ("--last", number(args.last)),
            ("--bound", args.bound.to_string()),
            ("--cost", args.cost.to_string()),
            ("--faults", args.faults.to_string()),
            ("--externals", number(args.externals.map(u64::from))),
            ("--seed", args.seed.to_string()),
            ("--depth", args.depth.to_string()),
            ("--all", args.all.to_string()),
        ];
        Settings(settings.map(|(name, value)| (name.to_owned(), value)).into())
    }

    /// How what was asked for differs from this, if it does.
    fn differs(&self, earlier: &Settings) -> Option<String> {
        let pairs = self.0.iter().zip(&earlier.0).find(|(now, then)| now != then);
        let ((name, now), (_, then)) = pairs?;
        Some(match name.as_str() {
            "--scenario" | "--from" => format!("{name} is another file than it was then"),
            _ => format!("{name} is {now}, and was {then} then"),
        })
    }
}

/// The first line of the file.
#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    settings: Settings,
    /// By beginning: after how many deliveries of the recording.
    beginnings: Vec<Option<u64>>,
}

/// What came of one beginning until then.
pub struct Unfinished {
    /// After how many deliveries of the recording; nothing at the scenario's beginning.
    pub from: Option<u64>,
    /// What is needed to go on.
    pub saved: Saved,
}

/// Writes what is needed to go on to a folder.
pub fn write(folder: &Path, settings: &Settings, parts: &[Part]) -> Result<(), Box<dyn Error>> {
    let path = folder.join(FILE);
    let fill = || -> std::io::Result<()> {
        let mut encoder = zstd::Encoder::new(File::create(&path)?, LEVEL)?;
        // A damaged file would make a promise that nothing stands behind.
        encoder.include_checksum(true)?;
        let mut out = BufWriter::new(encoder.auto_finish());
        let beginnings = parts.iter().map(|part| part.from).collect();
        let header = Header { format: FORMAT.to_owned(), settings: settings.clone(), beginnings };
        serde_json::to_writer(&mut out, &header)?;
        out.write_all(b"\n")?;
        for part in parts {
            part.explored.saved.write(&mut out)?;
        }
        out.flush()
    };
    fill().map_err(|e| format!("{}: {e}", path.display()).into())
}

/// Reads what an exploration with these settings left in its folder.
pub fn read(folder: &Path, settings: &Settings) -> Result<Vec<Unfinished>, Box<dyn Error>> {
    let path = folder.join(FILE);
    let named = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    if !path.is_file() {
        return Err(format!(
            "{} holds no exploration that was stopped: there is nothing to resume",
            folder.display()
        )
        .into());
    }
    let file = regular::open(&path).and_then(zstd::Decoder::new).map_err(|e| named(&e))?;
    let mut lines = BufReader::new(file);
    let mut text = String::new();
    lines.read_line(&mut text).map_err(|e| named(&e))?;
    let header: Header = serde_json::from_str(&text).map_err(|e| named(&e))?;
    if header.format != FORMAT {
        return Err(named(&format!("its format is '{}', and only {FORMAT} is read", header.format)).into());
    }
    if let Some(why) = settings.differs(&header.settings) {
        return Err(format!("cannot resume {}: {why}", folder.display()).into());
    }
    let mut unfinished = Vec::new();
    let mut line = 2;
    for from in header.beginnings {
        let saved = Saved::read(&mut lines, &mut line).map_err(|e: SavedError| named(&e))?;
        unfinished.push(Unfinished { from, saved });
    }
    Ok(unfinished)
}
