//! What may be the name of a recorded system.

use crate::StoreError;

/// Longest name of the folder that a system's partition gets, in bytes; file systems end at 255.
const MAX_FOLDER: usize = 240;

/// Checks that `name` can be a partition of the store.
///
/// Slashes, dots, spaces, `=` and any Unicode letters are fine: the table writes them percent-encoded, so that no
/// name can lead out of the store.
///
/// # Errors
/// When the name is empty, holds control characters, is the mark that tables use for "no value", or would become
/// too long for a folder name once encoded.
pub fn check_system_name(name: &str) -> Result<(), StoreError> {
    let refuse = |why| Err(StoreError::SystemName { name: name.to_owned(), why });
    if name.is_empty() {
        return refuse("it is empty");
    }
    if name.chars().any(char::is_control) {
        return refuse("it holds control characters");
    }
    if name == "__HIVE_DEFAULT_PARTITION__" {
        return refuse("tables use it for 'no value'");
    }
    let encoded: usize = name.bytes().map(|b| if b.is_ascii_alphanumeric() { 1 } else { 3 }).sum();
    if "system=".len() + encoded > MAX_FOLDER {
        return refuse("it is too long for a folder name");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_pass_and_impossible_ones_do_not() {
        for good in ["a", "..", ".", "a/b", "../../etc", "a b", "a=b", "50%", "système-β", "%2F", "-"] {
            assert!(check_system_name(good).is_ok(), "{good}");
        }
        let long = "x".repeat(300);
        for bad in ["", "a\nb", "a\0", "\u{7f}", "__HIVE_DEFAULT_PARTITION__", &long, &"β".repeat(60)] {
            assert!(check_system_name(bad).is_err(), "{bad:?}");
        }
    }
}
