//! Programs that talk in lines of JSON of their own: which field is what, and how requests and answers look.
//!
//! Inside, messages are Maelstrom's: a sender, a receiver and a body with a type. What nodes send each other is passed on as it was written.

use demi_schemas::scenario::LinesSettings;
use serde_json::{Map, Value, json};

/// Who begins each node, and reads it in the end.
pub(crate) const INIT: &str = "c0";

/// A line in Maelstrom's terms.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// Empty where the line does not say.
    pub(crate) src: String,
    pub(crate) dest: String,
    pub(crate) body: Value,
}

impl Message {
    /// A line that does not say for whom it is.
    pub(crate) fn nobody(body: Value) -> Message {
        Message { src: String::new(), dest: String::new(), body }
    }
}

/// How lines are read and written: as Maelstrom does where there are no settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines(Option<LinesSettings>);

impl Lines {
    /// # Errors
    /// When a template is no JSON, or an answer has no number of its request.
    pub(crate) fn new(settings: Option<&LinesSettings>) -> Result<Lines, String> {
        let Some(settings) = settings else { return Ok(Lines(None)) };
        let templates = settings.requests.iter().map(|(name, text)| (format!("lines.requests.{name}"), text));
        for (name, text) in
            templates.chain(settings.begin.iter().map(|text| ("lines.begin".to_owned(), text)))
        {
            let filled = filled(text, &|_| Some(Value::from("x")));
            serde_json::from_str::<Value>(&filled)
                .map_err(|error| format!("{name} is no JSON once its $names are filled in: {error}"))?;
        }
        Ok(Lines(Some(settings.clone())))
    }

    /// What a line says.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(&self, line: &str) -> Result<Message, &'static str> {
        let mut message: Value = serde_json::from_str(line).map_err(|_| "a line that is no JSON")?;
        let text = |name: &str| message.get(name).and_then(Value::as_str).map(str::to_owned);
        let Some(settings) = &self.0 else {
            let (src, dest) = (text("src").unwrap_or_default(), text("dest"));
            let body = message.get_mut("body").map(Value::take);
            let (Some(dest), Some(body)) = (dest, body) else {
                return Err("a message without 'dest' and 'body'");
            };
            return Ok(Message { src, dest, body });
        };
        let src = settings.source.as_ref().and_then(|name| text(name)).unwrap_or_default();
        let dest = text(&settings.destination).ok_or("a line without its destination")?;
        Ok(Message { src, dest, body: message })
    }

    /// The line that a node reads; nothing where it is told nothing. Who sends it, and whether that one asks as a client does.
    pub(crate) fn write(
        &self,
        (src, asks): (&str, bool),
        dest: &str,
        depth: u32,
        body: &str,
    ) -> Option<String> {
        let Some(settings) = &self.0 else {
            let (src, dest) = (Value::from(src), Value::from(dest));
            return Some(format!("{{\"id\":{depth},\"src\":{src},\"dest\":{dest},\"body\":{body}}}"));
        };
        let content: Value = serde_json::from_str(body).unwrap_or_default();
        let kind = content.get("type").and_then(Value::as_str).unwrap_or_default();
        let template = match kind {
            "init" if src == INIT => settings.begin.as_ref()?,
            _ if asks => settings.requests.get(kind)?,
            // From one node to another.
            _ => return Some(body.to_owned()),
        };
        Some(filled(template, &|name| match name {
            "node" => Some(Value::from(dest)),
            "client" => Some(Value::from(src)),
            "id" => content.get("msg_id").cloned(),
            "nodes" => content.get("node_ids").cloned(),
            "others" => {
                let all = content.get("node_ids")?.as_array()?;
                Some(all.iter().filter(|node| node.as_str() != Some(dest)).cloned().collect())
            }
            _ => content.get(name).cloned(),
        }))
    }

    /// What a line in a log says. What a client asks for with it is put in Maelstrom's terms; for whom it is, is empty where the line does not
    /// say.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn heard(&self, line: &Value) -> Result<Message, &'static str> {
        let Some(settings) = &self.0 else { return self.read(&line.to_string()) };
        for (kind, template) in &settings.requests {
            let mut found = Map::new();
            let pattern: Value =
                serde_json::from_str(&filled(template, &|name| Some(Value::from(format!("\0{name}")))))
                    .unwrap_or_default();
            if unify(&pattern, line, &mut found) {
                let mut text = |name: &str| {
                    let value = found.remove(name)?;
                    value.as_str().map(str::to_owned)
                };
                let (dest, src) = (text("node").unwrap_or_default(), text("client").unwrap_or_default());
                if let Some(id) = found.remove("id") {
                    found.insert("msg_id".into(), id);
                }
                found.insert("type".into(), Value::from(kind.as_str()));
                return Ok(Message { src, dest, body: Value::Object(found) });
            }
        }
        self.read(&line.to_string())
    }

    /// Whether this is the first line of all that a node reads.
    pub(crate) fn is_begin(&self, line: &Value) -> bool {
        match &self.0 {
            None => line.pointer("/body/type").and_then(Value::as_str) == Some("init"),
            Some(settings) => settings.begin.as_ref().is_some_and(|begin| {
                let pattern = filled(begin, &|name| Some(Value::from(format!("\0{name}"))));
                let pattern: Value = serde_json::from_str(&pattern).unwrap_or_default();
                unify(&pattern, line, &mut Map::new())
            }),
        }
    }

    /// Whether nodes talk as Maelstrom's do.
    pub(crate) fn is_maelstrom(&self) -> bool {
        self.0.is_none()
    }

    /// Whether what was heard is a message: many other lines of a log are JSON too.
    pub(crate) fn holds(&self, message: &Message) -> bool {
        message.body.is_object()
    }

    /// The operations without a template.
    pub(crate) fn lacks(&self, operations: &[&'static str]) -> Option<&'static str> {
        let settings = self.0.as_ref()?;
        operations.iter().find(|name| !settings.requests.contains_key(**name)).copied()
    }

    /// An answer to a request of that name, in Maelstrom's terms.
    pub(crate) fn answer(&self, f: &str, body: Value) -> Value {
        let Some(settings) = &self.0 else { return body };
        let mut answer: Map<String, Value> = body.as_object().cloned().unwrap_or_default();
        let id = answer.get(&settings.id).cloned().unwrap_or_default();
        answer.insert("in_reply_to".into(), id);
        let error = settings
            .error
            .as_ref()
            .and_then(|name| body.get(name))
            .filter(|error| !error.is_null() && **error != Value::Bool(false));
        if let Some(error) = error {
            let text = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
            // What nobody explains may have been done or not.
            let code = settings.errors.get(&text).copied().unwrap_or(13);
            return json!({ "type": "error", "code": code, "text": text, "in_reply_to": answer["in_reply_to"] });
        }
        for (own, maelstrom) in &settings.answers {
            if let Some(value) = body.get(own) {
                answer.insert(maelstrom.clone(), value.clone());
            }
        }
        answer.insert("type".into(), Value::from(format!("{f}_ok")));
        Value::Object(answer)
    }
}

/// Whether a line is of the form of a pattern, in which texts that begin with a NUL stand for any value; those are told.
fn unify(pattern: &Value, line: &Value, found: &mut Map<String, Value>) -> bool {
    match (pattern, line) {
        (Value::String(text), value) if text.starts_with('\0') => {
            let name = text[1..].to_owned();
            found.get(&name).is_none_or(|known| known == value) && {
                found.insert(name, value.clone());
                true
            }
        }
        (Value::Object(pattern), Value::Object(line)) => {
            pattern.len() == line.len()
                && pattern
                    .iter()
                    .all(|(key, one)| line.get(key).is_some_and(|value| unify(one, value, found)))
        }
        (Value::Array(pattern), Value::Array(line)) => {
            pattern.len() == line.len()
                && pattern.iter().zip(line).all(|(one, value)| unify(one, value, found))
        }
        (one, other) => one == other,
    }
}

/// A template with `$name` replaced by values as JSON.
fn filled(template: &str, value: &dyn Fn(&str) -> Option<Value>) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = rest.find('$') {
        text.push_str(&rest[..at]);
        let name = &rest[at + 1..];
        let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
        match end {
            0 => text.push('$'),
            _ => text.push_str(&value(&name[..end]).unwrap_or_default().to_string()),
        }
        rest = &name[end..];
    }
    text + rest
}
