//! What it costs to leave the default order.

use std::fmt;
use std::str::FromStr;

/// How deviations from the default order are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Cost {
    /// One for anything but the first choice. What was passed over stays first.
    #[default]
    Deviation,
    /// One for each choice that is passed over (delay bounding; Emmi, Qadeer and Rakamarić, POPL 2011).
    Delay,
    /// One for leaving an actor that could go on. The default order stays at the actor that took something last (context bounding;
    /// Musuvathi and Qadeer, PLDI 2007).
    Preempt,
}

impl Cost {
    /// Its name on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Cost::Deviation => "deviation",
            Cost::Delay => "delay",
            Cost::Preempt => "preempt",
        }
    }

    /// What one unit is, for sentences: "2 deviations".
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Cost::Deviation => "deviation",
            Cost::Delay => "delay",
            Cost::Preempt => "preemption",
        }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Cost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Cost::Deviation, Cost::Delay, Cost::Preempt]
            .into_iter()
            .find(|cost| cost.as_str() == text)
            .ok_or_else(|| format!("no cost '{text}': there are deviation, delay and preempt"))
    }
}
