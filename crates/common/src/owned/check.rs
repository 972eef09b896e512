//! Whether a folder may be replaced.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{FolderError, Kind, MARKER, MARKER_VERSION, Marker};
use crate::regular;

/// Checks that `out` may be replaced by a folder of this kind: it is absent, empty, or was written by this program and
/// holds nothing else, and none of `inputs` lies in it.
///
/// # Errors
/// Why it may not.
pub fn check(out: &Path, kind: Kind, inputs: &[&Path]) -> Result<(), FolderError> {
    let place = real(out);
    if let Some(input) = inputs.iter().find(|input| real(input).starts_with(&place)) {
        return Err(FolderError::Input { path: out.to_owned(), input: input.to_path_buf() });
    }
    match std::fs::metadata(out) {
        Ok(found) if !found.is_dir() => return Err(FolderError::NoFolder(out.to_owned())),
        Ok(_) => {}
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(FolderError::io(out)(e)),
    }
    let text = match regular::read(&out.join(MARKER)) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let mut entries = std::fs::read_dir(out).map_err(FolderError::io(out))?;
            return match entries.next() {
                None => Ok(()),
                Some(entry) => {
                    let name = entry.map_err(FolderError::io(out))?.file_name();
                    let example = name.to_string_lossy().into_owned();
                    Err(FolderError::Unmarked { path: out.to_owned(), example })
                }
            };
        }
        Err(e) => return Err(FolderError::io(&out.join(MARKER))(e)),
    };
    let marker = understood(&text).map_err(|why| FolderError::OtherMarker { path: out.to_owned(), why })?;
    if marker.kind != kind {
        return Err(FolderError::OtherKind { path: out.to_owned(), there: marker.kind, new: kind });
    }
    match foreign_in(out, &marker)? {
        Some(file) => Err(FolderError::Foreign { path: out.to_owned(), file }),
        None => Ok(()),
    }
}

/// Whether a folder is of that kind and has all files that were written to it.
#[must_use]
pub fn is_whole(folder: &Path, kind: Kind) -> bool {
    let marker = regular::read(&folder.join(MARKER)).ok().and_then(|text| understood(&text).ok());
    marker.is_some_and(|marker| {
        let mut listed = marker.files.iter().filter(|file| !file.ends_with('/'));
        marker.kind == kind && listed.all(|file| folder.join(file).is_file())
    })
}

/// A file in the folder, or in a folder in it with a marker of its own, that was not written by this program.
fn foreign_in(folder: &Path, marker: &Marker) -> Result<Option<String>, FolderError> {
    let known: BTreeSet<&str> = marker.files.iter().map(String::as_str).collect();
    let mut inner: Vec<(String, Marker)> = Vec::new();
    for file in files_in(folder)? {
        let within = inner.iter().find_map(|(at, marker)| Some((file.strip_prefix(at.as_str())?, marker)));
        let (name, known, kind) = match within {
            Some((name, marker)) => (name, marker.files.iter().any(|known| known == name), marker.kind),
            None => (file.as_str(), known.contains(file.as_str()), marker.kind),
        };
        if known || kind.is_later(name) {
            continue;
        }
        // The marker of a folder comes before its other files.
        if let Some(at) = name.strip_suffix(MARKER)
            && let Some(inside) =
                regular::read(&folder.join(&file)).ok().and_then(|text| understood(&text).ok())
        {
            inner.insert(0, (format!("{}{at}", file.strip_suffix(name).unwrap_or_default()), inside));
            continue;
        }
        return Ok(Some(file));
    }
    Ok(None)
}

fn understood(text: &[u8]) -> Result<Marker, String> {
    let value: serde_json::Value =
        serde_json::from_slice(text).map_err(|e| format!("cannot be read ({e})"))?;
    match value["version"].as_u64() {
        Some(version) if version == u64::from(MARKER_VERSION) => {}
        Some(version) => {
            return Err(format!("has version {version}, this program understands {MARKER_VERSION}"));
        }
        None => return Err("names no version".to_owned()),
    }
    serde_json::from_value(value).map_err(|e| format!("cannot be read ({e})"))
}

/// All files in a folder but its marker, from the folder on, in order, the markers of folders in it first. Links are not followed.
pub(super) fn files_in(folder: &Path) -> Result<Vec<String>, FolderError> {
    let mut files = Vec::new();
    let mut folders = vec![(folder.to_owned(), String::new())];
    while let Some((at, prefix)) = folders.pop() {
        for entry in std::fs::read_dir(&at).map_err(FolderError::io(&at))? {
            let entry = entry.map_err(FolderError::io(&at))?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let kind = entry.file_type().map_err(FolderError::io(&entry.path()))?;
            if kind.is_dir() {
                folders.push((entry.path(), format!("{name}/")));
            } else if name != MARKER {
                files.push(name);
            }
        }
    }
    files.sort_by_cached_key(|file| (!file.ends_with(MARKER), file.clone()));
    Ok(files)
}

/// The path without links and dots, as far as it is there.
fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut rest = PathBuf::new();
    for ancestor in path.ancestors() {
        if let Ok(found) = ancestor.canonicalize() {
            rest = path.strip_prefix(ancestor).map(Path::to_owned).unwrap_or(rest);
            return if rest.as_os_str().is_empty() { found } else { found.join(rest) };
        }
    }
    path
}
