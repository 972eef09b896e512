//! What comes from outside: its text, and what random runs ask for.

use demi_replay::{ActorId, Names, Proposal};

use crate::error::BadRequest;
use crate::message::Msg;
use crate::system::TikvRaft;

/// A request from its text, such as `Write(7)`.
pub(crate) fn parse(text: &str) -> Result<Msg, BadRequest> {
    let (name, rest) = text.split_once('(').unwrap_or((text, ""));
    let mut numbers = rest.trim_end_matches(')').split(',').map(|n| n.trim().parse::<u64>());
    let mut number =
        || numbers.next().and_then(Result::ok).ok_or_else(|| BadRequest::Number(text.to_owned()));
    Ok(match name.trim() {
        "Write" => Msg::Write(number()?),
        "Read" => Msg::Read { read: number()?, node: number()? },
        "AddNode" => Msg::AddNode(number()?),
        "RemoveNode" => Msg::RemoveNode(number()?),
        "Compact" => Msg::Compact,
        other => return Err(BadRequest::Unknown(other.to_owned())),
    })
}

impl TikvRaft {
    /// The `n`-th request of a random run.
    pub(crate) fn request(&self, n: u64, choice: u64, _: &Names) -> Option<Proposal<Msg>> {
        let settings = &self.settings;
        let kinds = [settings.writes, settings.reads, settings.conf_changes, settings.compactions];
        let mut drawn = choice % kinds.iter().sum::<u64>().max(1);
        let kind = kinds.iter().position(|&weight| {
            let is = drawn < weight;
            drawn = drawn.saturating_sub(weight);
            is
        })?;
        let choice = choice >> 16;
        let node = choice % self.nodes().len() as u64 + 1;
        let other = (choice >> 16) % self.nodes().len() as u64 + 1;
        let at: ActorId = self.node(node)?;
        let (to, msg) = match kind {
            0 => (at, Msg::Write(n)),
            1 => (self.client(), Msg::Read { read: n, node }),
            2 if (choice >> 32).is_multiple_of(2) => (at, Msg::AddNode(other)),
            2 => (at, Msg::RemoveNode(other)),
            _ => (at, Msg::Compact),
        };
        Some(Proposal::new(to, msg))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    #[test]
    fn requests_have_a_text_that_is_read_back() {
        let all = [
            Msg::Write(7),
            Msg::Read { read: 3, node: 2 },
            Msg::AddNode(4),
            Msg::RemoveNode(1),
            Msg::Compact,
        ];
        for msg in all {
            assert_eq!(parse(&text::payload(&msg)), Ok(msg));
        }
        assert_eq!(parse("Wrote(7)"), Err(BadRequest::Unknown("Wrote".into())));
        assert_eq!(parse("Read(7)"), Err(BadRequest::Number("Read(7)".into())));
    }
}
