//! Traces of Jaeger in every shape and cut anywhere.

use super::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Members in any order, cut anywhere; as one answer of the query service, as a list of traces, and one trace after the other.
    #[test]
    fn traces_of_jaeger_are_the_same_in_any_shape(seed in any::<u64>(), sizes in proptest::collection::vec(0..5_usize, 1..4), piece in 1..40_usize) {
        let traces: Vec<Value> = sizes.iter().enumerate().map(|(n, spans)| {
            let spans: Vec<Value> = (1..=*spans).map(|at| json!({
                "spanID": format!("{at}"), "operationName": "x", "processID": format!("p{}", at % 3),
                "startTime": 1_700_000_000_000_000_u64 + at as u64, "duration": 5,
                "tags": [{"key": "span.kind", "value": if at % 2 == 0 { "client" } else { "server" }}],
                "references": [{"refType": "CHILD_OF", "spanID": format!("{}", at - 1)}],
            })).collect();
            let processes = json!({"p0": {"serviceName": "a"}, "p1": {"serviceName": "b", "tags": [{"key": "k", "value": 1}]}});
            json!({"traceID": format!("{}", n + 1), "spans": spans, "processes": processes, "warnings": null})
        }).collect();
        let mut dice = Dice(seed);
        let mut read_all = |documents: &[Value]| {
            let text = text(documents, &mut dice);
            let (mut events, mut reasons) = outcomes(read(Container::Jaeger, None, 1 << 20, text.as_bytes(), piece));
            let line = |event: &mut String| {
                let mut value: Value = serde_json::from_str(event).unwrap();
                value.as_object_mut().unwrap().remove("line");
                *event = value.to_string();
            };
            events.iter_mut().for_each(line);
            // Where it stands differs.
            reasons.iter_mut().for_each(|reason| *reason = reason.rsplit(": ").next().unwrap().to_owned());
            events.sort();
            reasons.sort();
            (events, reasons)
        };
        let answer = read_all(&[json!({"data": traces, "total": 0, "errors": null})]);
        let events: usize = sizes.iter().map(|spans| (1..=*spans).filter(|at| at % 3 < 2).count()).sum();
        prop_assert_eq!(answer.0.len(), events);
        prop_assert_eq!(read_all(&[Value::Array(traces.clone())]), answer.clone());
        prop_assert_eq!(read_all(&traces), answer);
    }
}
