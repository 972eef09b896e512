//! What a step does, without the names and values with which it does it.

use std::collections::BTreeSet;

use super::goes_on;

/// An effect of a step as the explanation of a result tells it, without names and values: which part of the state becomes more, less, up, down or
/// another word, or which type of message is sent. Nothing for any other line.
pub fn abstracted(effect: &str, actors: &BTreeSet<&str>) -> Option<String> {
    if let Some((part, change)) = effect.split_once(": ")
        && let Some((before, after)) = change.split_once(" → ")
    {
        return Some(format!("{} {}", without_names(part, actors), how(before, after, actors)));
    }
    let (_, message) = effect.strip_prefix("to ")?.split_once(": ")?;
    let type_ = words(message).next().unwrap_or_default();
    Some(format!("to {}", without_names(type_, actors)))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !goes_on(c)).filter(|word| !word.is_empty())
}

/// Names of actors are one name, and numbers one number.
fn without_names(text: &str, actors: &BTreeSet<&str>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match goes_on(first) {
            true => rest.find(|c| !goes_on(c)).unwrap_or(rest.len()),
            false => rest.find(goes_on).unwrap_or(rest.len()),
        };
        let word = &rest[..length];
        out.push_str(match word {
            _ if actors.contains(word) => "@",
            _ if goes_on(first) && word.contains(|c: char| c.is_ascii_digit()) => "#",
            _ => word,
        });
        rest = &rest[length..];
    }
    out
}

/// How a value changes.
fn how(before: &str, after: &str, actors: &BTreeSet<&str>) -> String {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    if let (Some(before), Some(after)) = (number(before), number(after)) {
        return if after < before { "down" } else { "up" }.to_owned();
    }
    // Words of the system's own language, such as roles and phases, count as they are.
    let word = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_alphabetic() || c == '_') && !actors.contains(text)
    };
    if word(before.trim()) && word(after.trim()) {
        return format!("{} > {}", before.trim(), after.trim());
    }
    match words(after).count().cmp(&words(before).count()) {
        std::cmp::Ordering::Greater => "grows",
        std::cmp::Ordering::Less => "shrinks",
        std::cmp::Ordering::Equal => "changes",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_do_not_count_but_what_becomes_of_them_does() {
        let actors = BTreeSet::from(["node-1", "node-12", "alice"]);
        let of = |effect: &str| abstracted(effect, &actors).unwrap_or_default();
        assert_eq!(of("term: 0 → 1"), of("term: 9 → 10"));
        assert_ne!(of("term: 0 → 1"), of("term: 1 → 0"));
        assert_eq!(of("role: Follower → Candidate"), "role Follower > Candidate");
        assert_eq!(of("leader: node-1 → node-12"), of("leader: alice → node-1"));
        assert_eq!(of("votes: {} → {\"1\":\"node-1\"}"), of("votes: {} → {\"10\":\"alice\"}"));
        assert_ne!(of("votes: {} → {\"1\":\"node-1\"}"), of("votes: {\"1\":\"node-1\"} → {}"));
        assert_eq!(of("peers.node-1: 3 → 4"), of("peers.alice: 1 → 7"));
        assert_eq!(of("to node-1: (Vote,Term(1))"), "to Vote");
        assert_eq!(of("to node-1, from alice: Vote(1)"), "to Vote");
        assert_eq!(abstracted("without it step 3 is impossible", &actors), None);
    }
}
