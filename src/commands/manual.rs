//! `demi-lineage completions` and `demi-lineage man`: what shells and `man` know of the command line.

use std::path::PathBuf;
use std::process::ExitCode;

use super::Outcome;
use demi_lineage::ui::Ui;

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
pub fn completions(args: &CompletionsArgs, mut cli: clap::Command) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli, "demi-lineage", &mut script);
    std::io::Write::write_all(&mut std::io::stdout().lock(), &script)?;
    Ok(ExitCode::SUCCESS)
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
