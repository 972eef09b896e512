//! Ground states: no message is on its way, and causes come first.

use std::collections::BTreeMap;

use demi_lineage::query::Query;
use proptest::prelude::*;

use super::check::{executed, records, rows};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn both_ends_of_a_message_are_in_one_ground_state(seed: u64, actors in 2..5_u32, events in 5..120_u64) {
        let (_dir, exec) = executed(records(seed, actors, events));
        let query = Query::open(&exec, false).unwrap();
        let Ok(told) = query.state_history() else { return Ok(()) };
        let ground = query.ground(&told).unwrap();
        prop_assert!(ground.moments.is_sorted());
        let name = |at: usize| query.index().name(told.event(at).unwrap()).unwrap();
        let moments: BTreeMap<(String, i64, i64), u32> = ground
            .order
            .iter()
            .zip(&ground.moments)
            .map(|(at, moment)| {
                let id = name(*at);
                ((id.actor, i64::from(id.incarnation), id.seq as i64), *moment)
            })
            .collect();
        prop_assert_eq!(moments.len(), ground.order.len());
        // An actor's states stay in their order.
        let mut last: BTreeMap<&str, u32> = BTreeMap::new();
        for ((actor, ..), moment) in &moments {
            prop_assert!(last.insert(actor, *moment).is_none_or(|before| before <= *moment));
        }
        for row in rows(&query, "SELECT * FROM messages WHERE send_actor IS NOT NULL AND receive_actor IS NOT NULL") {
            let end = |side: &str| {
                let number = |part: &str| row[format!("{side}_{part}")].as_i64().unwrap();
                let actor = row[format!("{side}_actor")].as_str().unwrap().to_owned();
                moments.get(&(actor, number("incarnation"), number("seq"))).copied()
            };
            let timer = row["reason"] == "timer";
            if let (false, Some(sent), Some(received)) = (timer, end("send"), end("receive")) {
                prop_assert_eq!(sent, received, "{}", row);
            }
        }
    }
}
