//! Any bytes as a message of a queue: every line that is not empty is told once; a document is told or refused.
#![no_main]

use demi_daemon::sources::nats::{Format, read};
use demi_schemas::EventRecord;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (bool, u8, Vec<u8>)| {
    let (document, limit, bytes) = input;
    let format = if document { Format::OtlpJson } else { Format::Events };
    let items = read(&bytes.clone().into(), 7, format, "s", usize::from(limit));
    for item in &items {
        assert_eq!(item.offset, 7);
        match &item.rejected {
            None => {
                let record = EventRecord::parse(&item.bytes).expect("events keep the rules");
                assert!(record.system.as_deref().is_none_or(|system| system == "s"));
            }
            Some(why) => assert!(!why.code().is_empty()),
        }
    }
    if !document {
        let lines = bytes.split(|b| *b == b'\n').filter(|line| !line.trim_ascii().is_empty()).count();
        assert_eq!(items.len(), lines);
    }
});
