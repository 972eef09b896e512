//! SQL over an execution.

use std::path::PathBuf;

use demi_commands::ui::Ui;
use demi_common::sealed::SealedFile;
use demi_lineage::query::Query;

use crate::commands::Outcome;

/// A SELECT and where its answer goes.
#[derive(clap::Args, Debug)]
pub struct SqlArgs {
    /// A SELECT over events, messages, actors, completeness, and of a store quarantine; in FROM and JOIN also past('EVENT'), future('EVENT'),
    /// concurrent('EVENT'), between('A','B'), cut('EVENT',..), cut('TIME'), path('A','B') and channel('FROM','TO').
    #[arg(long, value_name = "SELECT")]
    pub sql: Option<String>,
    /// Let the SELECT read files too: read_csv('FILE'), read_parquet, read_ipc and read_json.
    #[arg(long, requires = "sql")]
    allow_files: bool,
    /// The format of the answer.
    #[arg(long, value_enum, default_value_t = Format::Table, requires = "sql")]
    format: Format,
    /// The file to write [default: standard output].
    #[arg(long, short, alias = "output", value_name = "FILE", requires = "sql")]
    out: Option<PathBuf>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// Columns for people.
    Table,
    /// Comma-separated values with a header. Cells are as they were logged: one that begins with =, +, - or @ is a formula to a
    /// spreadsheet, so import such files as text.
    Csv,
    /// One JSON object per line.
    Jsonl,
    /// Parquet.
    Parquet,
    /// An Arrow IPC file.
    Arrow,
}

/// Answers a SELECT.
#[cfg(not(feature = "sql"))]
pub fn run(_: &str, args: &SqlArgs, _: Option<Vec<SealedFile>>, _: &Query, _: &Ui) -> Outcome {
    let SqlArgs { sql: _, allow_files: _, format: _, out: _ } = args;
    Err(crate::commands::left_out("SELECT statements", "sql"))
}

/// Answers a SELECT.
#[cfg(feature = "sql")]
pub fn run(
    text: &str,
    args: &SqlArgs,
    quarantine: Option<Vec<SealedFile>>,
    query: &Query,
    ui: &Ui,
) -> Outcome {
    use std::io::{BufWriter, IsTerminal, Write};
    use std::process::ExitCode;

    use demi_commands::out::stdout;
    use demi_sql::{Around, Files, OutputFormat, select, write};

    let format = match args.format {
        Format::Table => OutputFormat::Table,
        Format::Csv => OutputFormat::Csv,
        Format::Jsonl => OutputFormat::JsonLines,
        Format::Parquet => OutputFormat::Parquet,
        Format::Arrow => OutputFormat::Arrow,
    };
    let files = if args.allow_files { Files::Allowed } else { Files::Refused };
    let binary = matches!(args.format, Format::Parquet | Format::Arrow);
    if binary && args.out.is_none() && std::io::stdout().is_terminal() {
        return Err("Parquet and Arrow are binary: name a file with --out".into());
    }
    let mut answer = select(query, text, &Around { files, quarantine })?;
    for note in &answer.notes {
        ui.note(&format!("warning: {note}"));
    }
    let frame = &mut answer.frame;
    match &args.out {
        None => {
            let mut out = stdout();
            write(frame, format, &mut out)?;
            out.flush()?;
        }
        Some(path) => {
            crate::commands::replace_file(path, |file| {
                let mut out = BufWriter::new(file);
                write(frame, format, &mut out)?;
                Ok(out.flush()?)
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
