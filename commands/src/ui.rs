//! Standard output carries data, standard error carries messages and progress.

#![expect(clippy::print_stderr, reason = "this is the one place that prints")]

use std::error::Error;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

/// Arguments of every command.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct UiArgs {
    /// No progress and no notes on standard error; errors are still shown.
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// The name of the program that runs: `demi-lineage`, or that of a program with models of its own.
pub fn program() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    path.file_stem().map_or_else(|| "demi-lineage".into(), |name| name.to_string_lossy().into_owned())
}

/// Where a command writes.
pub struct Ui {
    quiet: bool,
}

impl Ui {
    /// From the arguments of the command line.
    pub fn new(args: &UiArgs) -> Self {
        Ui { quiet: args.quiet }
    }

    /// A result for people, on standard output. A closed pipe is no error.
    pub fn result(&self, text: &str) {
        let _ = writeln!(std::io::stdout().lock(), "{text}");
    }

    /// For work within other work: nothing is shown but results and errors.
    #[must_use]
    pub fn silent() -> Ui {
        Ui { quiet: true }
    }

    /// A result for machines, on standard output.
    pub fn json<T: Serialize>(&self, value: &T) -> Result<(), serde_json::Error> {
        let text = serde_json::to_string_pretty(value)?;
        self.result(&text);
        Ok(())
    }

    /// A note on standard error.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            eprintln!("{text}");
        }
    }

    /// An error and its causes on standard error.
    pub fn error(&self, error: &dyn Error) {
        let mut text = format!("error: {error}");
        let mut last = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            if !last.contains(&cause_text) {
                text.push_str(&format!("\n  because: {cause_text}"));
            }
            last = cause_text;
            source = cause.source();
        }
        eprintln!("{text}");
    }

    /// A progress line on standard error; hidden when quiet or when standard error is no terminal.
    pub fn progress(&self) -> ProgressBar {
        if self.quiet || !std::io::stderr().is_terminal() {
            return ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    }
}

/// Says why the program ends at once.
pub fn last_words(text: &str) {
    eprintln!("{text}");
}
