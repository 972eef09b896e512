//! The body of a request: read within limits, and unpacked.

use std::io::Read;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;

use super::Context;
use super::budget::Share;
use crate::batch::Refusal;
use crate::net::guard::Kept;

/// Why a request was not taken.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Status of the answer.
    pub status: StatusCode,
    /// A short, stable word.
    pub reason: &'static str,
    /// A sentence.
    pub text: String,
}

impl Refused {
    pub(super) fn new(status: StatusCode, reason: &'static str, text: impl Into<String>) -> Self {
        Refused { status, reason, text: text.into() }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Refused {
        let (status, reason) = match refusal {
            Refusal::Full => (StatusCode::SERVICE_UNAVAILABLE, "full"),
            Refusal::Closed => (StatusCode::SERVICE_UNAVAILABLE, "closed"),
            Refusal::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
        };
        Refused::new(status, reason, refusal.to_string())
    }
}

impl From<Kept> for Refused {
    fn from(Kept { status, reason, text }: Kept) -> Refused {
        Refused::new(status, reason, text)
    }
}

/// Too many others are held at the moment.
fn busy() -> Refused {
    let text = "as much of requests as may be is in memory already; try again later";
    Refused::new(StatusCode::TOO_MANY_REQUESTS, "busy", text)
}

/// The body of a request as it came, of at most `limit` bytes, and the room that it takes.
pub(super) async fn read_packed(
    body: Body,
    limit: usize,
    context: &Context,
) -> Result<(Bytes, Share), Refused> {
    let mut share = context.budget.share();
    let read = async {
        let (mut stream, mut bytes) = (body.into_data_stream(), BytesMut::new());
        while let Some(piece) = stream.next().await {
            let too_large = |why: String| Refused::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", why);
            let piece = piece.map_err(|error| too_large(format!("the body could not be read: {error}")))?;
            if bytes.len() + piece.len() > limit {
                return Err(too_large(format!("the body is larger than {limit} bytes")));
            }
            if !share.grow(piece.len()) {
                return Err(busy());
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes.freeze())
    };
    let slow = |_| Refused::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body took too long");
    let bytes = tokio::time::timeout(context.limits.read(), read).await.map_err(slow)??;
    Ok((bytes, share))
}

/// The body of a request, unpacked, and the room that it takes.
pub(super) async fn read_body(
    headers: &HeaderMap,
    body: Body,
    context: &Context,
) -> Result<(Bytes, Share), Refused> {
    let limit = context.limits.body_bytes;
    let (packed, share) = read_packed(body, limit, context).await?;
    let encoding = headers.get(header::CONTENT_ENCODING).map(|v| v.as_bytes().to_ascii_lowercase());
    match encoding.as_deref() {
        None | Some(b"" | b"identity") => Ok((packed, share)),
        Some(b"gzip") => unpack(packed, share, limit, Packed::Gzip).await,
        Some(b"zstd") => unpack(packed, share, limit, Packed::Zstd).await,
        Some(other) => {
            let text =
                format!("'{}' is not read; send gzip, zstd or neither", String::from_utf8_lossy(other));
            Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unknown_encoding", text))
        }
    }
}

/// How a body is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packed {
    /// `Content-Encoding: gzip`.
    Gzip,
    /// `Content-Encoding: zstd`.
    Zstd,
}

/// Unpacks a body, never more than the limit and the budget.
pub(super) async fn unpack(
    packed: Bytes,
    mut share: Share,
    limit: usize,
    how: Packed,
) -> Result<(Bytes, Share), Refused> {
    // Unpacking 16 MiB takes milliseconds; other connections shall not wait for it.
    let unpacked = tokio::task::spawn_blocking(move || {
        let bytes = inflate_within(&packed, limit, how, |bytes| share.grow(bytes))?;
        Ok((bytes, share))
    })
    .await;
    unpacked.unwrap_or_else(|_| {
        Err(Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "defect", "unpacking ended unexpectedly"))
    })
}

/// Unpacks a body; never holds much more than `limit` bytes.
///
/// # Errors
/// When it is damaged or larger than the limit.
pub fn inflate(packed: &[u8], limit: usize, how: Packed) -> Result<Bytes, Refused> {
    inflate_within(packed, limit, how, |_| true)
}

/// Bytes that are unpacked at a time.
const STEP: usize = 64 << 10;
/// Most bytes, as a power of two, that a zstd frame may make its reader look back on.
const WINDOW_LOG: u32 = 25;

/// [`inflate`], as long as `grow` has room for more.
fn inflate_within(
    packed: &[u8],
    limit: usize,
    how: Packed,
    mut grow: impl FnMut(usize) -> bool,
) -> Result<Bytes, Refused> {
    let damaged = |e: std::io::Error| {
        Refused::new(StatusCode::BAD_REQUEST, "damaged_body", format!("the body cannot be unpacked: {e}"))
    };
    let mut reader: Box<dyn Read + '_> = match how {
        Packed::Gzip => Box::new(flate2::read::MultiGzDecoder::new(packed)),
        Packed::Zstd => {
            let mut decoder = zstd::Decoder::with_buffer(packed).map_err(damaged)?;
            decoder.window_log_max(WINDOW_LOG).map_err(damaged)?;
            Box::new(decoder)
        }
    };
    let mut out = Vec::new();
    loop {
        let got = (&mut reader).take(STEP as u64).read_to_end(&mut out).map_err(damaged)?;
        if out.len() > limit {
            let text = format!("the body is larger than {limit} bytes once unpacked");
            return Err(Refused::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", text));
        }
        if got == 0 {
            return Ok(out.into());
        }
        if !grow(got) {
            return Err(busy());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bodies_are_unpacked_within_the_limit(
            body in prop::collection::vec(any::<u8>(), 0..300), limit in 0usize..300, cut: usize, noise: Vec<u8>,
        ) {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(&body).unwrap();
            let packed = [(Packed::Gzip, gzip.finish().unwrap()), (Packed::Zstd, zstd::encode_all(&body[..], 1).unwrap())];
            for (how, bytes) in packed {
                match inflate(&bytes, limit, how) {
                    Ok(got) => prop_assert_eq!(&got[..], &body[..]),
                    Err(refused) => {
                        prop_assert_eq!(refused.reason, "body_too_large");
                        prop_assert!(body.len() > limit);
                    }
                }
                // Cut off, it is refused, never taken in part.
                let cut = cut % bytes.len();
                if let Ok(got) = inflate(&bytes[..cut], 1000, how) {
                    prop_assert!(got.is_empty() && cut == 0);
                }
                let _ = inflate(&noise, limit, how);
            }
        }
    }
}
