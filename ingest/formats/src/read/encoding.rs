//! Text that is not UTF-8, decoded as it is read.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::str::FromStr;

use encoding_rs::{Decoder, UTF_8};

/// Bytes that are decoded at a time.
const STRETCH: usize = 64 * 1024;

/// An encoding of text, by a name of the WHATWG Encoding Standard, or `lossy`: UTF-8 in which every bad byte becomes U+FFFD.
///
/// A byte order mark at the beginning of a file counts more than the name. Whatever the encoding, what has no meaning in it
/// becomes U+FFFD.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Encoding(&'static encoding_rs::Encoding);

impl fmt::Debug for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

/// A name that is no encoding's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown encoding '{0}'; known are 'lossy' and the names of the Encoding Standard, such as windows-1252, utf-16, shift_jis"
)]
pub struct UnknownEncoding(String);

impl FromStr for Encoding {
    type Err = UnknownEncoding;

    fn from_str(name: &str) -> Result<Self, UnknownEncoding> {
        if name == "lossy" {
            return Ok(Encoding(UTF_8));
        }
        let found = encoding_rs::Encoding::for_label_no_replacement(name.as_bytes());
        found.map(Encoding).ok_or_else(|| UnknownEncoding(name.to_owned()))
    }
}

impl Encoding {
    /// The stream as UTF-8. Offsets in it count decoded bytes.
    pub(crate) fn decode(self, stream: Box<dyn BufRead + Send>) -> Box<dyn BufRead + Send> {
        let decoder = self.0.new_decoder();
        let decoding = Decoding { stream, decoder, out: Vec::new(), at: 0, ended: false };
        Box::new(BufReader::with_capacity(STRETCH, decoding))
    }
}

struct Decoding {
    stream: Box<dyn BufRead + Send>,
    decoder: Decoder,
    out: Vec<u8>,
    at: usize,
    ended: bool,
}

impl Decoding {
    /// Decodes the next stretch.
    fn fill(&mut self) -> io::Result<()> {
        let raw = self.stream.fill_buf()?;
        let raw = &raw[..raw.len().min(STRETCH)];
        let (got, last) = (raw.len(), raw.is_empty());
        let room = self.decoder.max_utf8_buffer_length(got).unwrap_or(4 * STRETCH);
        self.out.resize(room, 0);
        let (_, used, written, _) = self.decoder.decode_to_utf8(raw, &mut self.out, last);
        self.stream.consume(used);
        self.out.truncate(written);
        self.at = 0;
        self.ended = last;
        Ok(())
    }
}

impl Read for Decoding {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.at == self.out.len() {
            if self.ended || buf.is_empty() {
                return Ok(0);
            }
            self.fill()?;
        }
        let some = buf.len().min(self.out.len() - self.at);
        buf[..some].copy_from_slice(&self.out[self.at..self.at + some]);
        self.at += some;
        Ok(some)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;
    use crate::read::lines::without_mark;

    fn decoded(name: &str, bytes: &[u8]) -> String {
        let encoding: Encoding = name.parse().unwrap();
        let mut text = String::new();
        encoding.decode(Box::new(Cursor::new(bytes.to_vec()))).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn each_encoding_gives_its_text() {
        assert_eq!(decoded("windows-1252", b"caf\xe9 \x80"), "café €");
        assert_eq!(decoded("lossy", b"caf\xe9!"), "caf\u{fffd}!");
        assert_eq!(decoded("utf-16", b"\xff\xfea\0\n\0\xe9\0"), "a\né");
        assert_eq!(decoded("utf-16", b"\xfe\xff\0a\0\n\0\xe9"), "a\né", "the mark says big-endian");
        assert!("utf-17".parse::<Encoding>().unwrap_err().to_string().contains("utf-17"));
    }

    proptest! {
        #[test]
        fn utf_16_comes_back_whatever_its_length(text in ".{0,60}", copies in 1usize..3000) {
            let text = text.replace('\u{feff}', "").repeat(copies);
            let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            prop_assert_eq!(decoded("utf-16le", &bytes), text);
        }

        #[test]
        fn any_bytes_become_text(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let lossy = String::from_utf8_lossy(without_mark(&bytes)).into_owned();
            prop_assume!(!bytes.starts_with(b"\xff\xfe") && !bytes.starts_with(b"\xfe\xff"));
            prop_assert_eq!(decoded("lossy", &bytes), lossy);
        }
    }
}
