//! Mappers of the mappings that come with the program, each compiled once.

#![allow(dead_code, reason = "each target uses a part of it")]

use std::cell::RefCell;
use std::collections::HashMap;

use demi_formats::{Events, Fate};
use demi_formats::mapping::{Mapper, Mapping, Unit, shipped};

thread_local! {
    static MAPPERS: RefCell<HashMap<(usize, usize), (Mapping, Mapper)>> = RefCell::default();
}

/// Calls `f` with a mapping and a mapper of it that has read nothing; `copy` tells several of one mapping apart.
pub fn with<R>(which: u8, copy: usize, f: impl FnOnce(&Mapping, &mut Mapper) -> R) -> R {
    let which = usize::from(which) % shipped().len();
    let (mapping, mut mapper) =
        MAPPERS.with_borrow_mut(|all| all.remove(&(which, copy))).unwrap_or_else(|| {
            let mapping = Mapping::named(shipped()[which].name).expect("shipped");
            let mapper = Mapper::new(&mapping).expect("shipped");
            (mapping, mapper)
        });
    mapper.forget();
    let result = f(&mapping, &mut mapper);
    MAPPERS.with_borrow_mut(|all| all.insert((which, copy), (mapping, mapper)));
    result
}

/// Panics unless what became events keeps the rules of records.
pub fn events_keep_the_rules(units: &[Unit]) {
    for unit in units {
        if let Fate::Row(Events { records, .. }) = &unit.fate {
            records.iter().for_each(|r| r.check().expect("events keep the rules"));
        }
    }
}

/// Panics unless each line of a log is in one unit; an empty one may be in none.
pub fn every_line_is_met_once(log: &[u8], units: &[Unit]) {
    let lines: Vec<&[u8]> = log.split(|b| *b == b'\n').collect();
    let mut met = vec![0_u32; lines.len() + 1];
    for unit in units {
        for line in unit.line.number..unit.line.number + unit.lines {
            met[line as usize - 1] += 1;
        }
    }
    for (line, met) in lines.iter().zip(met) {
        assert!(met == 1 || (met == 0 && line.trim_ascii().is_empty()), "{met} {line:?}");
    }
}
