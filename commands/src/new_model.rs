//! `demi-lineage new-model`: a project with a model to start from.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use demi_common::{FolderError, durable};

use crate::Outcome;
use crate::files::write_files;
use crate::ui::Ui;

/// In which language a model is written.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// A crate with the library `demi-lineage`: a program with the commands that need a model.
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
    /// The new folder; by default the project's name, in the present folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Where the libraries come from: a checkout of demi-lineage, or the address of its Git repository.
    #[arg(long, value_name = "DIR|URL", default_value = env!("CARGO_PKG_REPOSITORY"))]
    source: String,
}

/// A name that is a crate's, a folder's and a model's at once.
fn checked_name(name: &str) -> Result<String, String> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(good) || name.len() > 64 {
        return Err("a name has at most 64 letters, digits, '-' and '_', and begins with a letter".into());
    }
    if RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(format!("'{name}' is a word of the language or a crate that the project needs"));
    }
    Ok(name.to_owned())
}

/// Names that no crate of one's own can have here: the library itself, what Cargo makes, and words of Rust.
const RESERVED: [&str; 48] = [
    "demi-lineage",
    "demi_lineage",
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
    let files = project(args.language, &args.name, &Source::of(&args.source)?);
    write_new(&out, &files)?;
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
    fn of(source: &str) -> Result<Source, String> {
        if source.contains("://") || source.starts_with("git@") {
            return Ok(Source::Git(source.to_owned()));
        }
        let path = Path::new(source).canonicalize().map_err(|e| format!("{source}: {e}"))?;
        if !path.join("commands/Cargo.toml").is_file() {
            return Err(format!("{source} is no checkout of demi-lineage: it has no commands/Cargo.toml"));
        }
        path.into_os_string()
            .into_string()
            .map(Source::Checkout)
            .map_err(|_| format!("{source} is no UTF-8 path"))
    }

    /// What stands behind `demi-lineage =` in the manifest.
    fn dependency(&self) -> String {
        match self {
            Source::Checkout(path) => format!("{{ path = {} }}", toml_text(&format!("{path}/commands"))),
            Source::Git(url) => format!("{{ git = {} }}", toml_text(url)),
        }
    }

    /// What stands behind `pip install`.
    fn sdk(&self) -> String {
        match self {
            Source::Checkout(path) => format!("{path}/sdk/python"),
            Source::Git(url) => format!("\"git+{url}#subdirectory=sdk/python\""),
        }
    }

    /// What stands behind `"demi-model":` in a package of Node. NPM takes no folder of a repository.
    fn js(&self) -> String {
        let place = match self {
            Source::Checkout(path) => format!("file:{path}/sdk/js"),
            Source::Git(_) => "*".to_owned(),
        };
        serde_json::Value::from(place).to_string()
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

/// The files of a project: path and text.
fn project(language: Language, name: &str, source: &Source) -> Vec<(&'static str, String)> {
    let scenario = include_str!("../templates/scenario.toml");
    let (model, files): (String, &[(&'static str, &str)]) = match language {
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
        ),
        Language::Python => (
            "{ command = [\"python3\", \"model.py\"] }".to_owned(),
            &[
                (".gitignore", "__pycache__\n/found\n/min\n"),
                ("README.md", include_str!("../templates/python/README.md")),
                ("model.py", include_str!("../templates/python/model.py")),
                ("test_model.py", include_str!("../templates/python/test_model.py")),
            ],
        ),
    };
    let filled = |text: &str| {
        text.replace("{{name}}", name)
            .replace("{{crate}}", &name.replace('-', "_"))
            .replace("{{model}}", &model)
            .replace("{{dependency}}", &source.dependency())
            .replace("{{sdk}}", &source.sdk())
            .replace("{{js}}", &source.js())
            .replace("{{guide}}", source.place())
    };
    let all = files.iter().copied().chain([("scenario.toml", scenario)]);
    all.map(|(path, text)| (path, filled(text))).collect()
}
