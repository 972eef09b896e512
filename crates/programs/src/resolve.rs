//! Which file a command means: the program itself, not a script that starts it.

use std::path::{Path, PathBuf};

/// How many scripts may stand before a program.
const SCRIPTS: usize = 4;

/// The command that starts the same program without a script in between: names are looked up, `#!` lines are followed, and arguments that
/// are files become absolute, because programs run in folders of their own.
///
/// # Errors
/// When there is no such program, or it is linked statically, so that the shim cannot be loaded into it.
pub fn resolve(command: &[String]) -> Result<Vec<String>, String> {
    let mut words: Vec<String> = command.to_vec();
    for word in words.iter_mut().skip(1) {
        if let Ok(path) = Path::new(word.as_str()).canonicalize()
            && path.is_file()
        {
            path.display().to_string().clone_into(word);
        }
    }
    for _ in 0..SCRIPTS {
        let name = words.first().ok_or("the command is empty")?;
        let path = found(name).ok_or_else(|| format!("there is no program '{name}'"))?;
        let bytes = head(&path)?;
        if bytes.starts_with(b"\x7fELF") {
            if !is_dynamic(&path)? {
                return Err(format!(
                    "{} is linked statically, as Go programs are: such a program reads clocks and sleeps by itself, so it cannot be \
                     scheduled yet",
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

/// A runtime that makes random numbers of its own gets a seed for them.
pub(crate) fn seeded(mut words: Vec<String>, seed: u64) -> Vec<String> {
    let name =
        Path::new(&words[0]).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if name == "node" || name == "nodejs" {
        let seed = seed % 1_000_000 + 1;
        words.splice(
            1..1,
            [format!("--random-seed={seed}"), format!("--hash-seed={seed}"), "--single-threaded-gc".into()],
        );
    }
    words
}

/// The file of a name: programs before scripts of the same name, which version managers put in front of them.
fn found(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Path::new(name).canonicalize().ok().filter(|path| path.is_file());
    }
    let folders = std::env::var_os("PATH")?;
    let all: Vec<PathBuf> = std::env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .filter(|path| path.is_file())
        .collect();
    let program = all.iter().find(|path| head(path).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF")));
    program.or(all.first()).cloned()
}

fn head(path: &Path) -> Result<Vec<u8>, String> {
    use std::io::Read;
    let file = std::fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut bytes = Vec::new();
    file.take(4096).read_to_end(&mut bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(bytes)
}

/// Whether a program for 64 bits names a dynamic linker, which loads the shim.
fn is_dynamic(path: &Path) -> Result<bool, String> {
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
        let mut entries = (0..count).map(|entry| number(table.checked_add(entry * size)?, 4));
        Some(entries.any(|kind| kind == Some(u64::from(INTERPRETER))))
    };
    found().ok_or_else(|| format!("{} is no whole program", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
