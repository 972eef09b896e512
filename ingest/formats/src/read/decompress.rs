//! Telling by its first bytes how a stream is packed, and unpacking it.

use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, Read};

use crate::ReadError;

const BUFFER: usize = 256 * 1024;
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// An error of the file or connection itself, as opposed to damage in what was packed.
#[derive(Debug)]
pub struct RawReadError(pub io::Error);

impl fmt::Display for RawReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for RawReadError {}

/// Marks the errors of the underlying stream, so that they can be told from the decoder's.
struct Tagged<R>(R);

impl<R: Read> Read for Tagged<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(buf).map_err(|e| match e.kind() {
            io::ErrorKind::Interrupted => e,
            _ => io::Error::other(RawReadError(e)),
        })
    }
}

/// How a stream is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Not packed.
    Plain,
    /// By gzip.
    Gzip,
    /// By Zstandard.
    Zstd,
}

/// Tells the packing by the first bytes of a stream.
///
/// # Errors
/// The name of a format that is recognized and not read.
pub fn packing(start: &[u8]) -> Result<Packing, &'static str> {
    let skippable =
        start.len() >= 4 && (0x50..=0x5f).contains(&start[0]) && start[1..4] == [0x2a, 0x4d, 0x18];
    if start.starts_with(&ZSTD) || skippable {
        return Ok(Packing::Zstd);
    }
    if start.starts_with(&[0x1f, 0x8b]) {
        return Ok(Packing::Gzip);
    }
    let known: [(&[u8], &'static str); 6] = [
        (b"BZh", "a bzip2 file"),
        (&[0xfd, b'7', b'z', b'X', b'Z', 0], "an xz file"),
        (b"PK\x03\x04", "a zip archive"),
        (&[0x04, 0x22, 0x4d, 0x18], "an lz4 file"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
        (b"PAR1", "a Parquet file"),
    ];
    match known.iter().find(|(magic, _)| start.starts_with(magic)) {
        Some((_, format)) => Err(format),
        None => Ok(Packing::Plain),
    }
}

/// Opens a stream for reading, unpacked if it is packed. All frames of a zstd file and all members of a gzip file
/// are read.
///
/// # Errors
/// When the first bytes cannot be read, or show a format that is not read.
pub fn unpack(name: &str, stream: Box<dyn Read + Send>) -> Result<Box<dyn BufRead + Send>, ReadError> {
    let mut stream = Tagged(stream);
    let mut start = Vec::with_capacity(8);
    let read = |source| ReadError::Read { path: name.to_owned(), source };
    (&mut stream).take(8).read_to_end(&mut start).map_err(read)?;
    let packing =
        packing(&start).map_err(|format| ReadError::Unsupported { path: name.to_owned(), format })?;
    let whole = Cursor::new(start).chain(stream);
    Ok(match packing {
        Packing::Plain => Box::new(BufReader::with_capacity(BUFFER, whole)),
        Packing::Gzip => {
            let input = BufReader::with_capacity(BUFFER, whole);
            Box::new(BufReader::with_capacity(BUFFER, flate2::bufread::MultiGzDecoder::new(input)))
        }
        Packing::Zstd => {
            let input = BufReader::with_capacity(BUFFER, whole);
            let decoder = zstd::Decoder::with_buffer(input).map_err(read)?;
            Box::new(BufReader::with_capacity(BUFFER, decoder))
        }
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        unpack("t", Box::new(Cursor::new(bytes.to_vec()))).unwrap().read_to_end(&mut out)?;
        Ok(out)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn packing_is_told_by_content_and_every_part_is_read() {
        assert_eq!(read(b"").unwrap(), b"");
        assert_eq!(read(b"{}\n").unwrap(), b"{}\n");
        assert_eq!(read(&[gzip(b"one\n"), gzip(b"two\n")].concat()).unwrap(), b"one\ntwo\n");
        let zstd = |b: &[u8]| zstd::encode_all(b, 3).unwrap();
        assert_eq!(read(&[zstd(b"one\n"), zstd(b"two\n")].concat()).unwrap(), b"one\ntwo\n");
        let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9][..], &zstd(b"x")].concat();
        assert_eq!(read(&skippable).unwrap(), b"x");
    }

    #[test]
    fn damage_is_told_from_a_broken_connection() {
        let packed = zstd::encode_all(&vec![b'a'; 1000][..], 3).unwrap();
        let error = read(&packed[..packed.len() - 2]).unwrap_err();
        assert!(!error.get_ref().is_some_and(|e| e.is::<RawReadError>()));

        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("unplugged"))
            }
        }
        let stream = Cursor::new(packed[..10].to_vec()).chain(Broken);
        let error = unpack("t", Box::new(stream)).unwrap().read_to_end(&mut Vec::new()).unwrap_err();
        assert!(error.get_ref().is_some_and(|e| e.is::<RawReadError>()), "{error:?}");
    }

    #[test]
    fn other_formats_are_refused_by_name() {
        assert!(matches!(
            unpack("t", Box::new(&b"PAR1xxxx"[..])),
            Err(ReadError::Unsupported { format: "a Parquet file", .. })
        ));
    }
}
