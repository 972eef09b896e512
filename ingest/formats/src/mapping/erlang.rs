//! Vector clocks as Erlang prints them: `[{a,1},{'b@host',2}]`, `[{<<"a">>,{1,63412}}]`, `#{a => 1}`.

use demi_schemas::event::VectorClock;

/// The clock in a text of Erlang: a list of pairs of a name and a count, or a map. The count may be the first element of a tuple, as in Riak's
/// clocks, where a time stamp follows. `None` where the text is none.
pub(crate) fn clock(text: &str) -> Option<VectorClock> {
    let mut terms = Terms { rest: text.trim() };
    let mut clock = VectorClock::new();
    let (map, close) = match terms.eat("#{") {
        true => (true, "}"),
        false if terms.eat("[") => (false, "]"),
        false => return None,
    };
    while !terms.eat(close) {
        if !clock.is_empty() && !terms.eat(",") {
            return None;
        }
        if !map && !terms.eat("{") {
            return None;
        }
        let name = terms.name()?;
        if !terms.eat(if map { "=>" } else { "," }) {
            return None;
        }
        let count = terms.count()?;
        if !map && !terms.eat("}") || clock.insert(name, count).is_some() {
            return None;
        }
    }
    terms.rest.is_empty().then_some(clock)
}

struct Terms<'a> {
    /// What was not read yet, without blanks before it.
    rest: &'a str,
}

impl<'a> Terms<'a> {
    fn eat(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    /// Takes what belongs together up to a place.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest.trim_start();
        taken
    }

    /// An atom, a string, a binary, a process identifier or a number.
    fn name(&mut self) -> Option<String> {
        if self.eat("<<") {
            let name = self.quoted('"')?;
            return self.eat(">>").then_some(name);
        }
        match self.rest.chars().next()? {
            quote @ ('\'' | '"') => self.quoted(quote),
            '<' => {
                let end = self.rest.find('>')?;
                Some(self.take(end + 1).to_owned())
            }
            _ => {
                let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '@' | '.' | '-');
                let end = self.rest.find(|c| !plain(c)).unwrap_or(self.rest.len());
                (end > 0).then(|| self.take(end).to_owned())
            }
        }
    }

    fn quoted(&mut self, quote: char) -> Option<String> {
        let mut name = String::new();
        let mut chars = self.rest.strip_prefix(quote)?.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => name.push(chars.next()?.1),
                c if c == quote => {
                    self.take(at + 2 * quote.len_utf8());
                    return Some(name);
                }
                c => name.push(c),
            }
        }
        None
    }

    fn count(&mut self) -> Option<u64> {
        if self.eat("{") {
            let count = self.number()?;
            let end = self.rest.find('}')?;
            self.take(end + 1);
            return Some(count);
        }
        self.number()
    }

    fn number(&mut self) -> Option<u64> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        self.take(end).parse().ok()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn clocks_as_erlang_prints_them() {
        let read = |text: &str| clock(text).unwrap().into_iter().collect::<Vec<_>>();
        let both = [("a".to_owned(), 1), ("b@host".to_owned(), 2)];
        for text in [
            "[{a,1},{'b@host',2}]",
            "[ {a, 1} , {b@host,2} ]",
            "#{a => 1, 'b@host' => 2}",
            r#"[{<<"a">>,{1,63412345}},{"b@host",{2,1}}]"#,
        ] {
            assert_eq!(read(text), both, "{text}");
        }
        assert_eq!(read("[{<0.12.0>,3}]"), [("<0.12.0>".to_owned(), 3)]);
        assert_eq!(read(r"[{'it\'s',4}]"), [("it's".to_owned(), 4)]);
        assert_eq!(read("[]"), []);
    }

    #[test]
    fn what_is_none_is_none() {
        for text in [
            "",
            "[",
            "[{a,1}",
            "[{a,x}]",
            "[{a,1},]",
            "[{a,1}]x",
            "{a,1}",
            "[{a,1},{a,2}]",
            "#{a,1}",
            "[{'a,1}]",
            "[{,1}]",
        ] {
            assert_eq!(clock(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_clock_or_none(text in r#"[\[\]{}#=>a-c'"<>,0-9 \\é]{0,24}"#) {
            let _ = clock(&text);
        }

        #[test]
        fn what_is_printed_is_read(entries in proptest::collection::btree_map("[a-z][a-zA-Z0-9_@]{0,6}", 0..9_u64, 0..6)) {
            let list: Vec<String> = entries.iter().map(|(name, count)| format!("{{{name},{count}}}")).collect();
            prop_assert_eq!(clock(&format!("[{}]", list.join(","))), Some(entries));
        }
    }
}
