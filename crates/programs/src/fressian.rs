//! What Maelstrom writes of its network: Fressian, as JSON values. Keywords become texts; an `ev` and a `msg`, as Maelstrom's journal has them, become
//! objects.
//!
//! The codes are those of the format's own table (Datomic/fressian, `impl/Codes.java`).

use serde_json::{Map, Value, json};

/// How deep values may lie in each other.
const DEPTH: u32 = 200;

/// All values of a file. A last one that is not whole is left out: a test may have been ended while it was written.
///
/// # Errors
/// On what is no Fressian, or has types that no journal has.
pub(crate) fn read(bytes: &[u8]) -> Result<Vec<Value>, String> {
    let mut reader = Reader { bytes, at: 0, cache: Vec::new(), structs: Vec::new() };
    let mut all = Vec::new();
    while reader.at < bytes.len() {
        match reader.value(0) {
            Ok(value) => all.push(value),
            Err(Wrong::End) => break,
            Err(Wrong::Code(at, code)) => {
                return Err(format!("byte {at}: no value of a journal begins with {code:#04x}"));
            }
        }
    }
    Ok(all)
}

enum Wrong {
    /// The bytes end.
    End,
    /// What no journal has: where, and what.
    Code(usize, u8),
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    cache: Vec<Value>,
    /// Tags, with how many parts what has them has.
    structs: Vec<(String, usize)>,
}

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8, Wrong> {
        let byte = self.bytes.get(self.at).copied().ok_or(Wrong::End)?;
        self.at += 1;
        Ok(byte)
    }

    fn take(&mut self, length: usize) -> Result<&[u8], Wrong> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len()).ok_or(Wrong::End)?;
        let part = &self.bytes[self.at..end];
        self.at = end;
        Ok(part)
    }

    /// A whole number of so many bytes, the highest first.
    fn raw(&mut self, length: usize) -> Result<i64, Wrong> {
        Ok(self.take(length)?.iter().fold(0, |sum: i64, &byte| sum << 8 | i64::from(byte)))
    }

    fn count(&mut self, depth: u32) -> Result<usize, Wrong> {
        let at = self.at;
        let value = self.value(depth + 1)?;
        value.as_u64().and_then(|count| usize::try_from(count).ok()).ok_or(Wrong::Code(at, 0))
    }

    fn cached(&self, place: usize, at: usize, code: u8) -> Result<Value, Wrong> {
        self.cache.get(place).cloned().ok_or(Wrong::Code(at, code))
    }

    fn value(&mut self, depth: u32) -> Result<Value, Wrong> {
        let at = self.at;
        let code = self.byte()?;
        if depth > DEPTH {
            return Err(Wrong::Code(at, code));
        }
        // A small number, with its highest bits in the code.
        let packed = |high: u8, zero: u8, low: i64, length: u32| {
            Value::from((i64::from(high) - i64::from(zero)) << (8 * length) | low)
        };
        Ok(match code {
            0x00..=0x3F => Value::from(code),
            0xFF => Value::from(-1),
            0x40..=0x5F => packed(code, 0x50, self.raw(1)?, 1),
            0x60..=0x6F => packed(code, 0x68, self.raw(2)?, 2),
            0x70..=0x73 => packed(code, 0x72, self.raw(3)?, 3),
            0x74..=0x77 => packed(code, 0x76, self.raw(4)?, 4),
            0x78..=0x7B => packed(code, 0x7A, self.raw(5)?, 5),
            0x7C..=0x7F => packed(code, 0x7E, self.raw(6)?, 6),
            0xF8 => Value::from(self.raw(8)?),
            0xF9 => float(f64::from(f32::from_bits(self.raw(4)? as u32))),
            0xFA => float(f64::from_bits(self.raw(8)?.cast_unsigned())),
            0xFB => float(0.0),
            0xFC => float(1.0),
            0xF5 => Value::Bool(true),
            0xF6 => Value::Bool(false),
            0xF7 => Value::Null,
            0x80..=0x9F => self.cached(usize::from(code - 0x80), at, code)?,
            0xCC => {
                let place = self.count(depth)?;
                self.cached(place, at, code)?
            }
            0xCD => self.put(depth)?,
            0xCE => {
                self.put(depth)?;
                self.value(depth + 1)?
            }
            0xFE => {
                self.cache.clear();
                self.structs.clear();
                self.value(depth + 1)?
            }
            // A footer: length and sum of what came before.
            0xCF => {
                self.take(11)?;
                self.cache.clear();
                self.structs.clear();
                self.value(depth + 1)?
            }
            0xDA..=0xE1 => self.text(usize::from(code - 0xDA), Vec::new())?,
            0xE2 | 0xE3 => self.long_text(code, depth)?,
            0xE4..=0xEB => self.list(usize::from(code - 0xE4), depth)?,
            0xEC => {
                let count = self.count(depth)?;
                self.list(count, depth)?
            }
            0xED | 0xEE => {
                let mut all = Vec::new();
                while self.bytes.get(self.at).is_some_and(|&next| next != 0xFD) {
                    all.push(self.value(depth + 1)?);
                }
                if self.at < self.bytes.len() || code == 0xED {
                    self.byte()?;
                }
                Value::Array(all)
            }
            0xC0 => {
                let list = self.value(depth + 1)?;
                let mut fields = Map::new();
                for pair in list.as_array().map(Vec::as_slice).unwrap_or_default().chunks_exact(2) {
                    let key = pair[0].as_str().map_or_else(|| pair[0].to_string(), str::to_owned);
                    fields.insert(key, pair[1].clone());
                }
                Value::Object(fields)
            }
            0xC1 => self.value(depth + 1)?,
            // Namespace and name.
            0xC9 | 0xCA => {
                let space = self.value(depth + 1)?;
                let name = self.value(depth + 1)?;
                match (space.as_str(), name.as_str()) {
                    (Some(space), Some(name)) => Value::from(format!("{space}/{name}")),
                    _ => name,
                }
            }
            0xC8 | 0xC4 | 0xC5 => self.value(depth + 1)?,
            0xD0..=0xD7 => {
                self.take(usize::from(code - 0xD0))?;
                Value::Null
            }
            0xD9 => {
                let length = self.count(depth)?;
                self.take(length)?;
                Value::Null
            }
            0xC3 | 0xC6 => self.value(depth + 1)?,
            0xEF => {
                let tag = self.value(depth + 1)?.as_str().map(str::to_owned).ok_or(Wrong::Code(at, code))?;
                let parts = self.count(depth)?;
                self.structs.push((tag.clone(), parts));
                self.tagged(&tag, parts, depth)?
            }
            0xA0..=0xAF | 0xF0 => {
                let place = if code == 0xF0 { self.count(depth)? } else { usize::from(code - 0xA0) };
                let (tag, parts) = self.structs.get(place).cloned().ok_or(Wrong::Code(at, code))?;
                self.tagged(&tag, parts, depth)?
            }
            _ => return Err(Wrong::Code(at, code)),
        })
    }

    fn put(&mut self, depth: u32) -> Result<Value, Wrong> {
        let place = self.cache.len();
        self.cache.push(Value::Null);
        let value = self.value(depth + 1)?;
        if let Some(kept) = self.cache.get_mut(place) {
            kept.clone_from(&value);
        }
        Ok(value)
    }

    fn list(&mut self, count: usize, depth: u32) -> Result<Value, Wrong> {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(self.value(depth + 1)?);
        }
        Ok(Value::Array(all))
    }

    fn tagged(&mut self, tag: &str, count: usize, depth: u32) -> Result<Value, Wrong> {
        let Value::Array(mut parts) = self.list(count, depth)? else { return Ok(Value::Null) };
        Ok(match (tag, parts.as_mut_slice()) {
            ("ev", [kind, time, message]) => {
                json!({ "type": kind.take(), "time": time.take(), "message": message.take() })
            }
            ("msg", [id, src, dest, body]) => {
                json!({ "id": id.take(), "src": src.take(), "dest": dest.take(), "body": body.take() })
            }
            _ => json!({ "tag": tag, "parts": parts }),
        })
    }

    fn long_text(&mut self, mut code: u8, depth: u32) -> Result<Value, Wrong> {
        let mut units = Vec::new();
        // Pieces, of which the last has another code.
        while code == 0xE2 {
            let length = self.count(depth)?;
            units.extend(units_of(self.take(length)?));
            code = self.byte()?;
        }
        let length = match code {
            0xDA..=0xE1 => usize::from(code - 0xDA),
            0xE3 => self.count(depth)?,
            _ => return Err(Wrong::Code(self.at, code)),
        };
        self.text(length, units)
    }

    fn text(&mut self, length: usize, mut units: Vec<u16>) -> Result<Value, Wrong> {
        units.extend(units_of(self.take(length)?));
        Ok(Value::from(String::from_utf16_lossy(&units)))
    }
}

fn float(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// Each unit of UTF-16 stands for itself, in one to three bytes as UTF-8 has them.
fn units_of(bytes: &[u8]) -> Vec<u16> {
    let mut units = Vec::new();
    let mut rest = bytes.iter().map(|&byte| u16::from(byte));
    while let Some(first) = rest.next() {
        let mut more = || rest.next().unwrap_or_default() & 0x3F;
        units.push(match first >> 4 {
            0..=7 => first,
            12 | 13 => (first & 0x1F) << 6 | more(),
            _ => (first & 0x0F) << 12 | more() << 6 | more(),
        });
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text of fewer than eight bytes.
    fn text(text: &str) -> Vec<u8> {
        let mut bytes = vec![0xDA + text.len() as u8];
        bytes.extend_from_slice(text.as_bytes());
        bytes
    }

    /// A keyword that is kept, as Maelstrom writes keys and types.
    fn keyword(name: &str) -> Vec<u8> {
        [vec![0xCD, 0xCA, 0xF7, 0xCD], text(name)].concat()
    }

    #[test]
    fn events_of_a_journal_are_read() {
        // ev and msg are told once, with how many parts they have; what was kept comes again by its place.
        let first = [
            vec![0xEF],
            text("ev"),
            vec![3],
            keyword("send"),
            vec![0x52, 0x10],
            vec![0xEF],
            text("msg"),
            vec![4, 0],
            text("c0"),
            text("n0"),
            vec![0xC0, 0xED],
            keyword("type"),
            text("init"),
            keyword("n"),
            vec![0xE6, 0xFF, 0xFC],
            vec![0xFD],
        ];
        let second = [
            vec![0xA0, 0x80, 0x53, 0, 0xA1, 1],
            text("n0"),
            text("c0"),
            vec![0xC0, 0xE6, 0x82, 0xE3, 2, 0xC3, 0xA9],
            vec![0xA0, 0x80],
        ];
        let bytes = [first.concat(), second.concat()].concat();
        let all = read(&bytes).unwrap_or_default();
        assert_eq!(
            all,
            [
                json!({ "type": "send", "time": 0x210, "message": { "id": 0, "src": "c0", "dest": "n0", "body": { "type": "init", "n": [-1, 1.0] } } }),
                json!({ "type": "send", "time": 0x300, "message": { "id": 1, "src": "n0", "dest": "c0", "body": { "type": "é" } } }),
            ]
        );
    }

    #[test]
    fn no_bytes_bring_it_down() {
        let mut state = 1_u64;
        for length in 0..2_000 {
            let bytes: Vec<u8> = (0..length % 64)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 56) as u8
                })
                .collect();
            let _ = read(&bytes);
        }
        assert!(read(&[0xB7]).is_err());
    }
}
