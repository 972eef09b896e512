//! The requests that programs make, as OpenAPI 3.1 describes them: from the table of routes and the types of bodies and answers.

use std::collections::BTreeSet;

use axum::http::{Method, StatusCode};
use axum::routing::MethodRouter;
use demi_incidents::view::{BugView, Short};
use demi_incidents::{IncidentId, Journal, JournalError, Objects, Place, forget};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::net::security::Role;

/// Makes the schema of a type, with those that it names.
type Of = fn(&mut SchemaGenerator) -> Schema;

/// The schema of a type.
pub(super) fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// What is sent with a request or an answer.
#[derive(Clone, Copy)]
pub(super) enum Content {
    /// JSON of this type.
    Json(Of),
    /// Bytes of this type, such as `text/plain`.
    Bytes(&'static str),
    /// Nothing.
    Nothing,
}

/// A request that programs make.
pub(super) struct Api<S> {
    pub(super) method: Method,
    pub(super) path: &'static str,
    /// What it does, in a sentence.
    pub(super) about: &'static str,
    pub(super) role: Role,
    /// Names of parameters behind `?`.
    pub(super) query: &'static [&'static str],
    pub(super) body: Content,
    /// What is answered where it succeeds.
    pub(super) answer: (StatusCode, Content),
    pub(super) handler: MethodRouter<S>,
}

/// A list of incidents.
#[derive(Serialize, JsonSchema)]
pub(super) struct Incidents {
    /// Newest first.
    pub(super) items: Vec<Short>,
    /// What to give as `after` for the next ones; nothing where there are no more.
    pub(super) next: Option<IncidentId>,
    /// The number of the last entry of the journal.
    pub(super) journal: u64,
}

/// A list of bugs.
#[derive(Serialize, JsonSchema)]
pub(super) struct Bugs {
    /// Open ones first, then those that were seen last.
    pub(super) items: Vec<BugView>,
    /// The number of the last entry of the journal.
    pub(super) journal: u64,
}

/// An incident that was opened, or was known.
#[derive(Serialize, JsonSchema)]
pub(super) struct OpenedAnswer {
    pub(super) id: IncidentId,
    /// Where its page is.
    pub(super) url: String,
    /// Whether it was not known.
    pub(super) new: bool,
}

/// A log that was taken.
#[derive(Serialize, JsonSchema)]
pub(super) struct UploadAnswer {
    pub(super) id: IncidentId,
    /// BLAKE3 of the bytes.
    pub(super) upload: String,
    pub(super) system: String,
    /// Where the page of its incident is.
    pub(super) url: String,
    /// Whether its incident was not known.
    pub(super) new: bool,
}

/// Which incidents alerts opened.
#[derive(Serialize, JsonSchema)]
pub(super) struct AlertsAnswer {
    pub(super) opened: Vec<IncidentId>,
    pub(super) known: Vec<IncidentId>,
    /// How many alerts have no label that names the system.
    pub(super) without_system: usize,
}

/// Something that was written.
#[derive(Serialize, JsonSchema)]
pub(super) struct Written {
    /// The number of its entry of the journal.
    pub(super) journal: u64,
}

/// What an action on a bug needs, where it needs something.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes fields, which are read by their names")]
pub(super) struct ActionBody {
    /// Of `close`: the version from which on it does not happen.
    fixed_in: Option<String>,
    /// Of `note`.
    text: Option<String>,
    /// Of `priority`: `low`, `normal`, `high` or `urgent`.
    to: Option<String>,
    /// Of `merge`: the bug that stays.
    into: Option<String>,
    /// Of `split`: the incidents that leave.
    incidents: Option<Vec<String>>,
}

/// Which incidents are to be forgotten: those that are all of what is named.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PurgeBody {
    /// Of this system.
    system: Option<String>,
    /// In which this name stands.
    actor: Option<String>,
    /// Opened before this day, as `2026-01-31`.
    before: Option<String>,
}

impl PurgeBody {
    /// Why it names nothing that can be forgotten.
    pub(super) fn refused(&self) -> Option<&'static str> {
        let day = self.before.as_ref().map(|day| day.parse::<chrono::NaiveDate>());
        match (day, &self.system, &self.actor) {
            (Some(Err(_)), ..) => Some("before is no day, such as 2026-01-31"),
            (None, None, None) => Some("name a system, an actor, or a day as before"),
            (_, _, Some(actor)) if actor.trim().is_empty() => Some("actor is empty"),
            _ => None,
        }
    }

    pub(super) fn which<O: Objects>(
        &self,
        journal: &Journal<O>,
        place: &Place,
    ) -> Result<Vec<IncidentId>, JournalError> {
        let state = journal.state();
        let actor = self.actor.as_ref().map(|actor| forget::naming(journal, place, actor)).transpose()?;
        let lists = [
            self.system.as_ref().map(|system| forget::of_system(&state, system)),
            actor,
            self.before.as_ref().map(|day| forget::before(&state, day)),
        ];
        let sets = lists.into_iter().flatten().map(BTreeSet::from_iter);
        let all = sets.reduce(|a: BTreeSet<IncidentId>, b| a.intersection(&b).copied().collect());
        Ok(all.into_iter().flatten().collect())
    }
}

/// What was forgotten.
#[derive(Serialize, JsonSchema)]
pub(super) struct Purged {
    pub(super) incidents: Vec<IncidentId>,
    /// The number of the last entry of the journal.
    pub(super) journal: u64,
}

/// A test message that was taken.
#[derive(Serialize, JsonSchema)]
pub(super) struct TestAnswer {
    pub(super) receiver: String,
    /// Whether the receiver has taken it.
    pub(super) taken: bool,
}

/// An error, as RFC 9457 has it.
#[derive(Serialize, JsonSchema)]
pub(super) struct Problem {
    pub(super) status: u16,
    pub(super) title: Option<&'static str>,
    /// A sentence.
    pub(super) detail: String,
}

/// The document.
pub(super) fn document<S>(all: &[Api<S>]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let problem = of::<Problem>(&mut generator);
    let mut paths: Map<String, Value> = Map::new();
    for api in all {
        let names = api.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let of_path = names
            .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
        let of_query =
            api.query.iter().map(|name| json!({"name": name, "in": "query", "schema": {"type": "string"}}));
        let parameters: Vec<Value> = of_path.chain(of_query).collect();
        let mut content = |content: Content| match content {
            Content::Json(of) => json!({"content": {"application/json": {"schema": of(&mut generator)}}}),
            Content::Bytes(kind) => json!({"content": {kind: {"schema": {"type": "string"}}}}),
            Content::Nothing => json!({}),
        };
        let (status, answer) = api.answer;
        let mut answered = content(answer);
        answered["description"] = status.canonical_reason().unwrap_or_default().into();
        let mut operation = json!({
            "summary": api.about,
            "description": format!("Needs the role {}.", api.role.word()),
            "operationId": format!("{} {}", api.method.as_str().to_lowercase(), api.path),
            "parameters": parameters,
            "responses": {
                status.as_str(): answered,
                "default": {
                    "description": "It was refused, or failed.",
                    "content": {"application/problem+json": {"schema": problem}},
                },
            },
        });
        if !matches!(api.body, Content::Nothing) {
            operation["requestBody"] = content(api.body);
        }
        let of_path = paths.entry(api.path).or_insert_with(|| json!({}));
        of_path[api.method.as_str().to_lowercase()] = operation;
    }
    json!({
        "openapi": "3.1.0",
        "info": {"title": "demi-lineage incidents", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    })
}
