//! Which file a command means: the program itself, not a script that starts it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// How many scripts may stand before a program.
const SCRIPTS: usize = 4;
/// Options of Java's whose value is a list of files and folders.
const CLASS_PATHS: [&str; 5] = ["-cp", "-classpath", "--class-path", "-p", "--module-path"];

/// The path from the root on, where there is such a file or folder; `dir/*` means all archives in it, which stays.
fn absolute(path: &str) -> String {
    let (folder, all) = path.strip_suffix('*').map_or((path, ""), |folder| (folder, "/*"));
    let whole = Path::new(if folder.is_empty() { "." } else { folder }).canonicalize();
    whole.map_or_else(|_| path.to_owned(), |whole| format!("{}{all}", whole.display()))
}

/// The command that starts the same program without a script in between: names are looked up, `#!` lines are followed, and arguments that
/// are files become absolute, because programs run in folders of their own.
///
/// # Errors
/// When there is no such program, or it loads no GNU C library and this is no x86-64.
pub fn resolve(command: &[String]) -> Result<Vec<String>, String> {
    let mut words: Vec<String> = command.to_vec();
    let is_java = words.first().is_some_and(|name| name == "java" || name.ends_with("/java"));
    let mut is_class_path = false;
    for word in words.iter_mut().skip(1) {
        if is_class_path {
            *word = word.split(':').map(absolute).collect::<Vec<_>>().join(":");
        } else if Path::new(word.as_str()).is_file() {
            *word = absolute(word);
        }
        is_class_path = is_java && CLASS_PATHS.contains(&word.as_str());
    }
    for _ in 0..SCRIPTS {
        let name = words.first().ok_or("the command is empty")?;
        let path = found(name).ok_or_else(|| format!("there is no program '{name}'"))?;
        let bytes = head(&path)?;
        if bytes.starts_with(b"\x7fELF") {
            if !loads_shim(&path)? && !cfg!(target_arch = "x86_64") {
                return Err(format!(
                    "{} is linked statically, as Go programs are, or to another C library than GNU's: such a program can be scheduled on x86-64 only",
                    path.display()
                ));
            }
            words[0] = path.display().to_string();
            return Ok(words);
        }
        let Some(rest) = bytes.strip_prefix(b"#!") else {
            return Err(format!("{} is neither a program nor a script with '#!'", path.display()));
        };
        let line = String::from_utf8_lossy(rest.split(|&byte| byte == b'\n').next().unwrap_or_default())
            .into_owned();
        let mut interpreter: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        if interpreter.first().is_some_and(|first| first.ends_with("/env")) {
            interpreter.remove(0);
            interpreter.retain(|word| word != "-S");
        }
        if interpreter.is_empty() {
            return Err(format!("the first line of {} names no interpreter", path.display()));
        }
        words[0] = path.display().to_string();
        words.splice(0..0, interpreter);
    }
    Err("more than four scripts start each other".into())
}

/// The same command with what keeps its runtime from telling processes apart: a seed, where it makes random numbers of its own.
pub(crate) fn seeded(mut words: Vec<String>, seed: u64) -> Vec<String> {
    let name =
        Path::new(&words[0]).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if name == "java" {
        // Its figures stand in a file that is named after the process, and processes here have all the same number.
        words.insert(1, "-XX:-UsePerfData".into());
    }
    if name == "node" || name == "nodejs" {
        let seed = seed % 1_000_000 + 1;
        words.splice(
            1..1,
            [format!("--random-seed={seed}"), format!("--hash-seed={seed}"), "--single-threaded-gc".into()],
        );
    }
    words
}

/// The file of a name: of interpreters that a version manager put a script in front of, the one that the script starts; else programs before scripts of
/// the same name.
fn found(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        // Links are not followed: a virtual environment knows its programs by theirs.
        return std::path::absolute(name).ok().filter(|path| path.is_file());
    }
    let folders = std::env::var_os("PATH")?;
    let all: Vec<PathBuf> = std::env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .filter(|path| path.is_file())
        .collect();
    let is_program = |path: &Path| head(path).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF"));
    let first = all.first()?;
    // A script of that name, which a version manager put in front, knows which one it starts.
    let meant = if is_program(first) { None } else { itself(name, first).filter(|path| is_program(path)) };
    let program = meant.or_else(|| all.iter().find(|path| is_program(path)).cloned());
    program.or_else(|| all.first().cloned())
}

/// What an interpreter says of where it stands, where it is one that is known.
fn itself(name: &str, program: &Path) -> Option<PathBuf> {
    const ASKED: [(&str, &[&str]); 3] = [
        ("python", &["-c", "import sys; print(sys.executable)"]),
        ("node", &["-p", "process.execPath"]),
        ("ruby", &["-e", "puts RbConfig.ruby"]),
    ];
    // Another program whose name begins so is never run with these words.
    let is_version = |rest: &str| rest == "js" || rest.chars().all(|c| c.is_ascii_digit() || c == '.');
    let (_, question) = ASKED.iter().find(|(known, _)| name.strip_prefix(known).is_some_and(is_version))?;
    // Such scripts take their time.
    static TOLD: Mutex<BTreeMap<PathBuf, Option<PathBuf>>> = Mutex::new(BTreeMap::new());
    let mut known = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    let ask = || {
        let told = Command::new(program).args(*question).stdin(Stdio::null()).output().ok()?;
        let path = PathBuf::from(String::from_utf8(told.stdout).ok()?.trim());
        path.is_absolute().then_some(path)
    };
    known.entry(program.to_owned()).or_insert_with(ask).clone()
}

fn head(path: &Path) -> Result<Vec<u8>, String> {
    use std::io::Read;
    let file = std::fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut bytes = Vec::new();
    file.take(4096).read_to_end(&mut bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(bytes)
}

/// Whether a program is linked statically, or to another C library: it loads no shim, so it is loaded itself into a process that did.
pub(crate) fn is_strange(program: &str) -> bool {
    loads_shim(Path::new(program)).is_ok_and(|loads_shim| !loads_shim)
}

/// Whether a program for 64 bits names the dynamic linker of the GNU C library, which loads the shim.
fn loads_shim(path: &Path) -> Result<bool, String> {
    const INTERPRETER: u32 = 3;
    let bytes = head(path)?;
    let number = |at: usize, length: usize| -> Option<u64> {
        let part = bytes.get(at..at + length)?;
        Some(part.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
    };
    let found = || -> Option<bool> {
        if *bytes.get(4)? != 2 {
            return Some(false);
        }
        let (table, size, count) =
            (number(32, 8)? as usize, number(54, 2)? as usize, number(56, 2)? as usize);
        let entry = |entry: usize, at: usize, length: usize| {
            number(table.checked_add(entry * size)?.checked_add(at)?, length)
        };
        let named = (0..count).find(|at| entry(*at, 0, 4) == Some(u64::from(INTERPRETER)));
        let Some(named) = named else { return Some(false) };
        // Where its name lies, and how long it is. One that is not in the beginning is taken for the usual.
        let (from, length) = (entry(named, 8, 8)? as usize, entry(named, 32, 8)? as usize);
        let name = bytes.get(from..from.saturating_add(length));
        Some(name.is_none_or(|name| String::from_utf8_lossy(name).contains("/ld-linux")))
    };
    found().ok_or_else(|| format!("{} is no whole program", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_java_is_given_is_found_from_other_folders() {
        let words: Vec<String> = ["java", "-cp", "src:nothing-there:src/*:", "src"].map(str::to_owned).into();
        let Ok(found) = resolve(&words) else { return };
        let here = std::env::current_dir().unwrap();
        let (here, src) = (here.display(), here.join("src"));
        let src = src.display();
        assert_eq!(found[1..], ["-cp".into(), format!("{src}:nothing-there:{src}/*:{here}"), "src".into()]);
        assert_eq!(seeded(found, 1)[1], "-XX:-UsePerfData");
    }

    #[test]
    fn a_virtual_environment_keeps_its_python() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("python3");
        let Some(python) = found("python3") else { return };
        std::os::unix::fs::symlink(python, &link).unwrap();
        assert_eq!(resolve(&[link.display().to_string()]).unwrap()[0], link.display().to_string());
        // A script that starts a program is asked for it.
        let script = folder.path().join("python9");
        std::fs::write(&script, format!("#!/bin/sh\nexec {} \"$@\"\n", link.display())).unwrap();
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        assert!(itself("python9", &script).is_some_and(|path| path.is_absolute()));
        for other in ["another", "python-app", "nodemon"] {
            assert_eq!(itself(other, &script), None);
        }
    }

    #[test]
    fn scripts_are_followed_to_their_program() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("node.sh");
        std::fs::write(&script, "#!/usr/bin/env -S sh -e\nexit 0\n").unwrap();
        let found = resolve(&[script.display().to_string(), "x".into()]).unwrap();
        assert!(found[0].starts_with('/') && found[0].contains("sh"), "{found:?}");
        assert_eq!(found[1], "-e");
        assert_eq!(found[3], "x");
        assert!(resolve(&["no-such-program-anywhere".into()]).is_err());
        std::fs::write(&script, "just text").unwrap();
        assert!(resolve(&[script.display().to_string()]).unwrap_err().contains("neither"));
        std::fs::write(&script, b"\x7fELF").unwrap();
        assert!(resolve(&[script.display().to_string()]).unwrap_err().contains("no whole program"));
    }
}
