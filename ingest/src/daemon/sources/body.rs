//! The body of a request: read within limits, and unpacked.

use std::io::Read;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;

use super::Limits;

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

/// The body of a request, unpacked.
pub(super) async fn read_body(headers: &HeaderMap, body: Body, limits: &Limits) -> Result<Bytes, Refused> {
    let read = tokio::time::timeout(limits.read(), to_bytes(body, limits.body_bytes)).await;
    let slow = || Refused::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body took too long");
    let packed = read.map_err(|_| slow())?.map_err(|error| {
        let text =
            format!("the body could not be read, or is larger than {} bytes: {error}", limits.body_bytes);
        Refused::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", text)
    })?;
    let encoding = headers.get(header::CONTENT_ENCODING).map(|v| v.as_bytes().to_ascii_lowercase());
    match encoding.as_deref() {
        None | Some(b"" | b"identity") => Ok(packed),
        Some(b"gzip") => unpack(packed, limits.body_bytes, Packed::Gzip).await,
        Some(b"zstd") => unpack(packed, limits.body_bytes, Packed::Zstd).await,
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

/// Unpacks a body, never more than the limit.
async fn unpack(packed: Bytes, limit: usize, how: Packed) -> Result<Bytes, Refused> {
    // Unpacking 16 MiB takes milliseconds; other connections shall not wait for it.
    let unpacked = tokio::task::spawn_blocking(move || inflate(&packed, limit, how)).await;
    unpacked.unwrap_or_else(|_| {
        Err(Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "defect", "unpacking ended unexpectedly"))
    })
}

/// Unpacks a body; never holds much more than `limit` bytes.
///
/// # Errors
/// When it is damaged or larger than the limit.
pub fn inflate(packed: &[u8], limit: usize, how: Packed) -> Result<Bytes, Refused> {
    let damaged = |e: std::io::Error| {
        Refused::new(StatusCode::BAD_REQUEST, "damaged_body", format!("the body cannot be unpacked: {e}"))
    };
    let mut reader: Box<dyn Read + '_> = match how {
        Packed::Gzip => Box::new(flate2::read::MultiGzDecoder::new(packed)),
        Packed::Zstd => Box::new(zstd::Decoder::with_buffer(packed).map_err(damaged)?),
    };
    let mut out = Vec::new();
    (&mut reader).take(limit as u64 + 1).read_to_end(&mut out).map_err(damaged)?;
    if out.len() > limit {
        let text = format!("the body is larger than {limit} bytes once unpacked");
        return Err(Refused::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", text));
    }
    Ok(out.into())
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
