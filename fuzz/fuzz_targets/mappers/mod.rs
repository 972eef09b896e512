//! Mappers of the mappings that come with the program, each compiled once.

use std::cell::RefCell;
use std::collections::HashMap;

use demi_formats::mapping::{Mapper, Mapping, shipped};

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
