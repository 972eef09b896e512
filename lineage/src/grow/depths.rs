//! The depths of a base's events that later ones can follow at once: sends that are open, and each log's last event in its order.

use std::path::Path;

use demi_common::sealed;
use parquet::file::reader::Length;
use rustc_hash::FxHashMap;

use crate::error::LineageError;
use crate::matching::Matching;
use crate::order::Order;
use crate::read::{Events, NONE, Units, beside, is_send};

/// Name of the file: pairs of an event and its depth, 32 bits each.
pub(super) const DEPTHS: &str = "depths.bin";

/// Writes them to the base's folder.
pub(crate) fn write(
    folder: &Path,
    events: &Events,
    matching: &Matching,
    units: &Units,
    order: &Order,
) -> Result<(), LineageError> {
    let open = |e: &u32| is_send(events.kind[*e as usize]) && matching.mate(*e) == NONE;
    let alone = |e: &u32| units.is_alone(units.unit_of(*e));
    let last = |actor: u32| events.of_actor(actor).rev().find(|e| !alone(e));
    let tails = (0..events.actors.len() as u32).filter_map(last);
    let all = (0..events.len() as u32).filter(open).chain(tails);
    let bytes: Vec<u8> =
        all.flat_map(|e| [e, order.depth[e as usize]]).flat_map(|number| number.to_le_bytes()).collect();
    let path = folder.join(DEPTHS);
    sealed::write(&path, &bytes).map_err(LineageError::io(&path))
}

/// Reads what was written: by event, its depth.
pub(super) fn read(folder: &Path) -> Result<FxHashMap<u32, u32>, LineageError> {
    let path = folder.join(DEPTHS);
    let file = beside(&path)?.open().map_err(LineageError::io(&path))?;
    let bytes = file.read(0, file.len() as usize).map_err(LineageError::io(&path))?;
    let number = |bytes: &[u8]| bytes.first_chunk().map_or(0, |b| u32::from_le_bytes(*b));
    Ok(bytes.chunks_exact(8).map(|pair| (number(pair), number(&pair[4..]))).collect())
}
