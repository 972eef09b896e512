//! Builds and questions on an engine of relational plans.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use demi_commands::ui::Ui;

/// The environment variable that names the Python which has the engines.
#[cfg(feature = "plans")]
const PYTHON: &str = "DEMI_PYTHON";

/// An engine, and where it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineName {
    /// This process, with the order index.
    Local,
    /// DuckDB, in a process of Python.
    DuckDb,
    /// Apache DataFusion, in a process of Python.
    DataFusion,
    /// Apache Ballista: a scheduler, as HOST:PORT.
    Ballista(String),
    /// Apache Spark, by PySpark: on this machine, or at a master.
    Spark(Option<String>),
}

impl FromStr for EngineName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, place) = text.split_once(':').map_or((text, None), |(name, place)| (name, Some(place)));
        match (name, place.filter(|place| !place.is_empty())) {
            ("local", None) => Ok(EngineName::Local),
            ("duckdb", None) => Ok(EngineName::DuckDb),
            ("datafusion", None) => Ok(EngineName::DataFusion),
            ("ballista", Some(place)) if is_host_and_port(place) => {
                Ok(EngineName::Ballista(place.to_owned()))
            }
            ("ballista", _) => Err(format!(
                "'{text}' names no scheduler: it is ballista:HOST:PORT, such as ballista:localhost:50050"
            )),
            ("spark", place) => Ok(EngineName::Spark(place.map(str::to_owned))),
            _ => Err(format!(
                "'{text}' is no engine: there are local, duckdb, datafusion, ballista:HOST:PORT, spark and spark:MASTER"
            )),
        }
    }
}

fn is_host_and_port(place: &str) -> bool {
    place.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

/// A dialect of SQL.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
#[value(rename_all = "lowercase")]
pub enum SqlDialect {
    /// DuckDB.
    DuckDb,
    /// Apache DataFusion, and Ballista.
    DataFusion,
    /// Apache Spark.
    Spark,
    /// Trino.
    Trino,
}

/// Which engine finds a causal past, and within which limits.
#[derive(clap::Args, Clone, Debug)]
pub struct EngineArgs {
    /// The engine that finds the causal past in the store's tables of lineage: local, duckdb, datafusion, ballista:HOST:PORT, spark or spark:MASTER. All but local
    /// run in the Python that DEMI_PYTHON names [default: python3].
    #[arg(long, value_name = "ENGINE", global = true)]
    engine: Option<EngineName>,
    /// The most rounds on the engine; then what may still be in the past is fetched and searched here.
    #[arg(long, value_name = "N", default_value_t = 32, requires = "engine", global = true)]
    max_rounds: u32,
    /// Refuse to fetch a causal past of more events.
    #[arg(long, value_name = "N", default_value_t = 100_000_000, requires = "engine", global = true)]
    max_events: u64,
}

impl EngineArgs {
    /// The engine that is meant, unless it is this process.
    pub fn elsewhere(&self) -> Option<&EngineName> {
        self.engine.as_ref().filter(|engine| **engine != EngineName::Local)
    }
}

/// What prints statements in place of running them.
#[derive(clap::Args, Clone, Debug)]
pub struct ExplainArgs {
    /// Print every statement in order, in this dialect, and run nothing.
    #[arg(
        long,
        value_name = "DIALECT",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "duckdb"
    )]
    explain_sql: Option<SqlDialect>,
}

#[cfg(not(feature = "plans"))]
mod left_out {
    use super::*;
    use crate::commands::left_out;
    use demi_lineage::{BuildOptions, ViolationSpec};

    impl ExplainArgs {
        /// Prints the statements of a slice, where that is asked for.
        pub fn slice(&self, _: &Ui) -> Result<bool, Box<dyn Error>> {
            match self.explain_sql {
                Some(_) => Err(left_out("engine of plans", "plans")),
                None => Ok(false),
            }
        }
    }

    /// Fetches the causal past of a violation.
    pub fn fetch(
        _: &EngineArgs,
        _: &Path,
        _: Option<&str>,
        _: &ViolationSpec,
        _: &Path,
        _: &mut BuildOptions,
        _: &Ui,
    ) -> Result<Vec<PathBuf>, Box<dyn Error>> {
        Err(left_out("engine of plans", "plans"))
    }
}

#[cfg(not(feature = "plans"))]
pub use left_out::fetch;

#[cfg(feature = "plans")]
mod plans {
    use super::*;
    use crate::commands::built;
    use demi_lineage::{BuildOptions, ViolationSpec};
    use demi_plans::{ClosedBy, Dialect, EngineKind, Options, Process, Session, Step};
    use demi_schemas::summary::PlanSummary;
    use demi_store::Store;

    impl SqlDialect {
        fn dialect(self) -> Dialect {
            match self {
                SqlDialect::DuckDb => Dialect::DuckDb,
                SqlDialect::DataFusion => Dialect::DataFusion,
                SqlDialect::Spark => Dialect::Spark,
                SqlDialect::Trino => Dialect::Trino,
            }
        }
    }

    impl ExplainArgs {
        /// Prints the statements of a slice, where that is asked for. Whether it was.
        pub fn slice(&self, ui: &Ui) -> Result<bool, Box<dyn Error>> {
            self.print(&Step::SLICE, ui)
        }

        /// Prints the statements that make the tables, where that is asked for. Whether it was.
        pub fn tables(&self, ui: &Ui) -> Result<bool, Box<dyn Error>> {
            self.print(&Step::TABLES, ui)
        }

        fn print(&self, steps: &[Step], ui: &Ui) -> Result<bool, Box<dyn Error>> {
            let Some(dialect) = self.explain_sql else { return Ok(false) };
            ui.result(demi_plans::explained(dialect.dialect(), steps).trim_end());
            Ok(true)
        }
    }

    impl EngineName {
        /// Starts the engine.
        fn start(&self) -> Result<Process, Box<dyn Error>> {
            let python = std::env::var_os(PYTHON).map_or_else(|| PathBuf::from("python3"), PathBuf::from);
            let (kind, place) = match self {
                EngineName::Local => return Err("the local engine is no process".into()),
                EngineName::DuckDb => (EngineKind::DuckDb, None),
                EngineName::DataFusion => (EngineKind::DataFusion, None),
                EngineName::Ballista(place) => (EngineKind::Ballista, Some(place.as_str())),
                EngineName::Spark(place) => (EngineKind::Spark, place.as_deref()),
            };
            Ok(Process::start(kind, place, &python)?)
        }
    }

    impl EngineArgs {
        fn options(&self, certain: bool) -> Options {
            Options { max_rounds: self.max_rounds, certain }
        }
    }

    /// Says which version of the events the tables are of, where there is a later one.
    fn note_version(session: &Session<'_>, store: &Store, system: &str, ui: &Ui) {
        if let Some(version) = session.behind(system) {
            ui.note(&format!(
                "the tables of lineage are of version {version} of the events, and the store is at {}: what came since is not seen (lineage refresh takes it in)",
                store.version()
            ));
        }
    }

    /// Opens a system's tables on an engine and asks there.
    pub fn on_engine<T>(
        args: &EngineArgs,
        place: &Path,
        named: Option<&str>,
        certain: bool,
        ui: &Ui,
        ask: impl FnOnce(&mut Session<'_>, &str) -> Result<T, Box<dyn Error>>,
    ) -> Result<T, Box<dyn Error>> {
        let store = Store::open(place)?;
        let system = built::system(&store, named)?;
        let scratch = tempfile::Builder::new().prefix(".demi-plans-").tempdir()?;
        let engine = args.elsewhere().ok_or("no engine is named")?;
        let mut process = engine.start()?;
        let systems = std::slice::from_ref(&system);
        let mut session =
            Session::open(&mut process, &store, systems, args.options(certain), scratch.path())?;
        note_version(&session, &store, &system, ui);
        ask(&mut session, &system)
    }

    /// Fetches the causal past of a violation into files in `scratch`, of which a build is made, and notes in its options how it was found.
    pub fn fetch(
        args: &EngineArgs,
        place: &Path,
        named: Option<&str>,
        violation: &ViolationSpec,
        scratch: &Path,
        options: &mut BuildOptions,
        ui: &Ui,
    ) -> Result<Vec<PathBuf>, Box<dyn Error>> {
        let store = Store::open(place)?;
        let system = built::system(&store, named)?;
        let engine = args.elsewhere().ok_or("no engine is named")?;
        let bar = ui.progress();
        bar.set_message("starting the engine".to_owned());
        let mut process = engine.start()?;
        bar.set_message("finding the causal past".to_owned());
        let systems = std::slice::from_ref(&system);
        let mut session = Session::open(&mut process, &store, systems, args.options(false), scratch)?;
        let slices = session.slices(&[(system.clone(), violation.clone())], options.rule, args.max_events);
        bar.finish_and_clear();
        let slice = slices?.swap_remove(0);
        note_version(&session, &store, &system, ui);
        let effort = slice.summary.effort;
        options.plan = Some(PlanSummary {
            engine: engine.text(),
            events_version: session.version(&system).unwrap_or_default(),
            rounds: effort.rounds,
            closed_by: match effort.closed_by {
                ClosedBy::Rounds => "rounds".into(),
                ClosedBy::Driver => "driver".into(),
            },
            fetched: effort.fetched,
            rows_read: effort.counted.rows_read,
            bytes_read: effort.counted.bytes_read,
        });
        options.system = system;
        Ok(slice.files)
    }

    impl EngineName {
        fn text(&self) -> String {
            match self {
                EngineName::Local => "local".into(),
                EngineName::DuckDb => "duckdb".into(),
                EngineName::DataFusion => "datafusion".into(),
                EngineName::Ballista(place) => format!("ballista:{place}"),
                EngineName::Spark(None) => "spark".into(),
                EngineName::Spark(Some(master)) => format!("spark:{master}"),
            }
        }
    }
}

#[cfg(feature = "plans")]
pub use plans::{fetch, on_engine};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_known_by_name() {
        assert_eq!("spark:local[2]".parse(), Ok(EngineName::Spark(Some("local[2]".into()))));
        assert_eq!(
            "spark:spark://host:7077".parse(),
            Ok(EngineName::Spark(Some("spark://host:7077".into())))
        );
        assert_eq!("ballista:host:50050".parse(), Ok(EngineName::Ballista("host:50050".into())));
        assert_eq!("ballista:[::1]:50050".parse(), Ok(EngineName::Ballista("[::1]:50050".into())));
        assert_eq!("duckdb".parse(), Ok(EngineName::DuckDb));
        assert_eq!("duckdb:".parse(), Ok(EngineName::DuckDb), "an empty place is none");
        for bad in [
            "",
            "duck",
            "local:x",
            "duckdb:x",
            "ballista",
            "ballista:",
            "ballista:host",
            "ballista::1",
            "ballista:host:x",
            "ballista:host:65536",
        ] {
            assert!(bad.parse::<EngineName>().is_err(), "{bad}");
        }
    }
}
