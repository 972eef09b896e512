//! `demi-lineage completions` and `demi-lineage man`: what shells and `man` know of the command line.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::{PossibleValue, PossibleValuesParser};
use demi_commands::out::stdout;

use super::Outcome;
use demi_commands::ui::Ui;

/// Arguments of `completions`.
#[derive(clap::Args, Debug)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(clap::Args, Debug)]
pub struct ManArgs {
    /// The folder to write the pages to; pages of these names in it are replaced.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Prints the script.
pub fn completions(args: &CompletionsArgs, cli: clap::Command) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut plain(cli), NAME, &mut script);
    let mut script = String::from_utf8(script)?;
    if args.shell == clap_complete::Shell::Bash {
        // The generator takes the hyphen in the name for the border of a command in one of the two places in which it writes it.
        script = script.replace(&NAME.replace('-', "__subcmd__"), &NAME.replace('-', "__"));
    }
    let mut out = stdout();
    out.write_all(script.as_bytes())?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The name of the program.
const NAME: &str = "demi-lineage";

/// The commands with descriptions of values in which nothing means something to a shell: the generator does not quote these.
fn plain(cli: clap::Command) -> clap::Command {
    let plain_arg = |arg: clap::Arg| {
        let values = arg.get_possible_values();
        // Switches have values, too, which nobody types.
        if values.is_empty() || !arg.get_action().takes_values() {
            return arg;
        }
        let value = |value: PossibleValue| {
            let help = value.get_help().map(|help| words(&help.to_string())).unwrap_or_default();
            value.help(help)
        };
        arg.value_parser(PossibleValuesParser::new(values.into_iter().map(value)))
    };
    cli.mut_args(plain_arg).mut_subcommands(plain)
}

fn words(text: &str) -> String {
    let word = |c: char| match c {
        '"' => '\'',
        '$' | '`' | '\\' => ' ',
        c if c.is_control() => ' ',
        c => c,
    };
    text.chars().map(word).collect()
}

/// Writes the pages.
pub fn man(args: &ManArgs, cli: clap::Command, ui: &Ui) -> Outcome {
    let at = |e: std::io::Error| format!("{}: {e}", args.out.display());
    std::fs::create_dir_all(&args.out).map_err(at)?;
    clap_mangen::generate_to(cli.disable_help_subcommand(true), &args.out).map_err(at)?;
    ui.result(&format!(
        "wrote the pages to {}; read one with: man -l {}",
        args.out.display(),
        args.out.join("demi-lineage.1").display()
    ));
    Ok(ExitCode::SUCCESS)
}
