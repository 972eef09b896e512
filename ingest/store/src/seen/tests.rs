use demi_schemas::event::FIRST_CLOCK_SEQ;

use proptest::prelude::*;

use super::*;

#[test]
fn the_first_one_wins_within_a_load() {
    let dir = tempfile::tempdir().unwrap();
    let mut seen = Seen::read("d".into(), dir.path().to_owned(), vec![], &[]).unwrap();
    let source = seen.source("f");
    let entry = |seq, digest| Entry { seq, digest, offset: seq * 10, source };
    assert_eq!(seen.offer("a", 0, entry(1, 5)).unwrap(), Verdict::New { seq: 1 });
    assert_eq!(seen.offer("a", 1, entry(1, 6)).unwrap(), Verdict::New { seq: 1 });
    assert_eq!(seen.offer("b", 0, entry(1, 7)).unwrap(), Verdict::New { seq: 1 });
    assert_eq!(seen.offer("a", 0, entry(4, 5)).unwrap(), Verdict::New { seq: 4 });
    assert_eq!(seen.offer("a", 0, entry(1, 5)).unwrap(), Verdict::Duplicate);
    let conflict = Verdict::Conflict { source: Arc::from("f"), offset: 10 };
    assert_eq!(seen.offer("a", 1, entry(1, 9)).unwrap(), conflict);
    assert_eq!(seen.offer("a", 1, entry(1, 6)).unwrap(), Verdict::Duplicate);
    let rows = seen.completeness();
    let got: Vec<_> = rows.iter().map(|r| (r.actor.as_str(), r.incarnation, r.events, r.missing)).collect();
    assert_eq!(got, [("a", 0, 2, 2), ("a", 1, 1, 0), ("b", 0, 1, 0)]);
    assert_eq!(rows[0].gaps, [(2, 3)]);
    assert_eq!((rows[1].duplicates, rows[1].conflicts), (1, 1));
}

#[test]
fn events_of_one_time_are_moved_apart_and_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut seen = Seen::read("d".into(), dir.path().to_owned(), vec![], &[]).unwrap();
    let source = seen.source("f");
    let time = FIRST_CLOCK_SEQ + 5;
    let mut offer = |seq, digest| seen.offer("a", 0, Entry { seq, digest, offset: 0, source }).unwrap();
    assert_eq!(offer(time, 1), Verdict::New { seq: time });
    assert_eq!(offer(time, 2), Verdict::New { seq: time + 1 });
    assert_eq!(offer(time + 1, 3), Verdict::New { seq: time + 2 });
    assert_eq!(offer(time, 2), Verdict::Duplicate);
    assert_eq!(offer(time + 1, 3), Verdict::Duplicate);
    assert_eq!(offer(time + 9, 2), Verdict::New { seq: time + 9 });
    assert_eq!(offer(2, 9), Verdict::New { seq: 2 });
    let rows = seen.completeness();
    assert_eq!((rows[0].events, rows[0].missing, rows[0].conflicts), (5, 1, 0));
    assert_eq!(rows[0].gaps, [(1, 1)], "between sequence numbers from a clock nothing is missing");
}

/// Where each event of one actor goes, as it is said: at its number or the first one behind it that is free, unless it stands before that.
#[derive(Default)]
struct OneByOne(std::collections::BTreeMap<u64, u64>);

impl OneByOne {
    fn offer(&mut self, mut seq: u64, digest: u64) -> Verdict {
        loop {
            match self.0.get(&seq) {
                None => {
                    self.0.insert(seq, digest);
                    return Verdict::New { seq };
                }
                Some(there) if *there == digest => return Verdict::Duplicate,
                Some(_) => seq += 1,
            }
        }
    }
}

proptest! {
    /// Crowds of events at few times, with events that come again: each goes where it goes if all are looked through one by one.
    #[test]
    fn events_of_a_crowd_go_where_they_go_one_by_one(
        offers in prop::collection::vec((0u64..24, 0u64..60), 0..200), again in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut seen = Seen::read("d".into(), dir.path().to_owned(), vec![], &[]).unwrap();
        let source = seen.source("f");
        let mut all = OneByOne::default();
        let offers: Vec<_> = if again { [&offers[..], &offers[..]].concat() } else { offers };
        for (time, digest) in offers {
            // Most at one time, some a little later.
            let seq = FIRST_CLOCK_SEQ + time.saturating_sub(14);
            let entry = Entry { seq, digest, offset: 0, source };
            prop_assert_eq!(seen.offer("a", 0, entry).unwrap(), all.offer(seq, digest));
        }
        let events = seen.completeness().first().map_or(0, |row| row.events);
        prop_assert_eq!(events, all.0.len() as u64);
    }
}

/// A hundred thousand events of one nanosecond are not looked through for each of them.
#[test]
fn a_crowd_is_looked_through_once() {
    const EVENTS: u64 = 100_000;
    let dir = tempfile::tempdir().unwrap();
    let mut seen = Seen::read("d".into(), dir.path().to_owned(), vec![], &[]).unwrap();
    let source = seen.source("f");
    let entry = |digest| Entry { seq: FIRST_CLOCK_SEQ, digest, offset: digest, source };
    for n in 0..EVENTS {
        assert_eq!(seen.offer("a", 0, entry(n)).unwrap(), Verdict::New { seq: FIRST_CLOCK_SEQ + n });
    }
    for n in (0..EVENTS).rev() {
        assert_eq!(seen.offer("a", 0, entry(n)).unwrap(), Verdict::Duplicate);
    }
}

/// What is held of a long stream of spans does not grow with the spans: they come in the order of their ends, so their
/// sequence numbers, the starts, are out of order and never touch.
#[test]
fn a_million_spans_are_held_in_bounded_memory() {
    const SPANS: u64 = 1_000_000;
    let dir = tempfile::tempdir().unwrap();
    let mut seen = Seen::read("d".into(), dir.path().to_owned(), vec![], &[]).unwrap();
    let source = seen.source("f");
    // Of each ten spans the first to begin is the last to end.
    let start = |n: u64| FIRST_CLOCK_SEQ + (n - n % 10 + (9 - n % 10)) * 1000;
    let entry = |n: u64| Entry { seq: start(n), digest: n, offset: n, source };
    for n in 0..SPANS {
        assert_eq!(seen.offer("a", 0, entry(n)).unwrap(), Verdict::New { seq: start(n) });
    }
    assert_eq!(seen.incarnations[0].numbers.stretches(), 1);
    // In memory are the entries that are not written yet, and a line for each 512 that are.
    assert!(seen.locations.held() < (1 << 18) + SPANS as usize / 512 + 16, "{}", seen.locations.held());
    let rows = seen.completeness();
    assert_eq!((rows[0].events, rows[0].missing, rows[0].first_seq), (SPANS, 0, FIRST_CLOCK_SEQ));
    assert_eq!(rows[0].last_seq, FIRST_CLOCK_SEQ + (SPANS - 1) * 1000);
    // What is sent again is known, wherever it lies; what is of the same time and new is put beside.
    for n in (0..SPANS).step_by(997) {
        assert_eq!(seen.offer("a", 0, entry(n)).unwrap(), Verdict::Duplicate);
        let other = Entry { digest: n + SPANS, ..entry(n) };
        assert_eq!(seen.offer("a", 0, other).unwrap(), Verdict::New { seq: start(n) + 1 });
    }
    let rows = seen.completeness();
    assert_eq!((rows[0].events, rows[0].duplicates), (SPANS + SPANS.div_ceil(997), SPANS.div_ceil(997)));
}

/// Names come without end, each with a few events: what is kept of one is its text and little more, in whatever order they come.
#[test]
fn what_is_kept_of_an_actor_is_packed() {
    let actors: u32 = std::env::var("DEMI_LONG").ok().map_or(300_000, |_| 4_000_000);
    let dir = tempfile::tempdir().unwrap();
    for (seqs, least, most) in
        [(1..=1, 1, 72), (1..=3, 1, 72), (FIRST_CLOCK_SEQ..=FIRST_CLOCK_SEQ + 1, 0, 72)]
    {
        let mut seen = Seen::read("d".into(), dir.path().to_owned(), vec![], &[]).unwrap();
        let source = seen.source("f");
        let mut text = 0;
        for n in 0..actors {
            let name = format!("actor-{n}");
            text += name.len();
            for seq in seqs.clone() {
                let entry = Entry { seq, digest: u64::from(n), offset: 0, source };
                assert_eq!(seen.offer(&name, least, entry).unwrap(), Verdict::New { seq });
            }
        }
        assert_eq!(seen.incarnations(), actors as usize);
        let each = (seen.bytes() - text) / actors as usize;
        assert!(each <= most, "{each} bytes of each actor besides its name");
        assert!(seen.locations.bytes() < 64 << 20, "{}", seen.locations.bytes());
        // All of it is known again.
        let entry = |n: u32| Entry { seq: *seqs.end(), digest: u64::from(n), offset: 0, source };
        for n in (0..actors).step_by(30_011) {
            assert!(seen.knows(&format!("actor-{n}"), least) && !seen.knows(&format!("actor-{n}"), 7));
            assert_eq!(seen.offer(&format!("actor-{n}"), least, entry(n)).unwrap(), Verdict::Duplicate);
        }
    }
}

/// The same of one actor that begins anew without end.
#[test]
fn incarnations_without_end_are_found_as_fast_as_actors() {
    let dir = tempfile::tempdir().unwrap();
    let mut seen = Seen::read("d".into(), dir.path().to_owned(), vec![], &[]).unwrap();
    let source = seen.source("f");
    let name = "x".repeat(1000);
    for incarnation in 0..200_000 {
        let entry = Entry { seq: 1, digest: 1, offset: 0, source };
        assert_eq!(seen.offer(&name, incarnation, entry).unwrap(), Verdict::New { seq: 1 });
    }
    assert!(seen.bytes() / 200_000 < 60, "{}", seen.bytes());
}
