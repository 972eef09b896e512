//! A value of the program as JSON text, made only where it is written.

use std::fmt;

use serde::Serialize;

/// Shows a value as JSON. One that cannot be JSON is shown as an object whose member `demi_log.error` says why.
#[derive(Clone, Copy, Debug)]
pub struct AsJson<'a, T: ?Sized>(pub &'a T);

impl<T: Serialize + ?Sized> fmt::Display for AsJson<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match serde_json::to_string(self.0) {
            Ok(text) => f.write_str(&text),
            Err(error) => write!(f, "{}", serde_json::json!({ "demi_log.error": error.to_string() })),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn what_is_no_json_says_why() {
        assert_eq!(AsJson(&[1, 2]).to_string(), "[1,2]");
        let keys = BTreeMap::from([((1, 2), 3)]);
        assert_eq!(AsJson(&keys).to_string(), r#"{"demi_log.error":"key must be a string"}"#);
    }
}
