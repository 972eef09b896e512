//! What each pass won and what it cost, and in which order passes are worth running.

use demi_schemas::summary::PassYield;
use serde::{Deserialize, Serialize};

use crate::plan::YIELD;
use crate::problem::size::Size;

/// The account of all passes of one line of work, or of several.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Account(Vec<PassYield>);

/// What one run of a pass cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Schedules tested.
    pub replays: u64,
    /// Deliveries executed.
    pub executed: u64,
    /// Wall-clock time.
    pub seconds: f64,
}

impl Account {
    fn of(&mut self, pass: &str) -> &mut PassYield {
        let at = self.0.iter().position(|y| y.pass == pass).unwrap_or_else(|| {
            self.0.push(PassYield { pass: pass.to_owned(), ..PassYield::default() });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    /// Notes one run of a pass.
    pub fn note(&mut self, pass: &str, cost: Cost, before: Size, after: Size) {
        let won = |before: usize, after: usize| before as i64 - after as i64;
        let line = self.of(pass);
        line.runs += 1;
        line.gains += u64::from(before != after);
        line.replays += cost.replays;
        line.executed += cost.executed;
        line.seconds += cost.seconds;
        line.deliveries += won(before.deliveries, after.deliveries);
        line.externals += won(before.externals, after.externals);
    }

    /// Notes why a search of a pass could not be made.
    pub fn refuse(&mut self, pass: &str, why: String) {
        self.of(pass).unsearchable.insert(why);
    }

    /// Adds another account.
    pub fn add(&mut self, other: &Account) {
        for more in &other.0 {
            let line = self.of(&more.pass);
            line.runs += more.runs;
            line.gains += more.gains;
            line.replays += more.replays;
            line.executed += more.executed;
            line.seconds += more.seconds;
            line.deliveries += more.deliveries;
            line.externals += more.externals;
            line.unsearchable.extend(more.unsearchable.iter().cloned());
        }
    }

    /// Which of several passes, each with a name, to run first: what won most for the deliveries executed so far. One
    /// that never ran counts as if it had won a little, so that each gets its turn; ties keep their order.
    #[must_use]
    pub fn order(&self, passes: &[&str]) -> Vec<usize> {
        let worth = |pass: &str| -> f64 {
            let Some(line) = self.0.iter().find(|y| y.pass == pass) else { return 1e-3 };
            let won = (line.deliveries + YIELD * line.externals).max(0);
            (won as f64 + 1.0) / (line.executed as f64 + 1000.0)
        };
        let mut order: Vec<usize> = (0..passes.len()).collect();
        order.sort_by(|&a, &b| worth(passes[b]).total_cmp(&worth(passes[a])));
        order
    }

    /// The lines, what won most for the work first, then by name.
    #[must_use]
    pub fn lines(self) -> Vec<PassYield> {
        let yields = |y: &PassYield| (y.deliveries + YIELD * y.externals) as f64 / (y.executed + 1) as f64;
        let mut lines = self.0;
        lines.sort_by(|a, b| yields(b).total_cmp(&yields(a)).then_with(|| a.pass.cmp(&b.pass)));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(deliveries: usize, externals: usize) -> Size {
        Size { steps: deliveries, externals, deliveries }
    }

    #[test]
    fn what_wins_more_for_less_comes_first() {
        let mut account = Account::default();
        let cost = |executed| Cost { replays: 1, executed, seconds: 0.0 };
        account.note("dear", cost(100_000), size(50, 8), size(40, 8));
        account.note("cheap", cost(1_000), size(40, 8), size(38, 8));
        account.note("idle", cost(500_000), size(38, 8), size(38, 8));
        assert_eq!(account.order(&["idle", "dear", "cheap"]), [2, 1, 0]);
        assert_eq!(account.order(&["idle", "new", "dear"]), [1, 2, 0]);
        let names: Vec<String> = account.lines().into_iter().map(|y| y.pass).collect();
        assert_eq!(names, ["cheap", "dear", "idle"]);
    }

    #[test]
    fn accounts_add_up() {
        let mut one = Account::default();
        one.note("a", Cost { replays: 2, executed: 10, seconds: 0.5 }, size(9, 3), size(7, 3));
        let mut two = one.clone();
        two.note("b", Cost::default(), size(7, 3), size(9, 2));
        two.refuse("a", "too much".to_owned());
        one.add(&two);
        let lines = one.lines();
        assert_eq!((lines[0].pass.as_str(), lines[0].externals, lines[0].deliveries), ("b", 1, -2));
        assert_eq!(lines[1].unsearchable.iter().collect::<Vec<_>>(), ["too much"]);
        assert_eq!((lines[1].runs, lines[1].gains, lines[1].replays, lines[1].deliveries), (2, 2, 4, 4));
    }
}
