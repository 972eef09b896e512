//! SQL over an execution.

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use demi_lineage::query::Query;
use demi_lineage::query::sql::{OutputFormat, write};

use crate::commands::Outcome;

/// A SELECT and where its answer goes.
#[derive(clap::Args, Debug)]
pub struct SqlArgs {
    /// A SELECT over events, messages, actors and completeness; in FROM and JOIN also past('EVENT'), future('EVENT'),
    /// concurrent('EVENT'), between('A','B'), cut('EVENT',..), cut('TIME'), path('A','B') and channel('FROM','TO').
    #[arg(long, value_name = "SELECT")]
    pub sql: Option<String>,
    /// How the answer is written.
    #[arg(long, value_enum, default_value_t = Format::Table, requires = "sql")]
    format: Format,
    /// The file to write; standard output without.
    #[arg(long, short, value_name = "FILE", requires = "sql")]
    output: Option<PathBuf>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// Columns for people.
    Table,
    /// Comma-separated values with a header.
    Csv,
    /// One JSON object a line.
    Jsonl,
    /// Parquet.
    Parquet,
    /// An Arrow IPC file.
    Arrow,
}

/// Answers a SELECT.
pub fn run(text: &str, args: &SqlArgs, query: &Query) -> Outcome {
    let format = match args.format {
        Format::Table => OutputFormat::Table,
        Format::Csv => OutputFormat::Csv,
        Format::Jsonl => OutputFormat::JsonLines,
        Format::Parquet => OutputFormat::Parquet,
        Format::Arrow => OutputFormat::Arrow,
    };
    let binary = matches!(args.format, Format::Parquet | Format::Arrow);
    if binary && args.output.is_none() && std::io::stdout().is_terminal() {
        return Err("Parquet and Arrow are no text: name a file with --output".into());
    }
    let mut frame = query.sql(text)?;
    match &args.output {
        None => {
            let mut out = std::io::stdout().lock();
            write(&mut frame, format, &mut out)?;
            out.flush()?;
        }
        Some(path) => {
            // Beside the target and moved into place, so that nobody sees half a file.
            let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(".".as_ref());
            let named = |e: std::io::Error| format!("{}: {e}", path.display());
            let file = tempfile::NamedTempFile::new_in(parent).map_err(named)?;
            let mut out = BufWriter::new(File::try_clone(file.as_file()).map_err(named)?);
            write(&mut frame, format, &mut out)?;
            out.flush().map_err(named)?;
            file.persist(path).map_err(|e| named(e.error))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
