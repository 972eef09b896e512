use demi_schemas::event::FIRST_CLOCK_SEQ;

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
    assert_eq!(seen.incarnations[0].numbers.stretches(), 2);
    // In memory are the entries that are not written yet, and a line for each 512 that are.
    assert!(seen.locations.held() < 512 + SPANS as usize / 512 + 1, "{}", seen.locations.held());
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
