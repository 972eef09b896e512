//! Any bytes as what checkers and observers write: of a log of lines no line vanishes, none is met twice; what becomes an event keeps the rules.
#![no_main]

mod mappers;

use demi_formats::mapping::shipped;
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 7] = ["p-trace", "p-trace-json", "pobserve", "pobserve-lines", "tlc", "tlc-json", "itf"];

fuzz_target!(|input: (u8, &[u8])| {
    let name = NAMES[usize::from(input.0) % NAMES.len()];
    let which = shipped().iter().position(|mapping| mapping.name == name).expect("shipped");
    let units = mappers::with(which as u8, 0, |_, mapper| mapper.map_text("f", input.1));
    mappers::events_keep_the_rules(&units);
    if !matches!(name, "p-trace-json" | "tlc-json" | "itf") {
        mappers::every_line_is_met_once(input.1, &units);
    }
});
