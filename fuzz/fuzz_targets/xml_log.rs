//! Any bytes as XML, with and without a path to the records: nothing panics, and what becomes an event keeps the rules and stands where it says.
#![no_main]

use std::cell::RefCell;

use demi_formats::{Events, Fate};
use demi_formats::mapping::{Mapper, Mapping};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static MAPPERS: RefCell<Vec<Mapper>> = RefCell::new(["", "records = '/e'\n", "records = '/log/e'\n"].map(mapper).into());
}

fn mapper(records: &str) -> Mapper {
    let text = format!(
        "name = 'x'\ndescription = 'd'\n[input]\ncontainer = 'xml'\n{records}[event]\nactor = \"{{who|'a'}}\"\ntype = '{{#name}}'\nfields = '{{.}}'\n"
    );
    Mapper::new(&Mapping::parse(&text, "x").expect("a mapping")).expect("a mapping")
}

fuzz_target!(|input: (u8, &[u8])| {
    MAPPERS.with_borrow_mut(|mappers| {
        let which = usize::from(input.0) % mappers.len();
        let mapper = &mut mappers[which];
        mapper.forget();
        for unit in mapper.map_text("f", input.1) {
            assert!(unit.line.offset as usize <= input.1.len());
            if let Fate::Row(Events { records, .. }) = &unit.fate {
                records.iter().for_each(|r| r.check().expect("events keep the rules"));
            }
        }
    });
});
