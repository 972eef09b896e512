//! `demi-lineage new-model`: a project with a model to start from.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use demi_common::{FolderError, durable};

use crate::Outcome;
use crate::files::{read_scenario, write_files};
use crate::permission;
use crate::ui::Ui;

/// In which language a model is written.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// A crate with the library `demi-commands`: a program with the commands that need a model.
    Rust,
    /// A program that `demi-lineage` starts and asks.
    Python,
    /// The same for Node.
    #[value(name = "javascript")]
    JavaScript,
}

/// Arguments of `new-model`.
#[derive(clap::Args, Debug)]
pub struct NewModelArgs {
    /// The project's name: letters, digits, '-' and '_', beginning with a letter. It is the model's name too.
    #[arg(value_name = "NAME", value_parser = checked_name)]
    name: String,
    /// The language of the model.
    #[arg(long, value_enum, default_value_t = Language::Rust)]
    language: Language,
    /// The new folder; the default is the project's name, in the current folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// For Rust: where the libraries come from, a checkout of demi-lineage or the address of its Git repository; by default the checkout
    /// that this program was built in. In Python and JavaScript the project carries what it needs.
    #[arg(long, value_name = "DIR|URL")]
    source: Option<String>,
}

/// A name that is a crate's, a folder's and a model's at once.
pub(crate) fn checked_name(name: &str) -> Result<String, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(good) || name.len() > 64 {
        return Err("a name has at most 64 letters, digits, '-' and '_', and begins with a letter".into());
    }
    let lower = name.to_ascii_lowercase();
    // Two packages of one name and version do not fit into a lock file.
    if lower.starts_with("demi-") || lower.starts_with("demi_") {
        return Err(format!("'{name}' begins as the crates do that the project needs"));
    }
    if RESERVED.contains(&lower.as_str()) {
        return Err(format!("'{name}' is a word of the language or a crate that the project needs"));
    }
    Ok(name.to_owned())
}

/// Names that no crate of one's own can have here: what Cargo makes, and words of Rust.
const RESERVED: [&str; 46] = [
    "proptest",
    "test",
    "core",
    "std",
    "alloc",
    "build",
    "deps",
    "examples",
    "incremental",
    "as",
    "async",
    "await",
    "break",
    "const",
    "continue",
    "crate",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "fn",
    "for",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "match",
    "mod",
    "move",
    "mut",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "struct",
    "super",
    "trait",
    "true",
    "type",
    "unsafe",
    "use",
    "where",
    "while",
];

/// Runs the command.
pub fn run(args: &NewModelArgs, ui: &Ui) -> Outcome {
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(&args.name));
    let source = args.source.as_deref().map(Source::of).transpose()?;
    let source = match (source, args.language) {
        (None, Language::Rust) => Some(Source::built_in()?),
        (source, _) => source,
    };
    let files = project(args.language, &args.name, source.as_ref());
    write_new(&out, &files)?;
    if let Ok(scenario) = read_scenario(&out.join("scenario.toml")) {
        permission::wrote_project(&out, &scenario, ui);
    }
    ui.result(&format!(
        "wrote {}\nread {} for what to do next",
        out.display(),
        out.join("README.md").display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Writes a folder that was not there, or was empty: it appears when it is complete. Whatever is there is somebody's work.
fn write_new(out: &Path, files: &[(&str, String)]) -> Result<(), String> {
    if std::fs::symlink_metadata(out).is_ok() {
        let empty = std::fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_none());
        if !empty {
            return Err(format!(
                "{} is there already; it is left alone: name another folder with --out",
                out.display()
            ));
        }
    }
    let stage = durable::folder_of(out).join(format!(".demi-new-model-{}", std::process::id()));
    let fill = || -> Result<(), FolderError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| FolderError::Io { path, source }
        };
        std::fs::create_dir_all(&stage).map_err(io(&stage))?;
        write_files(&stage, files)?;
        durable::sync_tree(&stage).map_err(io(&stage))?;
        std::fs::rename(&stage, out).map_err(io(out))?;
        durable::sync_folder(durable::folder_of(out)).map_err(io(out))
    };
    fill().map_err(|error| {
        // The project is incomplete; what remains of it is of no use to anybody.
        let _ = std::fs::remove_dir_all(&stage);
        error.to_string()
    })
}

/// Where the libraries come from.
enum Source {
    /// A checkout, by its full path.
    Checkout(String),
    /// A Git repository.
    Git(String),
}

impl Source {
    /// The checkout that this program was built in.
    fn built_in() -> Result<Source, String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("/"));
        let known = Source::of(&folder.display().to_string());
        known.map_err(|_| {
            "the project needs the libraries of demi-lineage, which no registry has, and the checkout that this program was built in is \
             gone: name one with --source DIR"
                .to_owned()
        })
    }

    fn of(source: &str) -> Result<Source, String> {
        if source.chars().any(char::is_control) {
            return Err("the source has control characters in its name".to_owned());
        }
        if source.contains("://") || source.starts_with("git@") {
            return Ok(Source::Git(source.to_owned()));
        }
        let path = Path::new(source).canonicalize().map_err(|e| format!("{source}: {e}"))?;
        if !path.join("crates/commands/Cargo.toml").is_file() {
            return Err(format!(
                "{source} is no checkout of demi-lineage: it has no crates/commands/Cargo.toml"
            ));
        }
        path.into_os_string()
            .into_string()
            .map(Source::Checkout)
            .map_err(|_| format!("{source} is no UTF-8 path"))
    }

    /// What stands behind `demi-commands =` in the manifest.
    fn dependency(&self) -> String {
        match self {
            Source::Checkout(path) => {
                format!("{{ path = {} }}", toml_text(&format!("{path}/crates/commands")))
            }
            Source::Git(url) => format!("{{ git = {} }}", toml_text(url)),
        }
    }

    fn place(&self) -> &str {
        match self {
            Source::Checkout(place) | Source::Git(place) => place,
        }
    }
}

fn toml_text(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// What a project in Python carries.
const PYTHON_SDK: [(&str, &str); 6] = [
    ("demi_model/__init__.py", include_str!("../../../sdk/python/demi_model/__init__.py")),
    ("demi_model/logging.py", include_str!("../../../sdk/python/demi_model/logging.py")),
    ("demi_model/model.py", include_str!("../../../sdk/python/demi_model/model.py")),
    ("demi_model/protocol.py", include_str!("../../../sdk/python/demi_model/protocol.py")),
    ("demi_model/py.typed", include_str!("../../../sdk/python/demi_model/py.typed")),
    ("demi_model/testing.py", include_str!("../../../sdk/python/demi_model/testing.py")),
];

/// What a project in JavaScript carries.
const JS_SDK: [(&str, &str); 7] = [
    ("demi-model/index.d.ts", include_str!("../../../sdk/js/index.d.ts")),
    ("demi-model/index.js", include_str!("../../../sdk/js/index.js")),
    ("demi-model/logging.d.ts", include_str!("../../../sdk/js/logging.d.ts")),
    ("demi-model/logging.js", include_str!("../../../sdk/js/logging.js")),
    ("demi-model/package.json", include_str!("../../../sdk/js/package.json")),
    ("demi-model/testing.d.ts", include_str!("../../../sdk/js/testing.d.ts")),
    ("demi-model/testing.js", include_str!("../../../sdk/js/testing.js")),
];

/// The files of a project: path and text.
fn project(language: Language, name: &str, source: Option<&Source>) -> Vec<(&'static str, String)> {
    let scenario = include_str!("../templates/scenario.toml");
    type Files<'a> = &'a [(&'static str, &'static str)];
    let (model, files, carried): (String, Files<'_>, Files<'_>) = match language {
        Language::Rust => (
            toml_text(name),
            &[
                ("Cargo.toml", include_str!("../templates/rust/Cargo.toml.in")),
                (".gitignore", "/target\n/found\n/min\n"),
                ("README.md", include_str!("../templates/rust/README.md")),
                ("src/lib.rs", include_str!("../templates/rust/src/lib.rs")),
                ("src/main.rs", include_str!("../templates/rust/src/main.rs")),
                ("tests/model.rs", include_str!("../templates/rust/tests/model.rs")),
            ],
            &[],
        ),
        Language::JavaScript => (
            "{ command = [\"node\", \"model.js\"] }".to_owned(),
            &[
                (".gitignore", "node_modules\n/found\n/min\n"),
                ("README.md", include_str!("../templates/javascript/README.md")),
                ("package.json", include_str!("../templates/javascript/package.json.in")),
                ("model.js", include_str!("../templates/javascript/model.js")),
                ("test/model.test.js", include_str!("../templates/javascript/test/model.test.js")),
            ],
            &JS_SDK,
        ),
        Language::Python => (
            "{ command = [\"python3\", \"model.py\"] }".to_owned(),
            &[
                (".gitignore", "__pycache__\n/found\n/min\n"),
                ("README.md", include_str!("../templates/python/README.md")),
                ("model.py", include_str!("../templates/python/model.py")),
                ("test_model.py", include_str!("../templates/python/test_model.py")),
            ],
            &PYTHON_SDK,
        ),
    };
    let place = source.map_or_else(String::new, |source| format!(" ({})", source.place()));
    let filled = |text: &str| {
        // What comes from outside is put in last, so that nothing is filled into it.
        text.replace("{{name}}", name)
            .replace("{{crate}}", &name.replace('-', "_"))
            .replace("{{model}}", &model)
            .replace("{{dependency}}", &source.map(Source::dependency).unwrap_or_default())
            .replace("{{from}}", &place)
    };
    let all = files.iter().copied().chain([("scenario.toml", scenario)]);
    let own = all.map(|(path, text)| (path, filled(text)));
    own.chain(carried.iter().map(|&(path, text)| (path, text.to_owned()))).collect()
}
