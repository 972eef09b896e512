//! Any bytes within any wrapper: no line comes twice, what is rejected stands in the log, and where reading stops and goes on changes nothing.
#![no_main]

use std::collections::HashMap;

use demi_formats::mapping::{Mapper, Mapping, Overrides, Unit, Wrapper};
use demi_formats::read::lines::Lines;
use libfuzzer_sys::fuzz_target;

const MAPPING: &str = "name = \"m\"\ndescription = \"d\"\n[input]\ncontainer = \"text\"\npatterns = ['^(?<text>[^!]*)$']\n[event]\n\
                       actor = \"{wrapper_name|'a'}\"\npayload = \"{text}\"\ntype = \"{wrapper_stream}\"\ntime = \"{wrapper_time}\"\n";
const NAMES: [&str; 6] = ["cri", "docker", "compose", "kubectl", "journal", "syslog"];

fn mapper(which: u8) -> Mapper {
    let wrapper: Wrapper = NAMES[usize::from(which) % NAMES.len()].parse().expect("known");
    let mapping = Mapping::parse(MAPPING, "m").expect("a mapping");
    Mapper::with(&mapping, Overrides { wrapper: Some(wrapper), ..Overrides::default() }).expect("a mapper")
}

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (which, stop, log) = input;
    let units = mapper(which).map_text("f", log);
    let mut lines: HashMap<&[u8], i64> = HashMap::new();
    log.split(|byte| *byte == b'\n').for_each(|line| *lines.entry(line).or_default() += 1);
    for line in units.iter().flat_map(|unit| unit.raw.split(|byte| *byte == b'\n')) {
        let left = lines.get_mut(line).expect("a line of the log");
        *left -= 1;
        assert!(*left >= 0, "a line comes twice");
    }
    // Stopped behind some lines, and gone on with from the first that is not dealt with.
    let all: Vec<_> = Lines::new(log, 0, 1, 1 << 20).collect();
    let stop = usize::from(stop).min(all.len());
    let feed = |mapper: &mut Mapper, lines: &[_], out: &mut Vec<Unit>| {
        for (line, range) in lines.iter().cloned() {
            mapper.line(line, &log[range], out);
        }
    };
    let (mut first, mut second, mut out) = (mapper(which), mapper(which), Vec::new());
    first.begin("f", log);
    feed(&mut first, &all[..stop], &mut out);
    let from = first.unfinished().map_or(stop, |(_, number)| number as usize - 1);
    second.resume(&first.checkpoint()).expect("its own checkpoint");
    second.resume_shared(&first.shared()).expect("its own memory");
    feed(&mut second, &all[from..], &mut out);
    second.end(&mut out);
    assert_eq!(out, units);
});
