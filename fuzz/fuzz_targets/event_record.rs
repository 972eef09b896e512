//! Any bytes are a record or an error; a record says the same after it was written and read again.
#![no_main]

use demi_formats::{record_digest, utc_date};
use demi_schemas::EventRecord;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    if let Ok(record) = EventRecord::parse(line) {
        let _ = record.time.as_ref().map(utc_date);
        let text = serde_json::to_vec(&record).expect("a record can be written");
        let again = EventRecord::parse(&text).expect("what was written can be read");
        assert_eq!(record_digest(&record), record_digest(&again));
    }
});
