//! The scripts of `completions`, each in its own shell.

use std::path::Path;
use std::process::Command;

/// What is typed, and what one of the proposals must be.
const TYPED: [(&str, &str); 10] = [
    ("qu", "query"),
    ("query --sy", "--system"),
    ("ingest lo", "load"),
    ("ingest load --sto", "--store"),
    ("export --format gra", "graphml"),
    ("query exec check --states pai", "pairs"),
    ("query exec past --js", "--json"),
    ("infer --states gro", "ground"),
    ("query exec fi", "find"),
    ("export --format merg", "merged-log"),
];

/// Writes the script of a shell, and gives its path; nothing where there is no such shell.
fn script(folder: &Path, shell: &str) -> Option<String> {
    if Command::new(shell).args(["-c", "exit 0"]).output().is_err() {
        eprintln!("skipped: there is no {shell}");
        return None;
    }
    let output = assert_cmd::Command::cargo_bin("demi-lineage")
        .unwrap()
        .args(["completions", shell])
        .output()
        .unwrap();
    assert!(output.status.success());
    let path = folder.join(format!("script.{shell}"));
    std::fs::write(&path, output.stdout).unwrap();
    Some(path.to_str().unwrap().to_owned())
}

/// Runs a shell, which has nothing to complain of.
fn said(shell: &str, args: &[&str], folder: &Path) -> String {
    let output = Command::new(shell).args(args).env("HOME", folder).current_dir(folder).output().unwrap();
    let (text, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && error.is_empty(), "{shell}: {text}{error}");
    text.into_owned()
}

#[test]
fn bash_completes_every_word() {
    let folder = tempfile::tempdir().unwrap();
    let Some(script) = script(folder.path(), "bash") else { return };
    for (typed, expected) in TYPED {
        let program = format!(
            "source {script}\nCOMP_WORDS=(demi-lineage {typed})\nCOMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))\n\
             function=$(complete -p demi-lineage | sed 's/.*-F \\([^ ]*\\).*/\\1/')\n\
             $function demi-lineage \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"\n\
             printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let told = said("bash", &["--norc", "-c", &program], folder.path());
        assert!(told.lines().any(|line| line == expected), "{typed}: {told}");
    }
}

#[test]
fn fish_completes_every_word() {
    let folder = tempfile::tempdir().unwrap();
    let Some(script) = script(folder.path(), "fish") else { return };
    for (typed, expected) in TYPED {
        let program = format!("source {script}; complete -C 'demi-lineage {typed}'");
        let told = said("fish", &["--no-config", "-c", &program], folder.path());
        assert!(told.lines().any(|line| line.split('\t').next() == Some(expected)), "{typed}: {told}");
    }
}

#[test]
fn zsh_completes_every_word() {
    let folder = tempfile::tempdir().unwrap();
    let Some(script) = script(folder.path(), "zsh") else { return };
    // Zsh completes where somebody types: in a terminal.
    let typed: String =
        TYPED.iter().map(|(typed, expected)| format!("try 'demi-lineage {typed}' '{expected}'\n")).collect();
    let program = format!(
        "zmodload zsh/zpty\nzpty z zsh -f -i\n\
         zpty -w z 'stty -echo; autoload -U compinit; compinit -u -D; source {script}; PS1=; echo RE''ADY'\n\
         zpty -r -m z out '*READY*'\n\
         try() {{\n  local all= part\n  zpty -w -n z \"$1\"$'\\t'\n  for i in {{1..200}}; do\n    \
         while zpty -r -t z part; do all+=$part; done\n    [[ $all == *\"${{1% *}} $2\"* ]] && break\n    sleep 0.05\n  done\n  \
         [[ $all == *\"${{1% *}} $2\"* ]] && print -r -- \"done $2\" || print -r -- \"$1: ${{(q)all}}\"\n  \
         zpty -w -n z $'\\C-u'\n}}\n{typed}zpty -d z\n"
    );
    let told = said("zsh", &["-f", "-c", &program], folder.path());
    let expected: Vec<String> = TYPED.iter().map(|(_, expected)| format!("done {expected}")).collect();
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
}
