//! Records that tell of records that were lost.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::actors::{Actor, Lost};
use crate::encode::Line;

/// Nanoseconds since the Unix epoch.
pub(crate) fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_nanos())
}

/// Appends records that tell of lost ones, at the actor's next sequence numbers.
pub(crate) fn notes(name: &str, actor: &mut Actor, time: Option<u128>, out: &mut Vec<u8>) {
    let mut line = Line::default();
    for Lost { count, incarnation, first, last } in &actor.lost {
        line.clear();
        name.clone_into(&mut line.actor);
        "local".clone_into(&mut line.kind);
        line.add_text("type", "demi_log.dropped");
        line.add_json(
            "fields",
            &format!(
                "{{\"dropped\":{count},\"incarnation\":{incarnation},\"first\":{first},\"last\":{last}}}"
            ),
        );
        actor.seq += 1;
        line.write(actor.incarnation, actor.seq, time, out);
    }
}
