//! Any bytes as what an earlier process saved: positions, and what a mapping remembers.
#![no_main]

mod mappers;

use demi_daemon::positions::Positions;
use demi_formats::lines::Line;
use demi_daemon::spool::Folder;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|input: (u8, &[u8], &[u8])| {
    let (which, first, second) = input;
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(dir.path().join("positions.json"), first).expect("writable");
    let disk = Folder::at(dir.path());
    if let Ok(positions) = Positions::read(&disk) {
        positions.write(&disk).expect("writable");
        assert_eq!(Positions::read(&disk).expect("what was written"), positions);
    }
    let (Ok(shared), Ok(of_source)) =
        (serde_json::from_slice::<Value>(first), serde_json::from_slice(second))
    else {
        return;
    };
    mappers::with(which, 0, |_, mapper| {
        let (_, _) = (mapper.resume_shared(&shared), mapper.resume(&of_source));
        let mut units = Vec::new();
        for (n, text) in ["a {\"a\":1}", "b", "{\"actor\":\"a\"}", "x=1"].into_iter().enumerate() {
            let (offset, length) = (n as u64 * 100, text.len() as u64);
            let line = Line { offset, number: n as u64 + 1, length, terminated: true, overlong: None };
            mapper.line(line, text.as_bytes(), &mut units);
        }
        mapper.end(&mut units);
    });
});
