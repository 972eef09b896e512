//! Pages of bugs and incidents, made on the server; they work without a script.
//!
//! Every text from outside goes through [`Html::text`] or [`Html::attribute`], which escape it; [`Html::raw`] takes only texts of this program.

use demi_common::text::{markup, printable_lines};

use crate::event::{Parked, Stage};
use crate::fold::{Incident, State, Status, Work};
use crate::place::Beat;
use crate::sources::is_address;
use crate::view::{self, Filter, PAGE};

/// The style of all pages.
pub const STYLE: &str = include_str!("../assets/style.css");

/// What pages may load and do: their own style, and forms to their own origin.
pub const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The address of the style, which changes with it.
#[must_use]
pub fn style_path() -> String {
    format!("/assets/{}.css", crate::id::hex_of(&[STYLE]))
}

/// Text of a page in the making.
#[derive(Default)]
struct Html(String);

impl Html {
    /// Markup of this program.
    fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// A text as it is to be read.
    fn text(&mut self, text: &str) -> &mut Self {
        // What turns the direction of what follows would let a text lie about others.
        self.0.push_str(&markup(&printable_lines(text)));
        self
    }

    /// An attribute; its value is escaped as texts are.
    fn attribute(&mut self, name: &'static str, value: &str) -> &mut Self {
        self.raw(" ").raw(name).raw("=\"").text(value).raw("\"")
    }

    fn link(&mut self, to: &str, text: &str) -> &mut Self {
        self.raw("<a").attribute("href", to).raw(">").text(text).raw("</a>")
    }

    fn pair(&mut self, name: &'static str, value: &str) -> &mut Self {
        if !value.is_empty() {
            self.raw("<dt>").raw(name).raw("</dt><dd>").text(value).raw("</dd>");
        }
        self
    }
}

/// Begins a page; one that `lives` loads itself again.
fn begin(title: &str, lives: bool) -> Html {
    let mut html = Html::default();
    html.raw("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">")
        .raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    if lives {
        html.raw("<meta http-equiv=\"refresh\" content=\"2\">");
    }
    html.raw("<title>")
        .text(title)
        .raw("</title><link rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\"");
    html.attribute("href", &style_path()).raw("></head><body>");
    html.raw("<header><nav aria-label=\"Lists\"><a href=\"/\">Bugs</a><a href=\"/incidents\">Incidents</a><a href=\"/login\">Session</a></nav></header><main>");
    html
}

fn end(mut html: Html) -> String {
    html.raw("</main></body></html>");
    html.0
}

/// The list of bugs.
#[must_use]
pub fn bugs(state: &State, filter: &Filter, from: usize) -> String {
    let mut html = begin("Bugs", false);
    html.raw("<h1>Bugs</h1>");
    let found = filter.bugs(state);
    let waiting = state.active().len();
    html.raw("<p class=\"soft\">").text(&format!(
        "{}, {}",
        counted(found.len(), "bug"),
        counted(state.incidents().len(), "incident")
    ));
    if waiting > 0 {
        html.text(&format!(", {waiting} not done"));
    }
    html.raw("</p>");
    search(&mut html, "/", filter);
    html.raw("<ul class=\"list\">");
    for number in found.iter().skip(from).take(PAGE) {
        let Some(bug) = state.bugs().get(number) else { continue };
        let view = view::bug(state, *number, bug);
        html.raw("<li><a class=\"row\"").attribute("href", &format!("/b/{number}")).raw("><strong>");
        html.text(&view.bug).raw("</strong> ").text(&view.invariant).raw("<br><span class=\"soft\">");
        let size = if view.size[0] > 0 { format!("{} steps, ", view.size[0]) } else { String::new() };
        html.text(&format!(
            "{}{} in {}, {size}{}, last {}",
            view.status.word(),
            if view.muted { " (muted)" } else { "" },
            view.system,
            counted(view.occurrences, "time"),
            view.last
        ));
        html.raw("</span></a></li>");
    }
    html.raw("</ul>");
    if found.len() > from + PAGE {
        html.raw("<nav aria-label=\"More\">");
        html.link(&format!("/?{}from={}", filter.in_query(), from + PAGE), "More").raw("</nav>");
    }
    end(html)
}

/// The list of incidents.
#[must_use]
pub fn incidents(state: &State, filter: &Filter, after: Option<crate::IncidentId>) -> String {
    let mut html = begin("Incidents", false);
    html.raw("<h1>Incidents</h1>");
    search(&mut html, "/incidents", filter);
    let (found, more) = filter.incidents(state, after, PAGE);
    html.raw("<ul class=\"list\">");
    for one in &found {
        html.raw("<li><a class=\"row\"").attribute("href", &format!("/i/{}", one.id)).raw("><strong>");
        html.text(&one.short).raw("</strong> ").text(&one.invariant).raw("<br><span class=\"soft\">");
        let bug = one.bug.as_ref().map(|bug| format!("{bug}, ")).unwrap_or_default();
        let result = if one.result.is_empty() { String::new() } else { format!(": {}", one.result) };
        html.text(&format!("{bug}{}{result}, in {}, {}", one.work, one.system, one.opened));
        html.raw("</span></a></li>");
    }
    html.raw("</ul>");
    if let (true, Some(last)) = (more, found.last()) {
        html.raw("<nav aria-label=\"More\">")
            .link(&format!("/incidents?{}after={}", filter.in_query(), last.id), "More")
            .raw("</nav>");
    }
    end(html)
}

fn search(html: &mut Html, to: &str, filter: &Filter) {
    html.raw("<form class=\"act\" method=\"get\"")
        .attribute("action", to)
        .raw("><input name=\"q\" aria-label=\"Search\" placeholder=\"Search\"");
    html.attribute("value", filter.q.as_deref().unwrap_or_default()).raw("><button>Search</button></form>");
}

/// A number of things: "1 bug", "2 bugs".
fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// How many incidents of the same kind nobody looked at, since there were so many.
fn of_its_kind(state: &State, stands: &Incident) -> usize {
    let burst = |id: &&crate::IncidentId| {
        state.incidents().get(id).is_some_and(|one| one.work() == Work::Parked { reason: Parked::Burst })
    };
    state.of_kind(stands.opened()).iter().filter(burst).count()
}

/// A bug; `story` are the steps of the incident that stands for it.
#[must_use]
pub fn bug(state: &State, number: u32, story: &[String]) -> Option<String> {
    let (number, bug) = state.bug(number)?;
    let view = view::bug(state, number, bug);
    let stands = state.incidents().get(&bug.representative())?;
    let mut html = begin(&format!("{} {}", view.bug, view.invariant), false);
    html.raw("<h1>").text(&view.bug).raw(": ").text(&view.invariant).raw("</h1>");
    html.raw("<dl>").pair("Status", &in_words(&view.status)).pair("Priority", &view.priority);
    if view.muted {
        html.pair("Muted", "nobody is told of it");
    }
    let times = counted(view.occurrences, "time");
    html.pair("Happened", &format!("{times}, first {}, last {}", view.first, view.last));
    let others = of_its_kind(state, stands);
    if others > 0 {
        html.pair("Not looked at", &format!("{others} more of this system and invariant, in a burst: they may be of this bug or of another"));
    }
    html.pair("System", &view.system).pair("Versions", &view.versions.join(", "));
    if let (old, unknown @ 1..) = view.since_fixed {
        html.pair(
            "Since it was fixed",
            &format!(
                "{old} times in older versions, {unknown} times in versions that nobody knows: is it back?"
            ),
        );
    }
    html.raw("</dl>");
    told(&mut html, stands, story);
    reproduce(&mut html, stands);
    html.raw("<h2>Occurrences</h2><ul class=\"list\">");
    for id in bug.incidents().iter().take(PAGE) {
        let Some(incident) = state.incidents().get(id) else { continue };
        html.raw("<li><a class=\"row\"")
            .attribute("href", &format!("/i/{id}"))
            .raw("><strong>")
            .text(&id.short());
        html.raw("</strong> ")
            .text(incident.why())
            .raw("<br><span class=\"soft\">")
            .text(incident.opened_at());
        html.raw("</span></a></li>");
    }
    html.raw("</ul>");
    if let Some((other, near)) = stands.nearest().filter(|(other, _)| *other != number) {
        html.raw("<p>The nearest other bug is ").link(&format!("/b/{other}"), &format!("B-{other}"));
        html.text(&format!(", {:.0} % alike.", near * 100.0)).raw("</p>");
        form(&mut html, number, "merge", &format!("Merge into B-{other}"), &[("into", other.to_string())]);
    }
    html.raw("<h2>What to do</h2>");
    if view.status.is_open() {
        if !matches!(view.status, Status::Acknowledged) {
            form(&mut html, number, "ack", "Acknowledge", &[]);
        }
        html.raw("<form class=\"act\" method=\"post\"").attribute("action", &format!("/b/{number}/close"));
        html.raw("><input name=\"fixed_in\" aria-label=\"Fixed in version\" placeholder=\"Fixed in version\"><button>Close</button></form>");
    } else {
        form(&mut html, number, "reopen", "Open again", &[]);
    }
    let (mute, label) = if view.muted { ("unmute", "Unmute") } else { ("mute", "Mute") };
    form(&mut html, number, mute, label, &[]);
    html.raw("<form class=\"act\" method=\"post\"").attribute("action", &format!("/b/{number}/note"));
    html.raw("><input name=\"text\" required aria-label=\"Note\" placeholder=\"Note\"><button>Note</button></form>");
    html.raw("<h2>History</h2><ul>");
    for line in &view.history {
        let by = if line.by.is_empty() { String::new() } else { format!("{} ", line.by) };
        html.raw("<li>").text(&format!("{}: {by}{}", line.at, line.what)).raw("</li>");
    }
    html.raw("</ul>");
    Some(end(html))
}

/// A form of one button.
fn form(html: &mut Html, bug: u32, action: &str, label: &str, fields: &[(&'static str, String)]) {
    html.raw("<form class=\"act\" method=\"post\"")
        .attribute("action", &format!("/b/{bug}/{action}"))
        .raw(">");
    for (name, value) in fields {
        html.raw("<input type=\"hidden\"").attribute("name", name).attribute("value", value).raw(">");
    }
    html.raw("<button>").text(label).raw("</button></form>");
}

fn in_words(status: &Status) -> String {
    match status {
        Status::Resolved { fixed_in: Some(version), checked } => {
            format!("resolved, fixed in {version} ({})", if *checked { "checked" } else { "not checked" })
        }
        other => other.word().to_owned(),
    }
}

/// An incident, with its steps; `beat` is the last sign of life of whoever works on it.
#[must_use]
pub fn incident(incident: &Incident, story: &[String], beat: Option<&Beat>) -> String {
    let opened = incident.opened();
    let lives = incident.work().is_open();
    let mut html = begin(&format!("{} {}", opened.id.short(), incident.invariant()), lives);
    html.raw("<h1>").text(&view::sentence(incident)).raw("</h1>");
    html.raw("<dl>").pair("Incident", &opened.id.to_string());
    if let Some(bug) = incident.bug() {
        html.raw("<dt>Bug</dt><dd>")
            .link(&format!("/b/{bug}"), &format!("B-{bug}"))
            .raw(", ")
            .text(incident.why());
        html.raw("</dd>");
    }
    html.pair("Invariant", incident.invariant()).pair("Must hold", &opened.holds);
    html.pair("Violation", &opened.fingerprints.join(", ")).pair("The log says", &opened.logged);
    html.pair("Record", opened.source.record().unwrap_or_default());
    html.pair("System", &opened.system).pair("Version", opened.version.as_deref().unwrap_or_default());
    html.pair("Happened", opened.time.as_deref().unwrap_or_default()).pair("Opened", incident.opened_at());
    html.pair("Opened by", opened.source.word()).pair("Ends at", &opened.at.join(", "));
    html.raw("</dl>");
    for link in opened.links.iter().filter(|link| is_address(link)) {
        html.raw("<p><a rel=\"noreferrer noopener\"")
            .attribute("href", link)
            .raw(">")
            .text(link)
            .raw("</a></p>");
    }
    html.raw("<h2>Work</h2><p>").text(&view::standing(incident)).raw("</p>");
    if let Work::Held { stage } = incident.work() {
        let at = Stage::ALL.iter().position(|known| *known == stage).unwrap_or(0) + 1;
        let since = beat.map(|beat| format!(", {:.0} s", beat.seconds)).unwrap_or_default();
        html.raw("<p role=\"status\">").text(&format!(
            "stage {at} of {}: {}{since}; attempt {}",
            Stage::ALL.len(),
            stage.word(),
            incident.attempt()
        ));
        html.raw("</p>");
    }
    if matches!(incident.work(), Work::Failed { .. }) && !incident.said().is_empty() {
        html.raw("<pre>").text(incident.said()).raw("</pre>");
    }
    if !incident.work().is_open() {
        html.raw("<form class=\"act\" method=\"post\"")
            .attribute("action", &format!("/i/{}/retry", opened.id));
        html.raw("><button>Work on it again</button></form>");
    }
    told(&mut html, incident, story);
    reproduce(&mut html, incident);
    end(html)
}

/// The steps, what is proven, and what is not known.
fn told(html: &mut Html, incident: &Incident, story: &[String]) {
    let findings = incident.findings();
    let id = incident.opened().id;
    if view::file(incident, "page").is_some() {
        html.raw("<nav class=\"act\" aria-label=\"Files\">");
        html.link(&format!("/i/{id}/page"), "Step through it on its page");
        html.raw("</nav>");
    }
    if !story.is_empty() {
        html.raw("<h2>What happened</h2><p>").text(&size(incident)).raw("</p><ol class=\"steps\">");
        let count = story.len();
        for (at, step) in story.iter().enumerate() {
            let number = at + 1;
            html.raw("<li").attribute("id", &format!("s{number}")).raw(">");
            let mut lines = step.lines();
            html.text(&lines.next().unwrap_or_default().replace("**", ""));
            for line in lines {
                html.raw("<br><span class=\"soft\">").text(line).raw("</span>");
            }
            html.raw("<br>");
            if number > 1 {
                html.link(&format!("#s{}", number - 1), "Previous");
            }
            if number < count {
                html.link(&format!("#s{}", number + 1), "Next");
            }
            html.raw("</li>");
        }
        html.raw("</ol>");
    }
    if !findings.cause.is_empty() {
        html.raw("<h2>What it needs</h2><p>Without any of these it does not happen:</p><ul>");
        for name in &findings.cause {
            html.raw("<li>").text(name).raw("</li>");
        }
        html.raw("</ul>");
    }
    if !findings.proven.is_empty() {
        html.raw("<h2>What is proven</h2><p>").text(&findings.proven);
        html.raw(if findings.verified {
            " <span class=\"good\">Checked from scratch.</span>"
        } else {
            " Not checked yet."
        });
        html.raw("</p>");
    }
    if !findings.doubts.is_empty() {
        html.raw("<h2>What is not known</h2><ul>");
        for doubt in &findings.doubts {
            html.raw("<li>").text(doubt).raw("</li>");
        }
        html.raw("</ul>");
    }
}

fn size(incident: &Incident) -> String {
    let ([steps, deliveries, externals], [initial, ..]) =
        (incident.findings().size, incident.findings().initial);
    format!(
        "{steps} steps with {deliveries} deliveries and {externals} external events, of {initial} recorded steps."
    )
}

fn reproduce(html: &mut Html, incident: &Incident) {
    let id = incident.opened().id;
    if view::file(incident, "schedule").is_none() {
        return;
    }
    html.raw("<h2>How to reproduce it</h2><nav class=\"act\" aria-label=\"Files to reproduce it\">");
    for (kind, label) in [
        ("schedule", "Schedule"),
        ("certificate", "Certificate"),
        ("summary", "Summary"),
        ("trace", "Steps as text"),
        ("shiviz", "ShiViz log"),
    ] {
        if view::file(incident, kind).is_some() {
            html.link(&format!("/v1/incidents/{id}/{kind}"), label);
        }
    }
    for (language, label) in
        [("python", "Test in Python"), ("javascript", "Test in JavaScript"), ("rust", "Test in Rust")]
    {
        if view::file(incident, &format!("test-{language}")).is_some() {
            html.link(&format!("/v1/incidents/{id}/test?language={language}"), label);
        }
    }
    html.link(&format!("/v1/incidents/{id}/bundle"), "All of it as one file");
    html.raw("</nav><pre>demi-lineage replay schedule.jsonl --scenario YOUR-SCENARIO.toml --strict\ndemi-lineage incident show ");
    html.text(&id.short()).raw(" --store STORE</pre>");
}

/// A page that says why something is not there.
#[must_use]
pub fn failed(title: &str, text: &str) -> String {
    let mut html = begin(title, false);
    html.raw("<h1>").text(title).raw("</h1><p class=\"bad\">").text(text).raw("</p>");
    end(html)
}

/// Who a browser is to this service.
#[derive(Clone, Copy, Debug)]
pub enum Session<'a> {
    /// It has shown no token.
    None,
    /// It has just shown a wrong one.
    Wrong,
    /// Nobody is asked for a token.
    NotAsked,
    /// It is logged in.
    Of {
        /// The name that stands beside its token; empty where there is none.
        name: &'a str,
        /// What it may do, as a word.
        role: &'static str,
    },
}

/// The page on which a browser shows its token, and on which it logs out.
#[must_use]
pub fn login(session: Session<'_>) -> String {
    let mut html = begin("Session", false);
    match session {
        Session::NotAsked => {
            html.raw("<h1>Session</h1><p>This service asks for no token: whoever reaches it may do everything.</p>");
            return end(html);
        }
        Session::Of { name, role } => {
            html.raw("<h1>Session</h1><p>You are logged in");
            if !name.is_empty() {
                html.raw(" as ").text(name);
            }
            html.raw(", and may do what the role <b>").raw(role).raw("</b> may do.</p>");
            html.raw(
                "<form class=\"act\" method=\"post\" action=\"/logout\"><button>Log out</button></form>",
            );
            return end(html);
        }
        Session::Wrong => {
            html.raw("<h1>Log in</h1><p class=\"bad\" role=\"alert\">This is no token of this service.</p>");
        }
        Session::None => {
            html.raw("<h1>Log in</h1>");
        }
    }
    html.raw("<form class=\"act\" method=\"post\" action=\"/login\"><input name=\"token\" type=\"password\" required autocomplete=\"current-password\" aria-label=\"Token\" placeholder=\"Token\"><button>Log in</button></form>");
    end(html)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::{Entry, Event, Findings, Opened, Outcome, Output, Source, Told};
    use crate::id::IncidentId;

    #[test]
    fn the_next_page_is_of_the_same_search() {
        let filter = Filter { q: Some("a&b ü".to_owned()), bug: Some(7), ..Filter::default() };
        assert_eq!(filter.in_query(), "bug=B-7&q=a%26b%20%C3%BC&");
        assert_eq!(Filter::default().in_query(), "");
    }

    /// A state with one incident in which every text is this one.
    fn state_of(text: &str) -> State {
        let text = text.to_owned();
        let id = IncidentId::of(&["x"]);
        let mut opened = Opened::new(id, Source::Api { by: text.clone() }, text.clone());
        (opened.invariant, opened.holds, opened.title) = (text.clone(), text.clone(), text.clone());
        opened.affected = vec![text.clone()];
        opened.at = vec![text.clone()];
        opened.links = vec![text.clone(), format!("https://{text}")];
        (opened.version, opened.time) = (Some(text.clone()), Some(text.clone()));
        let findings = Findings {
            violation: vec![text.clone()],
            doubts: vec![text.clone()],
            proven: text.clone(),
            cause: [text.clone()].into(),
            symptom: text.clone(),
            outputs: vec![Output { name: format!("{text}/page.html"), digest: text.clone() }],
            ..Findings::default()
        };
        let events = vec![
            Event::Opened(Box::new(opened)),
            Event::Claimed { id, attempt: 1, worker: text.clone() },
            Event::Done { id, attempt: 1, outcome: Outcome::Minimized, findings: Box::new(findings) },
            Event::Grouped { id, bug: None, keys: vec![text.clone()], why: text.clone(), nearest: None },
            Event::Noted { bug: 1, by: text.clone(), text: text.clone() },
            Event::Closed { bug: 1, by: text.clone(), fixed_in: Some(text.clone()), checked: false },
        ];
        let mut state = State::default();
        let entry = Entry {
            v: 1,
            n: 1,
            by: text.clone(),
            tag: String::new(),
            at: text,
            events: events.into_iter().map(Told::Known).collect(),
        };
        state.apply(&entry);
        assert_eq!(state.left_out(), (0, 0));
        state
    }

    /// Tags and their attributes by name; each value ends where it should.
    fn markup(page: &str) -> Vec<(String, Vec<String>)> {
        let mut tags = Vec::new();
        for part in page.split('<').skip(1) {
            let (inside, text) = part.split_once('>').expect("a tag ends");
            assert!(!text.contains('"'), "no quote stands in a text: {text}");
            let quotes: Vec<&str> = inside.split('"').collect();
            assert!(quotes.len() % 2 == 1, "{inside}");
            let names: String = quotes.iter().step_by(2).copied().collect::<Vec<_>>().join(" ");
            let mut words = names.split_whitespace().map(str::to_owned);
            tags.push((words.next().unwrap_or_default(), words.collect()));
        }
        tags
    }

    fn pages(state: &State, q: &str) -> Vec<String> {
        let filter = Filter { q: Some(q.to_owned()), ..Filter::default() };
        let one = state.incidents().values().next().unwrap();
        vec![
            bugs(state, &filter, 0),
            incidents(state, &filter, None),
            bug(state, 1, &[q.to_owned()]).unwrap(),
            incident(one, &[q.to_owned()], None),
            failed(q, q),
        ]
    }

    proptest! {
        /// Whatever stands in a field, the tags of every page are those of a harmless text.
        #[test]
        fn no_text_becomes_markup(text in "[<>&\"'/= a-z\\PC]{1,40}") {
            let harmless = state_of("word");
            let odd = state_of(&text);
            for (page, other) in pages(&harmless, "word").iter().zip(pages(&odd, &text)) {
                let (expected, found) = (markup(page), markup(&other));
                // A text that holds a line end has lines of its own; nothing else may come in.
                prop_assert_eq!(expected.len(), found.len(), "{}", other);
                prop_assert_eq!(expected, found);
            }
        }
    }

    #[test]
    fn no_page_runs_a_script_or_leads_to_one() {
        let state = state_of("javascript:alert(1)");
        for page in pages(&state, "javascript:alert(1)") {
            assert!(!page.contains("<script") && !page.contains("href=\"javascript"), "{page}");
            assert!(!markup(&page).iter().flat_map(|(_, names)| names).any(|name| name.starts_with("on")));
        }
        assert!(!STYLE.contains("url(") && !STYLE.contains("@import"));
    }

    #[test]
    fn a_text_cannot_turn_the_direction_of_others() {
        let mut html = Html::default();
        html.text("a\u{202e}b");
        assert_eq!(html.0, "a\\u{202e}b");
    }
}
