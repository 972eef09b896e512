//! Made-up logs for measurements: a ring of actors that pass messages on, about 230 bytes a record.

use std::io::Write;

/// Writes `records` event records of eight actors, each actor's own in order, to `out`.
pub fn generate(records: u64, out: &mut impl Write) -> std::io::Result<()> {
    const ACTORS: u64 = 8;
    for n in 0..records {
        let (actor, step) = (n % ACTORS, n / ACTORS);
        let seq = step + 1;
        let id = n / 2;
        let (kind, from, to) = match step % 2 {
            0 => ("send", actor, (actor + 1) % ACTORS),
            _ => ("receive", (actor + ACTORS - 1) % ACTORS, actor),
        };
        writeln!(
            out,
            "{{\"actor\":\"member-{actor}\",\"seq\":{seq},\"kind\":\"{kind}\",\"msg_id\":\"{id}\",\
             \"from\":\"member-{from}\",\"to\":\"member-{to}\",\"type\":\"AppendEntries\",\
             \"payload\":\"AppendEntries(Term({}),List(Entry({id},Term({}),{step})),{})\",\
             \"time\":{}}}",
            step / 1000,
            step / 1001,
            id % 977,
            1_715_731_200_000 + n,
        )?;
    }
    Ok(())
}
