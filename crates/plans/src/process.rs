//! Engines that are processes: Python loads them, and a driver that is written beside their tables passes statements on.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::engine::{Cell, ColumnType, Counted, Engine, Files, Rows, Saved, Small};
use crate::error::PlanError;
use crate::sql::{Dialect, Step};

/// The driver, which is written to a temporary folder.
const DRIVER: &str = include_str!("driver.py");

/// What is kept of what a process says beside its answers.
const TOLD: usize = 4096;

/// An engine that the driver can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// DuckDB.
    DuckDb,
    /// Apache DataFusion.
    DataFusion,
    /// Apache Ballista, through its command line.
    Ballista,
    /// Apache Spark.
    Spark,
}

impl EngineKind {
    /// All of them.
    pub const ALL: [EngineKind; 4] =
        [EngineKind::DuckDb, EngineKind::DataFusion, EngineKind::Ballista, EngineKind::Spark];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::DuckDb => "duckdb",
            EngineKind::DataFusion => "datafusion",
            EngineKind::Ballista => "ballista",
            EngineKind::Spark => "spark",
        }
    }

    /// The engine of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<EngineKind> {
        EngineKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// How it wants its statements.
    #[must_use]
    pub fn dialect(self) -> Dialect {
        match self {
            EngineKind::DuckDb => Dialect::DuckDb,
            EngineKind::DataFusion | EngineKind::Ballista => Dialect::DataFusion,
            EngineKind::Spark => Dialect::Spark,
        }
    }
}

/// An engine in a process of its own.
pub struct Process {
    kind: EngineKind,
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    folder: TempDir,
    /// Numbers files of small tables: no name is used twice, since engines remember files by name.
    written: u64,
    version: String,
}

impl Process {
    /// Starts an engine with that Python. `place` is the master of a Spark cluster, or the scheduler of Ballista as HOST:PORT.
    ///
    /// # Errors
    /// When Python does not have the engine, or it is not where it should be.
    pub fn start(kind: EngineKind, place: Option<&str>, python: &Path) -> Result<Process, PlanError> {
        let name = kind.name();
        let failed = |reason: String| PlanError::NoEngine { engine: name, python: python.to_owned(), reason };
        let folder =
            tempfile::Builder::new().prefix(".demi-plans-").tempdir().map_err(|e| failed(e.to_string()))?;
        let script = folder.path().join("driver.py");
        std::fs::write(&script, DRIVER).map_err(PlanError::io(&script))?;
        let told = folder.path().join("told.txt");
        let errors = File::create(&told).map_err(PlanError::io(&told))?;
        let mut command = Command::new(python);
        command
            .arg(&script)
            .arg(name)
            .args(place)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors);
        let mut child = command.spawn().map_err(|e| failed(e.to_string()))?;
        let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("it has no pipes".into()));
        };
        let mut engine = Process {
            kind,
            child,
            requests: Some(requests),
            answers: BufReader::new(answers),
            folder,
            written: 0,
            version: String::new(),
        };
        let hello = engine.answer("start").map_err(|error| match error {
            PlanError::Engine { reason, .. } => failed(reason),
            other => other,
        })?;
        engine.version = hello["version"].as_str().unwrap_or_default().to_owned();
        Ok(engine)
    }

    /// The version of the engine.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    fn failed(&self, step: &'static str, reason: impl ToString) -> PlanError {
        PlanError::Engine { engine: self.kind.name(), step, reason: reason.to_string() }
    }

    fn ask(&mut self, step: &'static str, request: &Value) -> Result<Value, PlanError> {
        let sent = match &mut self.requests {
            Some(requests) => writeln!(requests, "{request}").and_then(|()| requests.flush()),
            None => Ok(()),
        };
        // Who does not listen has said why, or has ended: its answer says so.
        let answered = self.answer(step);
        sent.map_err(|e| self.failed(step, e)).and(answered)
    }

    fn answer(&mut self, step: &'static str) -> Result<Value, PlanError> {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line).map_err(|e| self.failed(step, e))?;
        if read == 0 {
            return Err(self.failed(step, format!("it ended: {}", self.told())));
        }
        let mut answer: Value = serde_json::from_str(&line).map_err(|e| self.failed(step, e))?;
        match answer["error"].as_str() {
            Some(error) => Err(self.failed(step, error)),
            None => Ok(answer["ok"].take()),
        }
    }

    /// The end of what the process said beside its answers.
    fn told(&self) -> String {
        let mut text = Vec::new();
        let path = self.folder.path().join("told.txt");
        let _ = File::open(path).and_then(|mut file| file.read_to_end(&mut text));
        let from = text.len().saturating_sub(TOLD);
        String::from_utf8_lossy(&text[from..]).trim().to_owned()
    }

    fn tables(&mut self, tables: Vec<Value>) -> Result<(), PlanError> {
        self.ask("tables", &json!({"do": "tables", "tables": tables})).map(|_| ())
    }

    fn path(&mut self, name: &str) -> PathBuf {
        self.written += 1;
        self.folder.path().join(format!("{name}-{}.parquet", self.written))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The driver ends with its requests; an engine that hangs on is stopped.
        drop(self.requests.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn counted(answer: &Value) -> Counted {
    Counted { rows_read: answer["rows_read"].as_u64(), bytes_read: answer["bytes_read"].as_u64() }
}

/// Writes a small table to a file.
fn write(table: &Small, path: &Path) -> Result<(), PlanError> {
    let fields = table.columns().iter().map(|(name, kind)| match kind {
        ColumnType::Text => Field::new(*name, DataType::Utf8, true),
        _ => Field::new(*name, DataType::Int64, true),
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let columns = table.columns().iter().enumerate().map(|(at, (_, kind))| -> ArrayRef {
        let cells = table.rows().iter().map(|row| row.get(at));
        match kind {
            ColumnType::Text => Arc::new(StringArray::from_iter(cells.map(|cell| match cell {
                Some(Cell::Text(text)) => Some(text.as_str()),
                _ => None,
            }))),
            _ => Arc::new(Int64Array::from_iter(cells.map(|cell| match cell {
                Some(Cell::Long(number)) => Some(*number),
                _ => None,
            }))),
        }
    });
    let batch = RecordBatch::try_new(schema.clone(), columns.collect())?;
    let file = File::create(path).map_err(PlanError::io(path))?;
    let mut writer = ArrowWriter::try_new(file, schema, None).map_err(PlanError::table(path))?;
    writer.write(&batch).map_err(PlanError::table(path))?;
    writer.close().map_err(PlanError::table(path))?;
    Ok(())
}

impl Engine for Process {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn dialect(&self) -> Dialect {
        self.kind.dialect()
    }

    fn open(&mut self, tables: &[Files]) -> Result<(), PlanError> {
        let told = tables
            .iter()
            .map(|table| json!({"name": table.name, "files": table.files, "columns": table.columns}));
        self.tables(told.collect())
    }

    fn put(&mut self, tables: &[Small]) -> Result<(), PlanError> {
        let mut told = Vec::new();
        for table in tables {
            let mut files = Vec::new();
            if !table.rows().is_empty() {
                let path = self.path(table.name());
                write(table, &path)?;
                files.push(path);
            }
            told.push(json!({"name": table.name(), "files": files, "columns": table.columns()}));
        }
        self.tables(told)
    }

    fn query(&mut self, step: Step, keys: &[i64]) -> Result<Rows, PlanError> {
        let request = json!({"do": "query", "sql": step.text(self.kind.dialect(), keys)});
        let answer = self.ask(step.name(), &request)?;
        let not_rows = || self.failed(step.name(), "its answer holds no rows of numbers");
        let rows = answer["rows"].as_array().ok_or_else(not_rows)?;
        let number = |value: &Value| value.as_i64().or(value.is_null().then_some(0));
        let row =
            |row: &Value| row.as_array().and_then(|row| row.iter().map(number).collect::<Option<Vec<i64>>>());
        let rows = rows.iter().map(row).collect::<Option<Vec<_>>>().ok_or_else(not_rows)?;
        Ok(Rows { rows, counted: counted(&answer) })
    }

    fn save(&mut self, step: Step, path: &Path) -> Result<Saved, PlanError> {
        let request = json!({"do": "save", "sql": step.text(self.kind.dialect(), &[]), "path": path});
        let answer = self.ask(step.name(), &request)?;
        let files: Vec<PathBuf> = serde_json::from_value(answer["files"].clone()).unwrap_or_default();
        Ok(Saved { files, counted: counted(&answer) })
    }
}
