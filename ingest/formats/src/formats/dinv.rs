//! Dinv's dumps: `point { Host-name=value , … }`, several behind one another without a separator.

use serde_json::{Map, Value};

/// Reads the dumps of one event: an object of variables by program point. The host's name before each variable is left
/// out; a point that is dumped twice gets `#2` behind its name. An empty text has no value.
pub(crate) fn parse(text: &str) -> Result<Option<Value>, String> {
    let mut points = Map::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        // Later versions print a clock in braces behind the variables.
        if rest.starts_with('{') {
            rest = behind_braces(rest)?.trim_start();
            continue;
        }
        let (name, after) =
            rest.split_once('{').ok_or_else(|| format!("'{rest}': no variables in braces"))?;
        let (body, after) =
            after.split_once('}').ok_or_else(|| format!("'{name}': the brace is not closed"))?;
        rest = after.trim_start();
        let mut variables = Map::new();
        for item in body.split(',').map(str::trim).filter(|i| !i.is_empty()) {
            let (variable, value) =
                item.split_once('=').ok_or_else(|| format!("'{item}' is no variable with a value"))?;
            let variable = variable.split_once('-').map_or(variable, |(_, v)| v);
            variables.insert(variable.to_owned(), scalar(value));
        }
        let name = name.trim();
        let mut key = name.to_owned();
        let mut again = 2;
        while points.contains_key(&key) {
            key = format!("{name}#{again}");
            again += 1;
        }
        points.insert(key, Value::Object(variables));
    }
    Ok((!points.is_empty()).then_some(Value::Object(points)))
}

/// What follows the braces at the beginning.
fn behind_braces(text: &str) -> Result<&str, String> {
    let mut depth = 0_usize;
    for (i, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Ok(&text[i + 1..]);
        }
    }
    Err("a brace is not closed".into())
}

/// Numbers and truth values as such, the rest as text.
pub(crate) fn scalar(text: &str) -> Value {
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => match text.parse::<i64>() {
            Ok(n) if n.to_string() == text => Value::from(n),
            _ => Value::String(text.to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn dumps_are_told_apart() {
        let text = "A_f_1 { A-x=1 , A-long-name=-2 ,  }A_g_2 { A-s=a b , A-ok=true ,  }A_f_1 {  }";
        let expected = json!({
            "A_f_1": {"x": 1, "long-name": -2}, "A_g_2": {"s": "a b", "ok": true}, "A_f_1#2": {},
        });
        assert_eq!(parse(text).unwrap(), Some(expected));
        let with_clock = "A_f_1 { A-x=1 ,  } { {\"A\":3} }A_g_2 { A-y=2 }";
        assert_eq!(parse(with_clock).unwrap(), Some(json!({"A_f_1": {"x": 1}, "A_g_2": {"y": 2}})));
        assert_eq!(parse("  ").unwrap(), None);
        assert!(parse("A { A-x=1").unwrap_err().contains("not closed"));
        assert!(parse("A").is_err() && parse("A { x }").is_err());
    }
}
