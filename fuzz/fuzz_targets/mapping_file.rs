//! Any text is a mapping or an error that names its place.
#![no_main]

use demi_formats::mapping::{Mapper, Mapping};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| match Mapping::parse(text, "fuzz.toml") {
    Ok(mapping) => {
        let mut mapper = Mapper::new(&mapping).expect("what was read can be used");
        let _ = mapper.map_text("f", b"a {\"a\":1}\nb\n{\"actor\":\"a\"}\nx=1\n");
    }
    Err(error) => assert!(error.to_string().contains("fuzz.toml"), "{error}"),
});
