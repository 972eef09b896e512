//! Standard output carries data, standard error carries messages and progress.

#![expect(clippy::print_stderr, reason = "this is the one place that prints")]

use std::borrow::Cow;
use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use demi_common::text::printable_lines;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::out::is_closed;

/// Arguments of every command.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct UiArgs {
    /// Print no progress and no notes on standard error; errors are still shown.
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
    /// Why something could not be written to standard output.
    unwritten: Mutex<Option<io::Error>>,
}

impl Ui {
    /// From the arguments of the command line.
    pub fn new(args: &UiArgs) -> Self {
        Ui { quiet: args.quiet, unwritten: Mutex::default() }
    }

    /// A result for people, on standard output; what would steer a terminal is escaped if it is one.
    pub fn result(&self, text: &str) {
        match io::stdout().is_terminal() {
            true => self.print(&printable_lines(text)),
            false => self.print(text),
        }
    }

    fn print(&self, text: &str) {
        if let Err(error) = writeln!(io::stdout().lock(), "{text}")
            && !is_closed(&error)
        {
            self.unwritten.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }

    /// Why something could not be written to standard output, if there is such a thing. A closed pipe is none.
    pub fn unwritten(&self) -> Option<io::Error> {
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// For work within other work: nothing is shown but results and errors.
    #[must_use]
    pub fn silent() -> Ui {
        Ui { quiet: true, unwritten: Mutex::default() }
    }

    /// A result for machines, on standard output.
    pub fn json<T: Serialize>(&self, value: &T) -> Result<(), serde_json::Error> {
        let text = serde_json::to_string_pretty(value)?;
        match io::stdout().is_terminal() {
            true => self.print(&json_for_terminal(&text)),
            false => self.print(&text),
        }
        Ok(())
    }

    /// A note on standard error.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            eprintln!("{}", printable_lines(text));
        }
    }

    /// A question on standard error; the answer is read where it was asked.
    pub fn ask(&self, question: &str) {
        eprint!("{}", printable_lines(question));
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
        eprintln!("{}", printable_lines(&text));
    }

    /// A progress line on standard error; hidden when quiet or when standard error is no terminal.
    pub fn progress(&self) -> ProgressBar {
        if self.quiet || !io::stderr().is_terminal() {
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

/// JSON with everything escaped that a terminal would obey.
fn json_for_terminal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let mut bytes = [0; 4];
        match matches!(printable_lines(c.encode_utf8(&mut bytes)), Cow::Owned(_)) {
            true => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => out.push(c),
        }
    }
    out
}

/// Says why the program ends at once.
pub fn last_words(text: &str) {
    eprintln!("{}", printable_lines(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_on_a_terminal_is_still_the_same_json() {
        let value = serde_json::json!({"a\u{1b}": "b\u{9b}\u{202e}\u{f6}\n"});
        let text = json_for_terminal(&serde_json::to_string_pretty(&value).unwrap());
        assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}']) && text.contains('\u{f6}'));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
