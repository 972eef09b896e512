//! A log that is left anywhere and gone on with by another process becomes what it becomes in one go, under every mapping that
//! does not need the log's end.
#![no_main]

mod mappers;

use demi_formats::lines::{LineReader, Next};
use demi_formats::mapping::{Mapper, Unit};
use libfuzzer_sys::fuzz_target;

/// Maps `data` from a line on, at most so many lines; says where it came to.
fn some(mapper: &mut Mapper, data: &[u8], from: (u64, u64), most: u64, units: &mut Vec<Unit>) -> (u64, u64) {
    let mut reader = LineReader::new(&data[from.0 as usize..], 1 << 20, 100);
    let (mut bytes, mut number) = (Vec::new(), from.1);
    while number - from.1 < most || mapper.in_header() {
        bytes.clear();
        let Next::Line(mut line) = reader.next_line(&mut bytes) else { break };
        line.offset += from.0;
        line.number += from.1 - 1;
        number = line.number + 1;
        mapper.line(line, &bytes, units);
    }
    mapper.unfinished().unwrap_or((from.0 + reader.offset(), number))
}

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (which, stop, data) = input;
    let needs_the_end = mappers::with(which, 0, |mapping, _| mapping.needs().expect("shipped").end.is_some());
    if needs_the_end {
        return;
    }
    let whole = mappers::with(which, 0, |_, mapper| mapper.map_text("f", data));
    let mut units = Vec::new();
    let (place, shared, of_source) = mappers::with(which, 1, |_, mapper| {
        mapper.begin("f", data);
        let place = some(mapper, data, (0, 1), u64::from(stop) + 1, &mut units);
        (place, mapper.shared(), mapper.checkpoint())
    });
    mappers::with(which, 2, |_, mapper| {
        mapper.resume_shared(&shared).expect("what was saved");
        mapper.resume(&of_source).expect("what was saved");
        some(mapper, data, place, u64::MAX, &mut units);
        mapper.end(&mut units);
    });
    assert_eq!(units, whole);
});
