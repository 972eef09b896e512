//! Pages and requests.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::io::Seek as _;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Extension, Path, RawQuery, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Redirect, Response, sse};
use axum::routing::{self, get, post};
use demi_common::stays_inside;
use demi_formats::mapping::{Mapper, Mapping};
use demi_formats::{Fate, Source as LogSource, Sources};
use demi_incidents::bundle::{self, BundleError};
use demi_incidents::event::{Event, Input, Opened, Source};
use demi_incidents::forget;
use demi_incidents::sources::{Alerts, Request as OpenRequest};
use demi_incidents::uploads::{Incoming, NotTaken};
use demi_incidents::view::{self, Filter, PAGE};
use demi_incidents::{Anywhere, IncidentId, Journal, JournalError, Objects, Place, digest_of, page};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use url::form_urlencoded;

use super::config::Settings;
use super::openapi::{
    self, ActionBody, AlertsAnswer, Api, Bugs, Content, Incidents, OpenedAnswer, Problem, PurgeBody, Purged,
    TestAnswer, UploadAnswer, Written, of,
};
use super::replays::{self, ReplaysAnswer, ReplaysBody, Runs};
use super::shared::Shared;
use super::tell;
use crate::net::guard;
use crate::net::security::{Role, Tokens};
use crate::shutdown::Shutdown;
use crate::sources::web::bearer;

/// Longest body, in bytes.
const LONGEST: usize = 256 * 1024;
/// How many logs may come in at the same time, and how many of them may be unpacked to see what is in them.
const UPLOADS: usize = 32;
const UNPACKED: usize = 2;
/// How many bundles may be made at the same time.
const BUNDLES: usize = 1;
/// How many receivers may be tested at the same time.
const TESTS: usize = 1;
/// How many may listen to the journal at the same time.
const LISTENERS: usize = 64;
/// How often it is looked for who listens whether there is something new.
const LOOK: Duration = Duration::from_millis(500);
/// After how long whoever listens is shown that the connection lives.
const ALIVE: Duration = Duration::from_secs(15);
/// Bytes of a file that are read at a time.
const READ: usize = 256 * 1024;
/// How long it is waited for the next piece of a log, and how many bytes a second it has to bring on the whole after that time.
const PIECE: Duration = Duration::from_secs(30);
const SLOWEST: u64 = 8 * 1024;
/// How long whoever shows a wrong token waits for the answer.
const GUESS: Duration = Duration::from_millis(500);
/// Most sessions of browsers that are remembered.
const SESSIONS: usize = 1024;
/// How long a browser stays logged in, in seconds.
const SESSION_SECONDS: u64 = 12 * 3600;
/// Most bytes of incidents that are opened by one entry of the journal.
const ENTRY: usize = 256 * 1024;
/// Most incidents of one answer.
const MOST: usize = 500;

/// Parameters of a list of incidents.
const LISTED: [&str; 10] =
    ["system", "bug", "work", "invariant", "version", "since", "until", "q", "limit", "after"];
/// Parameters of a list of bugs.
const BUGS: [&str; 4] = ["system", "status", "invariant", "q"];
/// Parameters of a log that is sent.
const UPLOADED: [&str; 5] = ["system", "mapping", "invariant", "title", "version"];

/// Headers of every answer, where it has no others.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // With "no-referrer" browsers hide the origin of forms from this service too.
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (header::CONTENT_SECURITY_POLICY, page::POLICY),
];

/// What requests share.
#[derive(Clone)]
struct Web {
    shared: Arc<Shared>,
    tokens: Tokens,
    sessions: Arc<Mutex<Sessions>>,
    wishes: Arc<Mutex<Vec<Wish>>>,
    /// How many more logs may come in at the same time.
    uploads: Arc<Semaphore>,
    unpacked: Arc<Semaphore>,
    bundles: Arc<Semaphore>,
    listeners: Arc<Semaphore>,
    tests: Arc<Semaphore>,
    replays: Runs,
    shutdown: Shutdown,
    encrypted: bool,
}

/// Browsers and the tokens that they showed, by what they were given for it. A restart asks them again. A token that is not valid any more opens
/// nothing.
#[derive(Default)]
struct Sessions {
    known: VecDeque<([u8; 16], std::time::Instant, Vec<u8>)>,
}

impl Sessions {
    fn add(&mut self, token: &[u8]) -> String {
        let mut bytes = [0; 32];
        // Without randomness nobody logs in.
        if rustls::crypto::aws_lc_rs::default_provider().secure_random.fill(&mut bytes).is_err() {
            return String::new();
        }
        if self.known.len() >= SESSIONS {
            self.known.pop_front();
        }
        self.known.push_back((digest_of(&[bytes]), std::time::Instant::now(), token.to_owned()));
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn token(&self, shown: &str) -> Option<Vec<u8>> {
        let bytes: Option<Vec<u8>> = (0..shown.len() / 2)
            .map(|at| shown.get(2 * at..2 * at + 2).and_then(|two| u8::from_str_radix(two, 16).ok()))
            .collect();
        let bytes = bytes.filter(|bytes| bytes.len() == 32)?;
        // What is compared is a digest, so that the time it takes tells nothing.
        let shown = digest_of(&[bytes]);
        let found = self
            .known
            .iter()
            .find(|(known, since, _)| *known == shown && since.elapsed().as_secs() < SESSION_SECONDS);
        found.map(|(_, _, token)| token.clone())
    }

    /// Forgets every session that showed this token here.
    fn end(&mut self, shown: &str) {
        if let Some(token) = self.token(shown) {
            self.known.retain(|(.., of)| *of != token);
        }
    }
}

/// The routes.
pub(super) fn router(shared: Arc<Shared>, tokens: Tokens, shutdown: Shutdown, encrypted: bool) -> Router {
    let most = |count| Arc::new(Semaphore::new(count));
    let web = Web {
        shared,
        tokens,
        sessions: Arc::default(),
        wishes: Arc::default(),
        uploads: most(UPLOADS),
        unpacked: most(UNPACKED),
        bundles: most(BUNDLES),
        listeners: most(LISTENERS),
        tests: most(TESTS),
        replays: Runs::default(),
        shutdown,
        encrypted,
    };
    Router::new()
        .route("/", get(list_of_bugs))
        .route("/incidents", get(list_of_incidents))
        .route("/b/{number}", get(bug_page))
        .route("/b/{number}/{action}", post(bug_form))
        .route("/i/{id}", get(incident_page))
        .route("/i/{id}/page", get(report_page))
        .route("/i/{id}/retry", post(retry_form))
        .merge(api().into_iter().fold(Router::new(), |router, api| router.route(api.path, api.handler)))
        .layer(from_fn_with_state(web.clone(), allowed))
        // What needs no token.
        .route("/login", get(session).post(login))
        .route("/logout", post(logout))
        .route("/healthz", get(async || "ok\n"))
        .route("/assets/{name}", get(style))
        .layer(DefaultBodyLimit::max(LONGEST))
        .layer(axum::middleware::from_fn(headers))
        .with_state(web)
}

async fn headers(request: Request, next: Next) -> Response {
    let of_programs = request.uri().path().starts_with("/v1/");
    let mut response = next.run(request).await;
    let (status, kind) = (response.status(), response.headers().get(header::CONTENT_TYPE));
    let plain = kind.is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"));
    if of_programs && plain && (status.is_client_error() || status.is_server_error()) {
        let text = match status {
            StatusCode::NOT_FOUND => "there is no such request; /v1/openapi.json lists those that there are",
            StatusCode::METHOD_NOT_ALLOWED => "this path takes other methods, which the header Allow names",
            StatusCode::PAYLOAD_TOO_LARGE => "the body is longer than this request may be",
            _ => "the request cannot be answered",
        };
        let allow = response.headers_mut().remove(header::ALLOW);
        response = problem(status, text);
        response.headers_mut().extend(allow.map(|allow| (header::ALLOW, allow)));
    }
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// The requests that programs make.
fn api() -> Vec<Api<Web>> {
    let get = |path, about, query, content, handler| Api {
        method: Method::GET,
        path,
        about,
        role: Role::Viewer,
        query,
        body: Content::Nothing,
        answer: (StatusCode::OK, content),
        handler,
    };
    let post = |path, about, role, body, answer, handler| Api {
        method: Method::POST,
        path,
        about,
        role,
        query: &[],
        body,
        answer,
        handler,
    };
    let json = Content::Json;
    let written = (StatusCode::ACCEPTED, json(of::<Written>));
    let sent = post(
        "/v1/uploads",
        "Takes a log, plain or packed by gzip or zstd, and opens an incident of it.",
        Role::Reporter,
        Content::Bytes("application/octet-stream"),
        (StatusCode::ACCEPTED, json(of::<UploadAnswer>)),
        routing::post(upload),
    );
    vec![
        get(
            "/v1/incidents",
            "Lists incidents, newest first.",
            &LISTED,
            json(of::<Incidents>),
            routing::get(incidents),
        ),
        post(
            "/v1/incidents",
            "Opens an incident; 200 where it was known.",
            Role::Reporter,
            json(of::<OpenRequest>),
            (StatusCode::CREATED, json(of::<OpenedAnswer>)),
            routing::post(open),
        ),
        get("/v1/incidents/{id}", "Shows an incident.", &[], json(of::<view::Full>), routing::get(incident)),
        post(
            "/v1/incidents/{id}/retry",
            "Works on an incident again.",
            Role::Operator,
            Content::Nothing,
            written,
            routing::post(retry),
        ),
        get(
            "/v1/incidents/{id}/{kind}",
            "A file of an incident: schedule, certificate, summary, trace, shiviz, test (in the language python, javascript or rust), or bundle, which is all of it as tar.zst.",
            &["language"],
            Content::Bytes("text/plain"),
            routing::get(file),
        ),
        get("/v1/bugs", "Lists bugs, open ones first.", &BUGS, json(of::<Bugs>), routing::get(bugs)),
        get("/v1/bugs/{number}", "Shows a bug.", &[], json(of::<view::BugView>), routing::get(bug)),
        post(
            "/v1/bugs/{number}/{action}",
            "Says something of a bug: ack, close, reopen, mute, unmute, note, priority, merge or split; 409 where that cannot be done now.",
            Role::Operator,
            json(of::<ActionBody>),
            written,
            routing::post(bug_action),
        ),
        post(
            "/v1/alertmanager",
            "Opens incidents of alerts, as Alertmanager's webhook sends them.",
            Role::Reporter,
            json(of::<Alerts>),
            (StatusCode::OK, json(of::<AlertsAnswer>)),
            routing::post(alertmanager),
        ),
        Api { query: &UPLOADED, ..sent },
        get(
            "/v1/stats",
            "How many incidents, bugs and messages are in which state.",
            &[],
            json(of::<Value>),
            routing::get(stats),
        ),
        get(
            "/v1/events",
            "Tells each entry of the journal after the one whose number is `after`, or Last-Event-ID, as it comes.",
            &["after"],
            Content::Bytes("text/event-stream"),
            routing::get(events),
        ),
        get(
            "/v1/workers",
            "The attempts that are being made, with their last signs of life.",
            &[],
            json(of::<Vec<view::WorkerView>>),
            routing::get(workers),
        ),
        get(
            "/v1/models",
            "The models that incidents were worked on with.",
            &[],
            json(of::<Vec<view::ModelView>>),
            routing::get(async |State(web): State<Web>, headers: HeaderMap| {
                web.json(&headers, |journal, _| serde_json::to_value(view::models(&journal.state())).ok())
                    .await
            }),
        ),
        get(
            "/v1/receivers",
            "What became of the messages, by receiver.",
            &[],
            json(of::<Vec<view::ReceiverView>>),
            routing::get(async |State(web): State<Web>, headers: HeaderMap| {
                web.json(&headers, |journal, _| serde_json::to_value(view::receivers(&journal.state())).ok())
                    .await
            }),
        ),
        post(
            "/v1/receivers/{name}/test",
            "Sends a receiver of the configuration a message that says that it is a test, once; 502 where it is not taken.",
            Role::Admin,
            Content::Nothing,
            (StatusCode::OK, json(of::<TestAnswer>)),
            routing::post(test_receiver),
        ),
        post(
            "/v1/replays",
            "Begins to replay the schedules of known bugs on a model of the configuration; 429 while others are being replayed.",
            Role::Operator,
            json(of::<ReplaysBody>),
            (StatusCode::ACCEPTED, json(of::<ReplaysAnswer>)),
            routing::post(replay),
        ),
        get(
            "/v1/replays/{id}",
            "Shows how far a replay of known bugs came, and its verdicts.",
            &[],
            json(of::<ReplaysAnswer>),
            routing::get(async |State(web): State<Web>, Path(id): Path<String>| {
                match replays::of(&web.replays, &id) {
                    Some(run) => axum::Json(run).into_response(),
                    None => problem(StatusCode::NOT_FOUND, "there is no such replay; a restart forgets them"),
                }
            }),
        ),
        post(
            "/v1/purge",
            "Forgets incidents for good: all of a system, all in which an actor's name stands, all that were opened before a day, or those of them that are all of what is named.",
            Role::Admin,
            json(of::<PurgeBody>),
            (StatusCode::ACCEPTED, json(of::<Purged>)),
            routing::post(purge),
        ),
        get("/v1/openapi.json", "This document.", &[], json(of::<Value>), routing::get(document)),
    ]
}

async fn document() -> Response {
    axum::Json(openapi::document(&api())).into_response()
}

/// The role that each request of programs needs, by its method and the parts of its path.
static ROLES: LazyLock<Vec<(Method, Vec<&str>, Role)>> = LazyLock::new(|| {
    api().into_iter().map(|api| (api.method, api.path.split('/').collect(), api.role)).collect()
});

/// The role that a request needs.
fn needed(method: &Method, path: &str) -> Role {
    let reads = method == Method::GET || method == Method::HEAD;
    let asked: Vec<&str> = path.split('/').collect();
    let fits = |parts: &[&str]| {
        parts.len() == asked.len()
            && parts.iter().zip(&asked).all(|(part, asked)| part.starts_with('{') || part == asked)
    };
    match ROLES.iter().find(|(of, parts, _)| of == method && fits(parts)) {
        Some((.., role)) => *role,
        None if reads => Role::Viewer,
        None => Role::Operator,
    }
}

/// Who shows no token, and no session for one, is asked for it. A session counts for no request of another page. Who may not do what they ask for is
/// told so.
async fn allowed(State(web): State<Web>, mut request: Request, next: Next) -> Response {
    let role = needed(request.method(), request.uri().path());
    let holder = match web.tokens.holder(bearer(request.headers())) {
        Some(holder) => holder,
        None => {
            let (parts, body) = request.into_parts();
            if bearer(&parts.headers).is_some() {
                tokio::time::sleep(GUESS).await;
            }
            let token = cookie(&parts.headers)
                .and_then(|shown| web.sessions.lock().unwrap_or_else(PoisonError::into_inner).token(shown));
            let Some(holder) = token.and_then(|token| web.tokens.holder(Some(&token))) else {
                let wants_page = parts.method == Method::GET && !parts.uri.path().starts_with("/v1/");
                return match wants_page {
                    true => Redirect::to("/login").into_response(),
                    false => {
                        problem(StatusCode::UNAUTHORIZED, "show a token, as Authorization: Bearer TOKEN")
                    }
                };
            };
            if !guard::own_page(&parts) {
                return problem(StatusCode::FORBIDDEN, "this request comes from a page of another origin");
            }
            request = Request::from_parts(parts, body);
            holder
        }
    };
    if !holder.role.may(role) {
        let text =
            format!("this needs the role {}, and the token is a {}'s", role.word(), holder.role.word());
        return problem(StatusCode::FORBIDDEN, &text);
    }
    let name = match holder.name.is_empty() {
        true if request.uri().path().starts_with("/v1/") => "api".to_owned(),
        true => "page".to_owned(),
        false => holder.name,
    };
    request.extensions_mut().insert(Who(name));
    next.run(request).await
}

/// The name of whoever asks.
#[derive(Clone)]
struct Who(String);

/// The name of the cookie; browsers take one with this beginning only over TLS, for all paths and this host alone.
const fn cookie_name(encrypted: bool) -> &'static str {
    if encrypted { "__Host-demi" } else { "demi" }
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(';')).find_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        [cookie_name(true), cookie_name(false)].contains(&name).then_some(value)
    })
}

async fn login(State(web): State<Web>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if !guard::own_page(&parts) {
        return problem(StatusCode::FORBIDDEN, "this request comes from a page of another origin");
    }
    let Ok(body) = axum::body::to_bytes(body, 4096).await else {
        return problem(StatusCode::PAYLOAD_TOO_LARGE, "the form is too long");
    };
    let form = pairs(&body);
    let token = form.get("token").map(String::as_bytes).unwrap_or_default();
    let holder = web.tokens.holder(Some(token)).filter(|_| web.tokens.required());
    if holder.is_none() {
        // Guessing takes its time.
        tokio::time::sleep(GUESS).await;
        let text = page::login(page::Session::Wrong);
        return (StatusCode::UNAUTHORIZED, html(text)).into_response();
    }
    let session = web.sessions.lock().unwrap_or_else(PoisonError::into_inner).add(token);
    let secure = if web.encrypted { "; Secure" } else { "" };
    let name = cookie_name(web.encrypted);
    let cookie =
        format!("{name}={session}; Path=/; HttpOnly; SameSite=Strict; Max-Age={SESSION_SECONDS}{secure}");
    let mut response = Redirect::to("/").into_response();
    if let Ok(value) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
    response
}

/// Who is logged in, or the form to do so.
async fn session(State(web): State<Web>, headers: HeaderMap) -> Response {
    if !web.tokens.required() {
        return html(page::login(page::Session::NotAsked));
    }
    let token = cookie(&headers)
        .and_then(|shown| web.sessions.lock().unwrap_or_else(PoisonError::into_inner).token(shown));
    let holder = token.and_then(|token| web.tokens.holder(Some(&token)));
    html(page::login(match &holder {
        Some(holder) => page::Session::Of { name: &holder.name, role: holder.role.word() },
        None => page::Session::None,
    }))
}

/// Ends the session of a browser, and all others of its token.
async fn logout(State(web): State<Web>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    if !guard::own_page(&parts) {
        return problem(StatusCode::FORBIDDEN, "this request comes from a page of another origin");
    }
    if let Some(shown) = cookie(&parts.headers) {
        web.sessions.lock().unwrap_or_else(PoisonError::into_inner).end(shown);
    }
    let secure = if web.encrypted { "; Secure" } else { "" };
    let cookie =
        format!("{}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0{secure}", cookie_name(web.encrypted));
    let mut response = Redirect::to("/login").into_response();
    if let Ok(value) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
    response
}

async fn style(Path(name): Path<String>) -> Response {
    if page::style_path() != format!("/assets/{name}") {
        return StatusCode::NOT_FOUND.into_response();
    }
    let headers = [
        (header::CONTENT_TYPE, "text/css; charset=utf-8"),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
    ];
    (headers, page::STYLE).into_response()
}

fn html(text: String) -> Response {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], text).into_response()
}

/// An error as RFC 9457 has it.
fn problem(status: StatusCode, text: &str) -> Response {
    let body = Problem { status: status.as_u16(), title: status.canonical_reason(), detail: text.to_owned() };
    let mut response = (status, axum::Json(body)).into_response();
    let kind = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// A page that says what is missing.
fn missing() -> Response {
    let text = page::failed("Not found", "There is nothing of this name.");
    (StatusCode::NOT_FOUND, html(text)).into_response()
}

fn pairs(text: &[u8]) -> BTreeMap<String, String> {
    form_urlencoded::parse(text).map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

fn query(raw: RawQuery) -> BTreeMap<String, String> {
    pairs(raw.0.unwrap_or_default().as_bytes())
}

fn filter(query: &BTreeMap<String, String>) -> Filter {
    let of = |name: &str| query.get(name).filter(|value| !value.is_empty()).cloned();
    Filter {
        system: of("system"),
        invariant: of("invariant"),
        work: of("work"),
        status: of("status"),
        bug: of("bug").and_then(|bug| bug.trim_start_matches("B-").parse().ok()),
        version: of("version"),
        since: of("since"),
        until: of("until"),
        q: of("q"),
    }
}

impl Web {
    /// Asks the journal, after everything that is in it, on a thread that may wait for a disk.
    async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut Journal<Anywhere>, &Place) -> T + Send + 'static,
    ) -> Result<T, Response> {
        let shared = self.shared.clone();
        let work = move || {
            let mut journal = shared.journal();
            journal.follow().map_err(|error| error.to_string())?;
            Ok(ask(&mut journal, &shared.place))
        };
        let done: Result<Result<T, String>, _> = tokio::task::spawn_blocking(work).await;
        done.map_err(|_| problem(StatusCode::INTERNAL_SERVER_ERROR, "the request could not be answered"))?
            .map_err(|error| problem(StatusCode::SERVICE_UNAVAILABLE, &error))
    }

    /// JSON of the journal, with its number as the tag: who has it needs no other.
    async fn json(
        &self,
        headers: &HeaderMap,
        ask: impl FnOnce(&mut Journal<Anywhere>, &Place) -> Option<Value> + Send + 'static,
    ) -> Response {
        let asked = self.ask(|journal, place| {
            let value = ask(journal, place);
            (journal.state().last(), value)
        });
        let (last, value) = match asked.await {
            Ok(found) => found,
            Err(response) => return response,
        };
        let Some(value) = value else {
            return problem(StatusCode::NOT_FOUND, "there is nothing of this name");
        };
        let tag = format!("\"{last}\"");
        let known =
            headers.get(header::IF_NONE_MATCH).is_some_and(|shown| shown.as_bytes() == tag.as_bytes());
        let mut response = match known {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => axum::Json(value).into_response(),
        };
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            response.headers_mut().insert(header::ETAG, tag);
        }
        response
    }

    /// Writes what somebody says; whether it was valid.
    async fn say(&self, event: Event) -> Result<Option<u64>, Response> {
        let said = self.ask(move |journal, _| journal.say(event).map_err(|error| error.to_string())).await?;
        said.map_err(|error| problem(StatusCode::SERVICE_UNAVAILABLE, &error))
    }
}

async fn list_of_bugs(State(web): State<Web>, raw: RawQuery) -> Response {
    let query = query(raw);
    let from = query.get("from").and_then(|from| from.parse().ok()).unwrap_or(0);
    let text = web.ask(move |journal, _| page::bugs(&journal.state(), &filter(&query), from)).await;
    text.map_or_else(|response| response, html)
}

async fn list_of_incidents(State(web): State<Web>, raw: RawQuery) -> Response {
    let query = query(raw);
    let after = query.get("after").and_then(|id| id.parse().ok());
    let text = web.ask(move |journal, _| page::incidents(&journal.state(), &filter(&query), after)).await;
    text.map_or_else(|response| response, html)
}

async fn bug_page(State(web): State<Web>, Path(number): Path<String>) -> Response {
    let Ok(number) = number.parse() else { return missing() };
    let text = web.ask(move |journal, _| {
        let stands = journal.state().bug(number)?.1.representative();
        let story = journal.story(stands).unwrap_or_default();
        page::bug(&journal.state(), number, &story)
    });
    match text.await {
        Ok(Some(text)) => html(text),
        Ok(None) => missing(),
        Err(response) => response,
    }
}

async fn incident_page(State(web): State<Web>, Path(name): Path<String>) -> Response {
    let text = web.ask(move |journal, _| {
        let id = journal.state().find(&name)?;
        let story = journal.story(id).unwrap_or_default();
        let state = journal.state();
        let incident = state.incidents().get(&id)?;
        let lease = Place::lease(id, incident.attempt());
        let beat = journal.objects().read(&lease).ok().flatten();
        let beat = beat.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Some(page::incident(incident, &story, beat.as_ref()))
    });
    match text.await {
        Ok(Some(text)) => html(text),
        Ok(None) => missing(),
        Err(response) => response,
    }
}

/// The bytes of a published file. Its name comes from the journal, never from the request.
async fn published(web: &Web, name: String, kind: String) -> Result<Option<Vec<u8>>, Response> {
    let path = web.ask(move |journal, place| {
        let state = journal.state();
        let id = state.find(&name)?;
        let incident = state.incidents().get(&id)?;
        let file = view::file(incident, &kind)?;
        stays_inside(std::path::Path::new(&file)).then(|| place.data(id).join(file))
    });
    // Others need not wait for a large file, or one that comes from elsewhere.
    let (path, place) = (path.await?, web.shared.place.clone());
    let read = move |path: std::path::PathBuf| {
        if !path.exists() {
            place.bring(&path).ok()?;
        }
        std::fs::read(path).ok()
    };
    Ok(match path {
        Some(path) => tokio::task::spawn_blocking(move || read(path)).await.ok().flatten(),
        None => None,
    })
}

/// The page of a result has a script of its own, and stands in a sandbox: it can do nothing here.
async fn report_page(State(web): State<Web>, Path(name): Path<String>) -> Response {
    match published(&web, name, "page".to_owned()).await {
        Ok(Some(bytes)) => {
            let headers = [
                (header::CONTENT_TYPE, "text/html; charset=utf-8"),
                (
                    header::CONTENT_SECURITY_POLICY,
                    // It may come from elsewhere, in a bundle: it asks for nothing, and sends nothing.
                    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                     img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
                ),
            ];
            (headers, bytes).into_response()
        }
        Ok(None) => missing(),
        Err(response) => response,
    }
}

async fn file(State(web): State<Web>, Path((name, kind)): Path<(String, String)>, raw: RawQuery) -> Response {
    let file_type = match kind.as_str() {
        "schedule" => "application/x-ndjson",
        "certificate" | "summary" => "application/json",
        _ => "text/plain; charset=utf-8",
    };
    let kind = match kind.as_str() {
        "bundle" => return bundled(&web, name).await,
        "test" => format!("test-{}", query(raw).get("language").map_or("python", String::as_str)),
        _ => kind,
    };
    // A page is shown in its sandbox alone.
    if kind == "page" {
        return problem(StatusCode::NOT_FOUND, "the page is at /i/ID/page");
    }
    match published(&web, name, kind).await {
        Ok(Some(bytes)) => ([(header::CONTENT_TYPE, file_type)], bytes).into_response(),
        Ok(None) => problem(StatusCode::NOT_FOUND, "there is nothing of this name"),
        Err(response) => response,
    }
}

/// An incident as one file. It is made anew each time, and only one at a time: an execution may be large.
async fn bundled(web: &Web, name: String) -> Response {
    let Ok(room) = web.bundles.clone().try_acquire_owned() else {
        return problem(StatusCode::TOO_MANY_REQUESTS, "another bundle is being made; try again later");
    };
    let found = web.ask(move |journal, _| {
        let state = journal.state();
        state.incidents().get(&state.find(&name)?).cloned()
    });
    let incident = match found.await {
        Ok(Some(incident)) => incident,
        Ok(None) => return problem(StatusCode::NOT_FOUND, "there is no such incident"),
        Err(response) => return response,
    };
    let (place, id) = (web.shared.place.clone(), incident.opened().id);
    let made = tokio::task::spawn_blocking(move || -> Result<std::fs::File, BundleError> {
        std::fs::create_dir_all(place.root())?;
        // It has no name, and goes with the last who has it open.
        let mut file = tempfile::tempfile_in(place.root())?;
        bundle::write(&incident, &place, std::io::BufWriter::new(&mut file))?;
        file.rewind()?;
        Ok(file)
    });
    let file = match made.await {
        Ok(Ok(file)) => file,
        Ok(Err(error @ BundleError::Nothing(_))) => {
            return problem(StatusCode::NOT_FOUND, &error.to_string());
        }
        Ok(Err(error)) => return problem(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
        Err(_) => return problem(StatusCode::INTERNAL_SERVER_ERROR, "the bundle could not be made"),
    };
    let pieces =
        futures::stream::unfold((tokio::fs::File::from_std(file), room), |(mut file, room)| async move {
            let mut piece = vec![0; READ];
            match file.read(&mut piece).await {
                Ok(0) => None,
                Ok(read) => {
                    piece.truncate(read);
                    Some((Ok(Bytes::from(piece)), (file, room)))
                }
                Err(error) => Some((Err(error), (file, room))),
            }
        });
    let named = format!("attachment; filename=\"demi-incident-{id}.tar.zst\"");
    let headers =
        [(header::CONTENT_TYPE, "application/zstd".to_owned()), (header::CONTENT_DISPOSITION, named)];
    (headers, Body::from_stream(pieces)).into_response()
}

/// Whoever listens to the journal: what is read and not told yet, and the number of the last that is read.
struct Listener {
    web: Web,
    read: VecDeque<sse::Event>,
    last: u64,
    _place: OwnedSemaphorePermit,
}

impl Listener {
    /// The next entry, when there is one; nothing where the daemon stops, or the journal cannot be read.
    async fn next(mut self) -> Option<(Result<sse::Event, Infallible>, Self)> {
        loop {
            if let Some(event) = self.read.pop_front() {
                return Some((Ok(event), self));
            }
            let last = self.last;
            let read = self.web.ask(move |journal, _| journal.entries(last + 1));
            for entry in read.await.ok()?.ok()? {
                self.last = entry.n;
                let data = serde_json::to_string(&entry).ok()?;
                self.read.push_back(sse::Event::default().id(entry.n.to_string()).data(data));
            }
            if self.read.is_empty() {
                let pause = self.web.shared.pause(LOOK);
                self.web.shutdown.unless(tokio::time::sleep(pause)).await?;
            }
        }
    }
}

/// Tells the journal as it grows.
async fn events(State(web): State<Web>, headers: HeaderMap, raw: RawQuery) -> Response {
    let Ok(place) = web.listeners.clone().try_acquire_owned() else {
        return problem(StatusCode::TOO_MANY_REQUESTS, "too many listen; try again later");
    };
    // A browser that comes again says what it had last.
    let known = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let asked = query(raw).get("after").map(|after| after.parse::<u64>());
    let last = match (known, asked) {
        (Some(last), _) | (None, Some(Ok(last))) => last,
        (None, Some(Err(_))) => return problem(StatusCode::UNPROCESSABLE_ENTITY, "after is no number"),
        (None, None) => match web.ask(|journal, _| journal.state().last()).await {
            Ok(last) => last,
            Err(response) => return response,
        },
    };
    let listener = Listener { web, read: VecDeque::new(), last, _place: place };
    let told = futures::stream::unfold(listener, Listener::next);
    sse::Sse::new(told).keep_alive(sse::KeepAlive::new().interval(ALIVE)).into_response()
}

async fn workers(State(web): State<Web>) -> Response {
    let asked = web.ask(|journal, _| {
        let objects = journal.objects();
        let beat = |id, attempt| {
            let bytes = objects.read(&Place::lease(id, attempt)).ok().flatten();
            bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok())
        };
        view::workers(&journal.state(), beat)
    });
    match asked.await {
        // Signs of life stand in no journal: its number is no tag of them.
        Ok(workers) => axum::Json(workers).into_response(),
        Err(response) => response,
    }
}

async fn purge(State(web): State<Web>, Extension(Who(by)): Extension<Who>, body: Bytes) -> Response {
    let wanted: PurgeBody = match serde_json::from_slice(&body) {
        Ok(wanted) => wanted,
        Err(error) => return problem(StatusCode::UNPROCESSABLE_ENTITY, &error.to_string()),
    };
    if let Some(why) = wanted.refused() {
        return problem(StatusCode::UNPROCESSABLE_ENTITY, why);
    }
    let purged = web.ask(move |journal, place| {
        let ids = wanted.which(journal, place)?;
        forget::purge(journal, place, &ids, &by)?;
        Ok::<_, JournalError>(Purged { journal: journal.state().last(), incidents: ids })
    });
    match purged.await {
        Ok(Ok(purged)) => (StatusCode::ACCEPTED, axum::Json(purged)).into_response(),
        Ok(Err(error)) => problem(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
        Err(response) => response,
    }
}

async fn replay(State(web): State<Web>, Extension(Who(by)): Extension<Who>, body: Bytes) -> Response {
    let wanted: ReplaysBody = match serde_json::from_slice(&body) {
        Ok(wanted) => wanted,
        Err(error) => return problem(StatusCode::UNPROCESSABLE_ENTITY, &error.to_string()),
    };
    let begin = move || replays::begin(&web.shared, &web.replays, &web.shutdown, &by, &wanted);
    match tokio::task::spawn_blocking(begin).await {
        Ok(Ok(run)) => (StatusCode::ACCEPTED, axum::Json(run)).into_response(),
        Ok(Err((status, why))) => problem(status, &why),
        Err(_) => problem(StatusCode::INTERNAL_SERVER_ERROR, "the request could not be answered"),
    }
}

async fn test_receiver(State(web): State<Web>, Path(receiver): Path<String>) -> Response {
    let Some(config) = web.shared.receivers.get(&receiver) else {
        return problem(StatusCode::NOT_FOUND, "there is no such receiver in the configuration");
    };
    let Ok(_room) = web.tests.clone().try_acquire_owned() else {
        return problem(StatusCode::TOO_MANY_REQUESTS, "another receiver is being tested; try again later");
    };
    let public_url = web.shared.settings.public_url.as_ref().map(ToString::to_string).unwrap_or_default();
    match tell::test(&receiver, config, &public_url).await {
        Ok(()) => axum::Json(TestAnswer { receiver, taken: true }).into_response(),
        Err(why) => problem(StatusCode::BAD_GATEWAY, &format!("the message was not taken: {why}")),
    }
}

async fn incidents(State(web): State<Web>, headers: HeaderMap, raw: RawQuery) -> Response {
    let query = query(raw);
    let limit = query.get("limit").and_then(|limit| limit.parse().ok()).unwrap_or(PAGE).clamp(1, MOST);
    let after: Option<IncidentId> = query.get("after").and_then(|id| id.parse().ok());
    web.json(&headers, move |journal, _| {
        let state = journal.state();
        let (items, more) = filter(&query).incidents(&state, after, limit);
        let next = items.last().filter(|_| more).map(|last| last.id);
        serde_json::to_value(Incidents { items, next, journal: state.last() }).ok()
    })
    .await
}

async fn incident(State(web): State<Web>, headers: HeaderMap, Path(name): Path<String>) -> Response {
    web.json(&headers, move |journal, _| {
        let id = journal.state().find(&name)?;
        let story = journal.story(id).unwrap_or_default();
        let state = journal.state();
        let incident = state.incidents().get(&id)?;
        serde_json::to_value(view::full(&state, incident, story)).ok()
    })
    .await
}

async fn bugs(State(web): State<Web>, headers: HeaderMap, raw: RawQuery) -> Response {
    let query = query(raw);
    web.json(&headers, move |journal, _| {
        let state = journal.state();
        let found = filter(&query).bugs(&state).into_iter().take(MOST);
        let items =
            found.filter_map(|number| Some(view::bug(&state, number, state.bugs().get(&number)?))).collect();
        serde_json::to_value(Bugs { items, journal: state.last() }).ok()
    })
    .await
}

async fn bug(State(web): State<Web>, headers: HeaderMap, Path(number): Path<String>) -> Response {
    web.json(&headers, move |journal, _| {
        let state = journal.state();
        let (number, bug) = state.bug(number.trim_start_matches("B-").parse().ok()?)?;
        serde_json::to_value(view::bug(&state, number, bug)).ok()
    })
    .await
}

async fn stats(State(web): State<Web>, headers: HeaderMap) -> Response {
    web.json(&headers, |journal, _| {
        let state = journal.state();
        let mut work: BTreeMap<&str, u64> = BTreeMap::new();
        for incident in state.incidents().values() {
            *work.entry(incident.work().words().0).or_default() += 1;
        }
        let mut status: BTreeMap<&str, u64> = BTreeMap::new();
        for bug in state.bugs().values() {
            *status.entry(bug.status().word()).or_default() += 1;
        }
        let mut deliveries: BTreeMap<&str, u64> = BTreeMap::new();
        for delivery in state.deliveries().values() {
            let word = match delivery.sent {
                demi_incidents::fold::Sent::Queued => "queued",
                demi_incidents::fold::Sent::Sending => "sending",
                demi_incidents::fold::Sent::Sent => "sent",
                demi_incidents::fold::Sent::Dead(_) => "dead",
            };
            *deliveries.entry(word).or_default() += 1;
        }
        let (skipped, unknown) = state.left_out();
        Some(json!({
            "journal": state.last(), "watched": state.watched(), "work": work, "bugs": status, "deliveries": deliveries,
            "skipped": skipped, "unknown": unknown, "conflicts": journal.conflicts(),
        }))
    })
    .await
}

/// Incidents that somebody wants opened, and to whom it is said which of them were not known.
struct Wish {
    all: Vec<Opened>,
    tell: oneshot::Sender<Result<Vec<bool>, String>>,
}

/// Opens incidents; which of them were not known. What others want opened meanwhile goes into the same entry: the disk is waited for once.
async fn opened(web: &Web, all: Vec<Opened>) -> Result<Vec<bool>, Response> {
    let (tell, told) = oneshot::channel();
    web.wishes.lock().unwrap_or_else(PoisonError::into_inner).push(Wish { all, tell });
    let wishes = web.wishes.clone();
    let take = move || std::mem::take(&mut *wishes.lock().unwrap_or_else(PoisonError::into_inner));
    web.ask(move |journal, _| open_all(journal, take())).await?;
    let said = told.await.unwrap_or_else(|_| Err("the request could not be answered".to_owned()));
    said.map_err(|error| problem(StatusCode::SERVICE_UNAVAILABLE, &error))
}

/// Opens what is wished for, in entries of some size.
fn open_all<O: Objects>(journal: &mut Journal<O>, wishes: Vec<Wish>) {
    let all: Vec<&Opened> = wishes.iter().flat_map(|wish| &wish.all).collect();
    let mut news: Vec<bool> = Vec::with_capacity(all.len());
    let mut failed = None;
    let mut rest = all.as_slice();
    while !rest.is_empty() && failed.is_none() {
        let mut bytes = 0;
        let fits = |opened: &&&Opened| {
            bytes += serde_json::to_vec(opened).map_or(0, |text| text.len());
            bytes <= ENTRY
        };
        let count = rest.iter().take_while(fits).count().max(1);
        let (part, later) = rest.split_at(count);
        rest = later;
        let mut flags = Vec::new();
        let done = journal.commit(|state| {
            let mut seen = BTreeSet::new();
            let new =
                |opened: &&Opened| !state.incidents().contains_key(&opened.id) && seen.insert(opened.id);
            flags = part.iter().map(new).collect();
            let new = part.iter().zip(&flags).filter(|(_, new)| **new);
            new.map(|(opened, _)| Event::Opened(Box::new((*opened).clone()))).collect()
        });
        match done {
            Ok(_) => news.extend(flags),
            Err(error) => failed = Some(error.to_string()),
        }
    }
    let mut at = 0;
    for wish in wishes {
        let end = at + wish.all.len();
        let own = news.get(at..end).map(<[bool]>::to_vec).ok_or_else(|| failed.clone().unwrap_or_default());
        at = end;
        // Whoever does not wait any more need not be told.
        let _ = wish.tell.send(own);
    }
}

async fn open(
    State(web): State<Web>,
    Extension(Who(by)): Extension<Who>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let request: OpenRequest = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(error) => return problem(StatusCode::UNPROCESSABLE_ENTITY, &error.to_string()),
    };
    if request.system.trim().is_empty() {
        return problem(StatusCode::UNPROCESSABLE_ENTITY, "system is empty");
    }
    let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok());
    let key =
        key.map_or_else(|| format!("body {}", String::from_utf8_lossy(&body)), |key| format!("key {key}"));
    let opened_now = request.opened(&by, &key);
    let id = opened_now.id;
    let new = match opened(&web, vec![opened_now]).await {
        Ok(news) => news.first().copied().unwrap_or(false),
        Err(response) => return response,
    };
    let url = url_of(&web, id);
    let status = if new { StatusCode::CREATED } else { StatusCode::OK };
    (status, axum::Json(OpenedAnswer { id, url, new })).into_response()
}

async fn alertmanager(State(web): State<Web>, body: Bytes) -> Response {
    let alerts: Alerts = match serde_json::from_slice(&body) {
        Ok(alerts) => alerts,
        Err(error) => return problem(StatusCode::UNPROCESSABLE_ENTITY, &error.to_string()),
    };
    let label = web.shared.settings.system_label.clone();
    let (all, without) = alerts.opened(&label);
    let ids: Vec<IncidentId> = all.iter().map(|opened| opened.id).collect();
    if ids.is_empty() && without > 0 {
        let text = format!("{without} alerts have no label {label}, which names the system");
        return problem(StatusCode::UNPROCESSABLE_ENTITY, &text);
    }
    match opened(&web, all).await {
        Ok(news) => {
            let of = |wanted: bool| {
                ids.iter()
                    .zip(&news)
                    .filter(|(_, new)| **new == wanted)
                    .map(|(id, _)| *id)
                    .collect::<Vec<_>>()
            };
            axum::Json(AlertsAnswer { opened: of(true), known: of(false), without_system: without })
                .into_response()
        }
        Err(response) => response,
    }
}

/// Takes a log, and opens an incident of it.
async fn upload(State(web): State<Web>, raw: RawQuery, body: Body) -> Response {
    let query = query(raw);
    let of = |name: &str| query.get(name).filter(|value| !value.is_empty()).cloned();
    if let Some(odd) = query.keys().find(|name| !UPLOADED.contains(&name.as_str())) {
        return problem(StatusCode::UNPROCESSABLE_ENTITY, &format!("'{odd}' is no parameter of an upload"));
    }
    let mapping = of("mapping");
    let known = |name: &String| demi_formats::mapping::shipped().iter().any(|shipped| shipped.name == name);
    if mapping.as_ref().is_some_and(|name| !known(name)) {
        return problem(
            StatusCode::UNPROCESSABLE_ENTITY,
            "mapping is none of those that come with the program",
        );
    }
    let Ok(_room) = web.uploads.clone().try_acquire_owned() else {
        return problem(StatusCode::TOO_MANY_REQUESTS, "other logs come in at the moment; try again later");
    };
    let (name, digest) = match taken(&web, body, mapping.clone()).await {
        Ok(kept) => kept,
        Err(response) => return response,
    };
    let id = IncidentId::of(&["upload", &digest, of("system").as_deref().unwrap_or_default()]);
    let system = of("system").unwrap_or_else(|| format!("upload-{}", id.short()));
    let mut new = Opened::new(id, Source::Upload { digest: digest.clone() }, system);
    new.input = Input::Logs { upload: name, mapping };
    new.invariant = of("invariant").unwrap_or_default();
    new.title = of("title").unwrap_or_default();
    new.version = of("version");
    let new = new.bounded();
    let system = new.system.clone();
    match opened(&web, vec![new]).await {
        Ok(news) => {
            let new = news.first().copied().unwrap_or(false);
            let body = UploadAnswer { id, upload: digest, system, url: url_of(&web, id), new };
            (StatusCode::ACCEPTED, axum::Json(body)).into_response()
        }
        Err(response) => response,
    }
}

/// The log in a body, kept: its name and the digest of its bytes. It is written as it comes, so that it takes no memory.
async fn taken(web: &Web, body: Body, mapping: Option<String>) -> Result<(String, String), Response> {
    let Settings { upload_bytes, unpacked_bytes, .. } = web.shared.settings;
    let place = web.shared.place.clone();
    let begun = blocking(move || Incoming::begin(&place, upload_bytes)).await?;
    let mut incoming = begun;
    let mut stream = body.into_data_stream();
    let (began, mut came) = (tokio::time::Instant::now(), 0_u64);
    let slow = || problem(StatusCode::REQUEST_TIMEOUT, "the log comes too slowly");
    loop {
        let piece = match tokio::time::timeout(PIECE, stream.next()).await {
            Ok(Some(Ok(piece))) => piece,
            Ok(None) => break,
            Ok(Some(Err(error))) => {
                return Err(problem(
                    StatusCode::BAD_REQUEST,
                    &format!("the body could not be read: {error}"),
                ));
            }
            Err(_) => return Err(slow()),
        };
        came += piece.len() as u64;
        // Whoever sends a little now and then holds a place as well.
        if came < began.elapsed().saturating_sub(PIECE).as_secs() * SLOWEST {
            return Err(slow());
        }
        incoming = blocking(move || incoming.take(&piece).map(|()| incoming)).await?;
    }
    let _turn = web.unpacked.acquire().await;
    blocking(move || incoming.keep(unpacked_bytes, |path| holds_events(path, mapping.as_deref()))).await
}

/// Lines of a log among which there must be an event, if it has so many.
const LOOKED_AT: usize = 100_000;

/// Whether some line of a log is an event, by a mapping that comes with the program; says why not.
fn holds_events(path: &std::path::Path, mapping: Option<&str>) -> Result<(), String> {
    let mapping = Mapping::named(mapping.unwrap_or("native")).and_then(|mapping| Mapper::new(&mapping));
    let mapper = mapping.map_err(|error| error.to_string())?;
    let (mut found, mut lines, mut reason) = (false, 0, None);
    let tried = mapper.try_on(Sources(vec![LogSource::file(path)]), |_, unit| {
        match &unit.fate {
            Fate::Row(events) => found |= !events.records.is_empty(),
            Fate::Quarantined(why) => {
                reason.get_or_insert_with(|| format!("line {}: {}", unit.line.number, why.reason()));
            }
            Fate::LeftOut(_) => {}
        }
        lines += 1;
        !found && lines < LOOKED_AT
    });
    match (found, tried) {
        (true, _) => Ok(()),
        (false, Err(error)) => Err(error.to_string()),
        (false, Ok(())) if lines == LOOKED_AT => Ok(()),
        (false, Ok(())) => Err(reason
            .map_or_else(|| "no line is an event".to_owned(), |why| format!("no line is an event: {why}"))),
    }
}

/// Does what may wait for a disk.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, NotTaken> + Send + 'static,
) -> Result<T, Response> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|_| problem(StatusCode::INTERNAL_SERVER_ERROR, "the log could not be kept"))?;
    done.map_err(|error| {
        let status = match &error {
            NotTaken::TooLarge(_) | NotTaken::UnpacksTooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            NotTaken::NoLog(_) => StatusCode::UNPROCESSABLE_ENTITY,
            NotTaken::Io(error) if error.kind() == std::io::ErrorKind::StorageFull => {
                StatusCode::INSUFFICIENT_STORAGE
            }
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        problem(status, &error.to_string())
    })
}

fn url_of(web: &Web, id: IncidentId) -> String {
    let base = web.shared.settings.public_url.as_ref().map(ToString::to_string).unwrap_or_default();
    format!("{}/i/{id}", base.trim_end_matches('/'))
}

/// What somebody may say of a bug.
fn action(
    state: &demi_incidents::State,
    bug: u32,
    word: &str,
    fields: &BTreeMap<String, String>,
    Who(by): Who,
) -> Option<Event> {
    let of = |name: &str| fields.get(name).filter(|value| !value.is_empty()).cloned();
    Some(match word {
        "ack" => Event::Acked { bug, by },
        "close" => Event::Closed { bug, by, fixed_in: of("fixed_in"), checked: false },
        "reopen" => Event::Reopened { bug, by },
        "mute" => Event::Muted { bug, by, on: true },
        "unmute" => Event::Muted { bug, by, on: false },
        "note" => Event::Noted { bug, by, text: of("text")? },
        "priority" => Event::Priority { bug, by, to: of("to")? },
        "merge" => Event::Merged { bug, into: of("into")?.trim_start_matches("B-").parse().ok()?, by },
        "split" => {
            // A list in JSON, or names with something between them.
            let names = of("incidents")?;
            let names =
                names.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').filter(|name| !name.is_empty());
            Event::Split { bug, ids: names.map(|name| state.find(name)).collect::<Option<_>>()?, by }
        }
        _ => return None,
    })
}

async fn bug_form(
    State(web): State<Web>,
    Extension(who): Extension<Who>,
    Path((number, word)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    let Ok(bug) = number.parse() else { return missing() };
    let event = web.ask(move |journal, _| action(&journal.state(), bug, &word, &pairs(&body), who)).await;
    let event = match event {
        Ok(Some(event)) => event,
        Ok(None) => return missing(),
        Err(response) => return response,
    };
    match web.say(event).await {
        Ok(Some(_)) => Redirect::to(&format!("/b/{number}")).into_response(),
        Ok(None) => {
            let text =
                page::failed("Not now", "That cannot be done now: somebody else may have been faster.");
            (StatusCode::CONFLICT, html(text)).into_response()
        }
        Err(response) => response,
    }
}

async fn bug_action(
    State(web): State<Web>,
    Extension(who): Extension<Who>,
    Path((number, word)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    let fields: BTreeMap<String, Value> = match body.is_empty() {
        true => BTreeMap::new(),
        false => match serde_json::from_slice(&body) {
            Ok(fields) => fields,
            Err(error) => return problem(StatusCode::UNPROCESSABLE_ENTITY, &error.to_string()),
        },
    };
    let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let fields = fields.into_iter().map(|(name, value)| (name, text(value))).collect();
    let number: Option<u32> = number.trim_start_matches("B-").parse().ok();
    let event = web.ask(move |journal, _| action(&journal.state(), number?, &word, &fields, who)).await;
    match event {
        Ok(Some(event)) => accepted(web.say(event).await),
        Ok(None) => problem(StatusCode::NOT_FOUND, "there is no such bug or action, or a field is missing"),
        Err(response) => response,
    }
}

fn accepted(said: Result<Option<u64>, Response>) -> Response {
    match said {
        Ok(Some(n)) => (StatusCode::ACCEPTED, axum::Json(Written { journal: n })).into_response(),
        Ok(None) => problem(StatusCode::CONFLICT, "that cannot be done now"),
        Err(response) => response,
    }
}

async fn retry(
    State(web): State<Web>,
    Extension(Who(by)): Extension<Who>,
    Path(name): Path<String>,
) -> Response {
    match web.ask(move |journal, _| journal.state().find(&name)).await {
        Ok(Some(id)) => accepted(web.say(Event::Retry { id, by }).await),
        Ok(None) => problem(StatusCode::NOT_FOUND, "there is no such incident"),
        Err(response) => response,
    }
}

async fn retry_form(
    State(web): State<Web>,
    Extension(Who(by)): Extension<Who>,
    Path(name): Path<String>,
) -> Response {
    let Ok(id) = name.parse::<IncidentId>() else { return missing() };
    match web.say(Event::Retry { id, by }).await {
        Ok(_) => Redirect::to(&format!("/i/{id}")).into_response(),
        Err(response) => response,
    }
}

#[cfg(test)]
mod tests {
    use demi_incidents::LocalFolder;

    use super::*;

    #[test]
    fn every_request_of_programs_is_described() {
        let document = openapi::document(&api());
        assert_eq!(document["openapi"], "3.1.0");
        let all = api();
        for one in &all {
            let operation = &document["paths"][one.path][one.method.as_str().to_lowercase()];
            let parameters = operation["parameters"].as_array().unwrap();
            let named = |name: &str| parameters.iter().any(|parameter| parameter["name"] == name);
            assert!(one.query.iter().all(|name| named(name)), "{operation}");
            assert_eq!(parameters.len(), one.query.len() + one.path.matches('{').count());
            assert_eq!(
                needed(&one.method, &one.path.replace("{id}", "x").replace("{number}", "1")),
                one.role
            );
        }
        // What is named is there.
        fn named(value: &Value, names: &mut BTreeSet<String>) {
            match value {
                Value::Object(fields) => {
                    names.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
                    fields.values().for_each(|value| named(value, names));
                }
                Value::Array(items) => items.iter().for_each(|item| named(item, names)),
                _ => {}
            }
        }
        let mut names = BTreeSet::new();
        named(&document, &mut names);
        assert!(names.len() >= 12, "{names:?}");
        for name in names {
            let pointer = name.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{name}");
        }
        // The fields of an answer are those of its type.
        let short = &document["components"]["schemas"]["Short"]["properties"];
        assert!(["id", "bug", "steps"].iter().all(|field| short[field].is_object()), "{short}");
    }

    #[test]
    fn what_many_want_opened_is_one_entry_and_each_is_told_what_was_new() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(LocalFolder::new(dir.path().to_owned()), "test").unwrap();
        let wish = |names: &[&str], title: &str| {
            let of = |name: &&str| {
                let id = IncidentId::of(&[*name]);
                let mut opened = Opened::new(id, Source::Api { by: "x".to_owned() }, "demo".to_owned());
                title.clone_into(&mut opened.title);
                opened
            };
            let (tell, told) = oneshot::channel();
            (Wish { all: names.iter().map(of).collect(), tell }, told)
        };
        let (first, mut one) = wish(&["a", "b"], "");
        let (second, mut two) = wish(&["b", "c"], "");
        open_all(&mut journal, vec![first, second]);
        assert_eq!(one.try_recv().unwrap().unwrap(), [true, true]);
        assert_eq!(two.try_recv().unwrap().unwrap(), [false, true]);
        assert_eq!((journal.state().last(), journal.state().incidents().len()), (1, 3));
        // More than an entry takes are several.
        let names: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
        let (many, mut told) = wish(&names.iter().map(String::as_str).collect::<Vec<_>>(), &"x".repeat(900));
        let (again, mut known) = wish(&["a"], "");
        open_all(&mut journal, vec![many, again]);
        assert!(told.try_recv().unwrap().unwrap().iter().all(|new| *new));
        assert_eq!(known.try_recv().unwrap().unwrap(), [false]);
        assert_eq!(journal.state().incidents().len(), 1003);
        assert!((3..=9).contains(&journal.state().last()), "{}", journal.state().last());
        // Nothing is nothing.
        open_all(&mut journal, Vec::new());
    }
}
