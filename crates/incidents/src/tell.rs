//! What is told of bugs and incidents, in the form that each kind of receiver takes.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::event::News;
use crate::fold::{Delivery, Incident, State, Status};
use crate::text::cut;
use crate::view;

/// Longest section of a message to Slack, in characters; a byte is never more than one.
const SLACK: usize = 3000;
/// Longest summary of PagerDuty.
const PAGERDUTY: usize = 1024;
/// How many steps a message has.
const STEPS: usize = 8;

/// A kind of receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// A webhook as Standard Webhooks describes it.
    Webhook,
    /// An incoming webhook of Slack.
    Slack,
    /// PagerDuty's Events API, version 2.
    Pagerduty,
    /// Alertmanager's API, version 2.
    Alertmanager,
}

/// What is needed to tell something.
#[derive(Clone, Copy, Debug)]
pub struct Letter<'a> {
    /// What the journal comes to.
    pub state: &'a State,
    /// What is told.
    pub delivery: &'a Delivery,
    /// The steps of its incident.
    pub story: &'a [String],
    /// Its key.
    pub key: &'a str,
    /// Where pages are reached; empty where nobody said it.
    pub public_url: &'a str,
    /// Whether it may have been sent before.
    pub again: bool,
    /// The key of PagerDuty's service.
    pub routing_key: &'a str,
}

impl Letter<'_> {
    fn incident(&self) -> Option<&Incident> {
        self.state.incidents().get(&self.delivery.id)
    }

    /// Where the bug or the incident is read.
    fn url(&self) -> String {
        let base = self.public_url.trim_end_matches('/');
        match self.incident().and_then(Incident::bug) {
            _ if base.is_empty() => String::new(),
            Some(bug) => format!("{base}/b/{bug}"),
            None => format!("{base}/i/{}", self.delivery.id),
        }
    }

    /// The bug, or the incident where there is no bug so far.
    fn subject(&self) -> String {
        let bug = self.incident().and_then(Incident::bug);
        bug.map_or_else(|| self.delivery.id.short(), |bug| format!("B-{bug}"))
    }

    /// What is told, in a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let what = self.incident().map(view::sentence).unwrap_or_default();
        let told = match self.delivery.news {
            News::Seen => "was seen",
            News::Ready => "has its shortest steps",
            News::Regressed => "is back",
            News::Resolved => "is resolved",
            News::Milestone => "happens often",
            News::Failed => "could not be worked on",
        };
        let again = if self.again { " (again)" } else { "" };
        format!("{} {told}: {what}{again}", self.subject())
    }

    /// Size, proof, occurrences, version, and the first steps.
    fn details(&self) -> String {
        let Some(incident) = self.incident() else { return String::new() };
        let mut text = view::standing(incident);
        if incident.findings().verified {
            text.push_str(". ");
            text.push_str(&incident.findings().proven);
        }
        if let Some((_, bug)) = incident.bug().and_then(|bug| self.state.bug(bug)) {
            text.push_str(&format!("\nIt happened {} times.", bug.incidents().len()));
        }
        if let Some(version) = &incident.opened().version {
            text.push_str(&format!("\nVersion {version}."));
        }
        for step in self.story.iter().take(STEPS) {
            text.push('\n');
            text.push_str(&step.lines().next().unwrap_or_default().replace("**", ""));
        }
        text
    }

    /// Whether it ends something.
    fn resolves(&self) -> bool {
        let bug = self.incident().and_then(Incident::bug).and_then(|bug| self.state.bug(bug));
        self.delivery.news == News::Resolved
            && bug.is_some_and(|(_, bug)| matches!(bug.status(), Status::Resolved { .. }))
    }

    /// The body of the request.
    #[must_use]
    pub fn body(&self, form: Form) -> Value {
        let (sentence, details, url) = (self.sentence(), self.details(), self.url());
        match form {
            Form::Webhook => {
                let bug = self.incident().and_then(Incident::bug).and_then(|bug| self.state.bug(bug));
                json!({
                    "type": format!("bug.{}", self.delivery.news.word()),
                    "text": sentence,
                    "bug": bug.map(|(number, bug)| view::bug(self.state, number, bug)),
                    "incident": self.incident().map(|incident| view::full(self.state, incident, self.story.to_vec())),
                    "url": url,
                })
            }
            Form::Slack => {
                let section =
                    |text: &str| json!({"type": "section", "text": {"type": "mrkdwn", "text": text}});
                let link = if url.is_empty() { String::new() } else { format!("\n<{url}|Open>") };
                json!({
                    "text": slack(&sentence, SLACK),
                    "blocks": [
                        section(&format!("*{}*{link}", slack(&sentence, SLACK - 600))),
                        section(&format!("```{}```", slack(&details.replace("```", "'''"), SLACK - 10))),
                    ],
                })
            }
            Form::Pagerduty => {
                let incident = self.incident();
                let severity = incident.and_then(|i| i.opened().severity.as_deref()).unwrap_or_default();
                let severity = if ["critical", "error", "warning", "info"].contains(&severity) {
                    severity
                } else {
                    "error"
                };
                let links =
                    if url.is_empty() { json!([]) } else { json!([{"href": url, "text": self.subject()}]) };
                let mut body = json!({
                    "routing_key": self.routing_key,
                    "event_action": if self.resolves() { "resolve" } else { "trigger" },
                    "dedup_key": format!("demi-lineage {}", self.dedup()),
                    "client": "demi-lineage",
                    "links": links,
                    "payload": {
                        "summary": cut(&sentence, PAGERDUTY),
                        "source": incident.map(|i| i.opened().system.clone()).unwrap_or_default(),
                        "severity": severity,
                        "custom_details": { "details": details },
                    },
                });
                if !url.is_empty() {
                    body["client_url"] = url.into();
                }
                body
            }
            Form::Alertmanager => {
                let incident = self.incident();
                let severity =
                    incident.and_then(|i| i.opened().severity.clone()).unwrap_or_else(|| "error".to_owned());
                let mut alert = json!({
                    "labels": {
                        "alertname": "DemiBug",
                        "system": incident.map(|i| i.opened().system.clone()).unwrap_or_default(),
                        "invariant": incident.map(|one| one.invariant().to_owned()).unwrap_or_default(),
                        "bug": self.dedup(),
                        "severity": severity,
                    },
                    "annotations": { "summary": sentence, "description": details },
                });
                if !url.is_empty() {
                    alert["generatorURL"] = url.into();
                }
                json!([alert])
            }
        }
    }

    /// The same for all that is told of one kind of incident, also before its bug is known.
    fn dedup(&self) -> String {
        let first = self.incident().map(|incident| self.state.of_kind(incident.opened()).first().copied());
        first.flatten().map_or_else(|| self.subject(), |id| id.to_string())
    }
}

/// The bodies of a message that says of itself that it is a test; nobody is called by it for long.
#[must_use]
pub fn test(form: Form, key: &str, public_url: &str, routing_key: &str) -> Vec<Value> {
    let text = "This is a test of demi-lineage: messages about bugs arrive here.";
    match form {
        Form::Webhook => {
            let nothing = Value::Null;
            vec![
                json!({"type": "test", "text": text, "bug": nothing, "incident": nothing, "url": public_url}),
            ]
        }
        Form::Slack => vec![json!({
            "text": text,
            "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": text}}],
        })],
        Form::Pagerduty => {
            let event = |action: &str| {
                json!({
                    "routing_key": routing_key, "event_action": action, "dedup_key": key, "client": "demi-lineage",
                    "payload": {"summary": text, "source": "demi-lineage", "severity": "info"},
                })
            };
            vec![event("trigger"), event("resolve")]
        }
        // Whoever takes it ends it by itself.
        Form::Alertmanager => vec![json!([{
            "labels": {"alertname": "DemiTest", "severity": "info", "key": key},
            "annotations": {"summary": text},
        }])],
    }
}

/// A text for Slack, whose marks it does not obey.
fn slack(text: &str, most: usize) -> String {
    let text = cut(text, most / 6);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::{Entry, Event, Opened, Source, Told};
    use crate::fold::Sent;
    use crate::id::IncidentId;

    fn state(text: &str) -> (State, Delivery) {
        let id = IncidentId::of(&["x"]);
        let mut opened = Opened::new(id, Source::Command, text);
        (opened.invariant, opened.title) = (text.to_owned(), text.to_owned());
        let mut state = State::default();
        let (by, tag, at) = Default::default();
        let events = vec![Told::Known(Event::Opened(Box::new(opened)))];
        state.apply(&Entry { v: 1, n: 1, by, tag, at, events });
        (state, Delivery { receiver: "r".to_owned(), news: News::Seen, id, sent: Sent::Queued })
    }

    proptest! {
        #[test]
        fn no_message_is_longer_than_its_receiver_takes(text in "\\PC{0,3000}|[<&>`]{0,3000}") {
            let (state, delivery) = state(&text);
            let letter = Letter { state: &state, delivery: &delivery, story: &[], key: "k", public_url: "https://x", again: true, routing_key: "r" };
            let slack = letter.body(Form::Slack);
            for block in slack["blocks"].as_array().unwrap() {
                let section = block["text"]["text"].as_str().unwrap();
                prop_assert!(section.chars().count() <= SLACK);
                let link = format!("<https://x/i/{}|Open>", delivery.id);
                let marks = section.replace(&link, "").contains('<');
                prop_assert!(!marks);
            }
            let pagerduty = letter.body(Form::Pagerduty);
            prop_assert!(pagerduty["payload"]["summary"].as_str().unwrap().len() <= PAGERDUTY);
            prop_assert!(pagerduty["dedup_key"].as_str().unwrap().len() <= 255);
        }
    }

    #[test]
    fn a_test_message_says_what_it_is_and_ends_what_it_begins() {
        for form in [Form::Webhook, Form::Slack, Form::Pagerduty, Form::Alertmanager] {
            let bodies = test(form, "k", "https://x", "r");
            assert!(bodies.iter().all(|body| body.to_string().contains("This is a test")), "{bodies:?}");
            let triggers = bodies.iter().filter(|body| body["event_action"] == "trigger").count();
            let resolves = bodies.iter().filter(|body| body["event_action"] == "resolve").count();
            assert_eq!((triggers, resolves), if form == Form::Pagerduty { (1, 1) } else { (0, 0) });
        }
    }

    #[test]
    fn a_message_says_what_broke_and_where_to_read_it() {
        let (state, delivery) = state("OneLeader");
        let letter = Letter {
            state: &state,
            delivery: &delivery,
            story: &[],
            key: "k",
            public_url: "https://x/",
            again: false,
            routing_key: "r",
        };
        assert!(
            letter.sentence().starts_with("I-")
                && letter.sentence().contains("was seen: OneLeader in OneLeader")
        );
        let body = letter.body(Form::Webhook);
        assert_eq!(body["type"], "bug.seen");
        assert_eq!(body["url"], format!("https://x/i/{}", delivery.id));
        let alerts = letter.body(Form::Alertmanager);
        assert_eq!(alerts[0]["labels"]["alertname"], "DemiBug");
        assert_eq!(letter.body(Form::Pagerduty)["event_action"], "trigger");
    }
}
