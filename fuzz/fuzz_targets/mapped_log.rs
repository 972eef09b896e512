//! Any bytes under any mapping: no line vanishes, none is met twice.
#![no_main]

mod mappers;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &[u8])| {
    let (name, units) =
        mappers::with(input.0, 0, |mapping, mapper| (mapping.name.clone(), mapper.map_text("f", input.1)));
    if matches!(name.as_str(), "otlp" | "zipkin" | "jaeger" | "elle" | "itf" | "jepsen" | "tlc-json" | "p-trace-json") {
        return;
    }
    mappers::events_keep_the_rules(&units);
    mappers::every_line_is_met_once(input.1, &units);
});
