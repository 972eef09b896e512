//! What becomes an incident: a violation record, a request, an alert.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::event::{Event, Opened, Source};
use crate::fold::State;
use crate::id::IncidentId;

/// Most incidents that one entry opens.
pub const AT_A_TIME: usize = 200;

/// A violation record of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The system.
    pub system: String,
    /// Whose record it is.
    pub actor: String,
    /// Of which incarnation.
    pub incarnation: u32,
    /// Its number.
    pub seq: u64,
    /// Its fields, as JSON.
    pub fields: Option<String>,
    /// When it happened.
    pub time: Option<String>,
    /// Fields that no version knows, as JSON.
    pub attrs: Option<String>,
    /// Its type.
    pub type_: Option<String>,
    /// What it says, as text.
    pub payload: Option<String>,
}

/// What of the fields of a record is read. Fields of other types count as absent: the record is an incident all the same.
#[derive(Deserialize, Default)]
struct Fields {
    #[serde(default)]
    fingerprints: Vec<String>,
    #[serde(default)]
    affected: Vec<String>,
    #[serde(default)]
    invariant: Option<String>,
    #[serde(default)]
    holds: Option<String>,
    #[serde(default)]
    told_at: Vec<String>,
    #[serde(default)]
    severity: Option<String>,
    #[serde(default)]
    version: Option<String>,
}

impl Record {
    /// The incident that it is. The same record is the same incident, however often it is read.
    #[must_use]
    pub fn opened(&self) -> Opened {
        let (incarnation, seq) = (self.incarnation.to_string(), self.seq.to_string());
        let id = IncidentId::of(&["record", &self.system, &self.actor, &incarnation, &seq]);
        let event = match self.incarnation {
            0 => format!("{}/{seq}", self.actor),
            _ => format!("{}/{incarnation}/{seq}", self.actor),
        };
        let fields = self.fields.as_deref().and_then(|text| serde_json::from_str(text).ok());
        let fields: Fields = fields.unwrap_or_default();
        let mut opened = Opened::new(id, Source::Record { event }, &self.system);
        // A fingerprint is the invariant's name, and what breaks it.
        let first = fields.fingerprints.first().and_then(|text| text.split(':').next()).map(str::to_owned);
        opened.invariant = fields.invariant.or(first).or_else(|| self.type_.clone()).unwrap_or_default();
        opened.holds = fields.holds.unwrap_or_default();
        opened.fingerprints = fields.fingerprints;
        opened.affected = fields.affected;
        opened.at = fields.told_at;
        opened.logged = self.payload.clone().unwrap_or_default();
        opened.time.clone_from(&self.time);
        opened.severity = fields.severity;
        opened.version = fields.version.or_else(|| self.version());
        opened.bounded()
    }

    fn version(&self) -> Option<String> {
        let attrs: Value = serde_json::from_str(self.attrs.as_deref()?).ok()?;
        ["version", "service.version"].iter().find_map(|key| Some(attrs.get(key)?.as_str()?.to_owned()))
    }
}

/// What says that records up to a version were read, and opens what they are: the next part of it, or nothing where all of it is written.
#[must_use]
pub fn watched(state: &State, records: &[Record], version: u64) -> Vec<Event> {
    if state.watched() >= version {
        return Vec::new();
    }
    let news = records.iter().map(Record::opened);
    let mut seen = std::collections::BTreeSet::new();
    let mut news =
        news.filter(|opened| !state.incidents().contains_key(&opened.id) && seen.insert(opened.id));
    let mut events: Vec<Event> =
        news.by_ref().take(AT_A_TIME).map(|opened| Event::Opened(Box::new(opened))).collect();
    // Only with the last of them: who is killed before reads the rest again.
    if news.next().is_none() {
        events.push(Event::Watched { version });
    }
    events
}

/// The body of `POST /v1/incidents`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The system.
    pub system: String,
    /// The invariant.
    #[serde(default)]
    pub invariant: Option<String>,
    /// A sentence.
    #[serde(default)]
    pub title: Option<String>,
    /// Events at which the execution ends.
    #[serde(default)]
    pub at: Vec<String>,
    /// Actors.
    #[serde(default)]
    pub affected: Vec<String>,
    /// How bad it is.
    #[serde(default)]
    pub severity: Option<String>,
    /// The version of the system.
    #[serde(default)]
    pub version: Option<String>,
    /// The name of a model.
    #[serde(default)]
    pub model: Option<String>,
    /// Addresses.
    #[serde(default)]
    pub links: Vec<String>,
}

impl Request {
    /// The incident that it opens. Requests of one client with one key are the same; without a key, those with the same body.
    #[must_use]
    pub fn opened(self, by: &str, key: &str) -> Opened {
        let id = IncidentId::of(&["api", by, key]);
        let mut opened = Opened::new(id, Source::Api { by: by.to_owned() }, self.system);
        opened.invariant = self.invariant.unwrap_or_default();
        opened.title = self.title.unwrap_or_default();
        opened.at = self.at;
        opened.affected = self.affected;
        opened.severity = self.severity;
        opened.version = self.version;
        opened.model = self.model;
        opened.links = self.links.into_iter().filter(|link| is_address(link)).collect();
        opened.bounded()
    }
}

/// Whether a text is an address that a page may lead to.
#[must_use]
pub fn is_address(text: &str) -> bool {
    ["https://", "http://"].iter().any(|scheme| text.starts_with(scheme))
}

/// The label that names the system of an alert.
pub const SYSTEM_LABEL: &str = "demi_system";

/// The body of Alertmanager's webhook, version 4.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Alerts {
    /// The alerts.
    #[serde(default)]
    alerts: Vec<Alert>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Alert {
    #[serde(default)]
    status: String,
    #[serde(default)]
    labels: std::collections::BTreeMap<String, String>,
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
    #[serde(default, rename = "startsAt")]
    starts_at: String,
    #[serde(default)]
    fingerprint: String,
    #[serde(default, rename = "generatorURL")]
    generator: String,
}

impl Alerts {
    /// The incidents that firing alerts open; how many name no system.
    #[must_use]
    pub fn opened(&self, label: &str) -> (Vec<Opened>, usize) {
        let mut without = 0;
        let mut all = Vec::new();
        for alert in self.alerts.iter().filter(|alert| alert.status == "firing") {
            let named = |name: &str| alert.labels.get(name).filter(|value| !value.is_empty()).cloned();
            let Some(system) = named(label) else {
                without += 1;
                continue;
            };
            let id = IncidentId::of(&["alertmanager", &alert.fingerprint, &alert.starts_at]);
            let source = Source::Alertmanager { fingerprint: alert.fingerprint.clone() };
            let mut opened = Opened::new(id, source, system);
            opened.invariant = named("invariant").or_else(|| named("alertname")).unwrap_or_default();
            opened.title = alert.annotations.get("summary").cloned().unwrap_or_default();
            opened.severity = named("severity");
            opened.version = named("version");
            opened.time = Some(alert.starts_at.clone());
            opened.links = [&alert.generator].into_iter().filter(|link| is_address(link)).cloned().collect();
            all.push(opened.bounded());
        }
        (all, without)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::{LINE, MANY, NAME};

    fn record(fields: &str) -> Record {
        Record {
            system: "prod".to_owned(),
            actor: "_monitor".to_owned(),
            incarnation: 1,
            seq: 4,
            fields: Some(fields.to_owned()),
            ..Record::default()
        }
    }

    #[test]
    fn a_record_says_what_broke() {
        let fields =
            r#"{"fingerprints":["OneLeader:a:b"],"affected":["a","b"],"told_at":["a/3"],"version":"1.4"}"#;
        let opened = record(fields).opened();
        assert_eq!(opened.invariant, "OneLeader");
        assert_eq!((opened.affected.len(), opened.at.as_slice()), (2, ["a/3".to_owned()].as_slice()));
        assert_eq!(opened.source, Source::Record { event: "_monitor/1/4".to_owned() });
        assert_eq!(opened.version.as_deref(), Some("1.4"));
        // Fields that are not what they should be make it no less an incident.
        for odd in ["", "[]", "{\"affected\":7}", "{\"fingerprints\":[1]}", "nonsense"] {
            assert_eq!(record(odd).opened().id, opened.id, "{odd}");
        }
        let mut of_attrs = record("{}");
        of_attrs.attrs = Some(r#"{"service.version":"2.0"}"#.to_owned());
        assert_eq!(of_attrs.opened().version.as_deref(), Some("2.0"));
    }

    proptest! {
        #[test]
        fn whatever_a_record_says_is_bounded(name in ".{0,2000}", many in 0_usize..200) {
            let affected: Vec<&str> = vec![&name; many];
            let fields = serde_json::json!({
                "affected": affected, "fingerprints": affected, "invariant": name, "holds": name, "told_at": affected,
            });
            let opened = record(&fields.to_string()).opened();
            prop_assert!(opened.affected.len() <= MANY && opened.at.len() <= MANY && opened.fingerprints.len() <= MANY);
            prop_assert!(opened.affected.iter().all(|actor| actor.len() <= NAME));
            prop_assert!(opened.invariant.len() <= NAME && opened.holds.len() <= LINE);
        }
    }

    #[test]
    fn records_are_opened_once_and_in_parts() {
        let mut state = State::default();
        let mut records: Vec<Record> = Vec::new();
        for n in 0..450 {
            records.push(Record { seq: n, ..record("{}") });
            records.push(Record { seq: n, ..record("{}") });
        }
        let mut n = 0;
        loop {
            let events = watched(&state, &records, 7);
            if events.is_empty() {
                break;
            }
            n += 1;
            let told = events.into_iter().map(crate::event::Told::Known).collect();
            let (by, tag, at) = Default::default();
            state.apply(&crate::event::Entry { v: 1, n, by, tag, at, events: told });
        }
        assert_eq!((n, state.incidents().len(), state.watched(), state.left_out()), (3, 450, 7, (0, 0)));
    }

    #[test]
    fn an_alert_without_a_system_opens_nothing() {
        let text = r#"{"version":"4","alerts":[
            {"status":"firing","labels":{"demi_system":"prod","alertname":"TwoLeaders","severity":"critical"},
             "annotations":{"summary":"two leaders"},"startsAt":"2026-11-26T10:00:00Z","fingerprint":"f1","generatorURL":"javascript:x"},
            {"status":"resolved","labels":{"demi_system":"prod"},"startsAt":"x","fingerprint":"f2"},
            {"status":"firing","labels":{},"startsAt":"x","fingerprint":"f3"}]}"#;
        let alerts: Alerts = serde_json::from_str(text).unwrap();
        let (opened, without) = alerts.opened(SYSTEM_LABEL);
        assert_eq!((opened.len(), without), (1, 1));
        assert_eq!((opened[0].invariant.as_str(), opened[0].title.as_str()), ("TwoLeaders", "two leaders"));
        assert!(opened[0].links.is_empty());
        assert_eq!(opened[0].id, alerts.opened(SYSTEM_LABEL).0[0].id);
    }
}
