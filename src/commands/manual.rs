//! `demi-lineage completions` and `demi-lineage man`: what shells and `man` know of the command line.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::{PossibleValue, PossibleValuesParser};
use demi_commands::examples;
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

/// Writes the page of a command, and those of the commands within it.
fn write_pages(command: &clap::Command, within: Option<&clap::Command>, out: &Path) -> std::io::Result<()> {
    let shown = || command.get_subcommands().filter(|sub| !sub.is_hide_set());
    for sub in shown() {
        write_pages(sub, Some(command), out)?;
    }
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    let mut text = String::from_utf8_lossy(&text).into_owned();
    let mut more = String::new();
    let name = display_name(command);
    let words = name.strip_prefix(NAME).unwrap_or(&name).trim_start_matches('-').to_owned();
    // A name of two words has a hyphen of its own: the words are those of the command line.
    let path = within.map_or_else(
        || words.clone(),
        |within| match display_name(within).strip_prefix(NAME) {
            Some("") | None => command.get_name().to_owned(),
            Some(group) => format!("{} {}", group.trim_start_matches('-'), command.get_name()),
        },
    );
    let examples = examples::of(&path);
    if !examples.is_empty() {
        more.push_str(".SH EXAMPLES\n");
        for (line, what) in examples {
            more.push_str(&format!(".TP\n{}\n{}\n", bold(&format!("{NAME} {line}")), roff(what)));
        }
    }
    let beside =
        within.map(|within| within.get_subcommands().filter(|sub| !sub.is_hide_set())).into_iter().flatten();
    let mut others: Vec<String> = within.map(display_name).into_iter().collect();
    others.extend(shown().map(display_name));
    // The commands beside one of a group; those beside a command of the program are on the page of the program.
    others.extend(
        beside.filter(|_| within.is_some_and(|within| display_name(within) != NAME)).map(display_name),
    );
    others.retain(|other| *other != name);
    others.sort();
    others.dedup();
    if !others.is_empty() {
        let names: Vec<String> = others.iter().map(|other| format!("\\fB{}\\fR(1)", roff(other))).collect();
        more.push_str(&format!(".SH \"SEE ALSO\"\n{}\n", names.join(", ")));
    }
    let at = text.find("\n.SH VERSION").map_or(text.len(), |at| at + 1);
    text.insert_str(at, &more);
    std::fs::write(out.join(page.get_filename()), text)
}

/// The name of a command's page.
fn display_name(command: &clap::Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

fn bold(text: &str) -> String {
    format!("\\fB{}\\fR", roff(text))
}

/// A text as it stands: nothing in it means anything to roff.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}

/// Writes the pages.
pub fn man(args: &ManArgs, cli: clap::Command, ui: &Ui) -> Outcome {
    let at = |e: std::io::Error| format!("{}: {e}", args.out.display());
    std::fs::create_dir_all(&args.out).map_err(at)?;
    let mut cli = cli.disable_help_subcommand(true);
    cli.build();
    write_pages(&cli, None, &args.out).map_err(at)?;
    ui.result(&format!(
        "wrote the pages to {}; read one with: man -l {}",
        args.out.display(),
        args.out.join("demi-lineage.1").display()
    ));
    Ok(ExitCode::SUCCESS)
}
