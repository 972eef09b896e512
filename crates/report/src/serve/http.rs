//! The server's two addresses: the page, and its questions.

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};

use super::Served;
use super::answer::Ask;
use crate::error::ReportError;

/// Longest question, in bytes.
const LONGEST: usize = 16 * 1024;

/// Headers of every answer: nothing is kept, framed, guessed or told to others.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// The routes. `port` is where they are reached, which requests must name in their `Host` header.
pub(crate) fn router(served: Arc<Served>, port: u16) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/ask", post(ask))
        .layer(DefaultBodyLimit::max(LONGEST))
        .layer(middleware::from_fn_with_state(port, guard))
        .with_state(served)
}

/// Refuses requests that name another host: a page of elsewhere may have made its own name point here (DNS rebinding).
/// Questions are JSON, which pages of elsewhere cannot send without asking first, and they are never allowed to.
async fn guard(State(port): State<u16>, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|h| h.to_str().ok()).unwrap_or("");
    let own = ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| {
        host.strip_prefix(name).is_some_and(|rest| rest.strip_prefix(':') == Some(port.to_string().as_str()))
    });
    let mut response = if own {
        next.run(request).await
    } else {
        (StatusCode::MISDIRECTED_REQUEST, "this server is reached as localhost only\n").into_response()
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn page(State(served): State<Arc<Served>>) -> Html<String> {
    Html(served.html.clone())
}

async fn ask(State(served): State<Arc<Served>>, Json(ask): Json<Ask>) -> Response {
    let answer = tokio::task::spawn_blocking(move || served.answer(ask)).await;
    match answer {
        Ok(Ok(answer)) => Json(answer).into_response(),
        Ok(Err(error @ ReportError::Pattern(_))) => {
            (StatusCode::BAD_REQUEST, error.to_string()).into_response()
        }
        Ok(Err(error)) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "the question could not be answered").into_response(),
    }
}
