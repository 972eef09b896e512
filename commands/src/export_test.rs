//! `export --format pytest|js-test|rust-test`: a schedule as a test of the system that it was found in.

use std::fmt::Write as _;

use demi_schemas::{Scenario, Schedule};

/// A language of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Python, for pytest or unittest, over the protocol of models.
    Python,
    /// JavaScript, for `node --test`, over the protocol of models.
    JavaScript,
    /// Rust, with the library `demi-lineage`.
    Rust,
}

/// The text of a test that fails while the schedule breaks its invariant. A test in Rust takes its models from the library
/// with the name of `program`, the one that runs.
///
/// # Errors
/// When a test over the protocol is asked for, and the scenario's model is no command.
pub fn text(
    language: Language,
    scenario: &Scenario,
    schedule: &Schedule,
    program: &str,
) -> Result<String, String> {
    match language {
        Language::Python => python(scenario, schedule),
        Language::JavaScript => javascript(scenario, schedule),
        Language::Rust => Ok(rust(scenario, schedule, program)),
    }
}

/// What is broken, in one line that may stand in a comment.
fn broken(schedule: &Schedule) -> String {
    let all = schedule.header.violation.join(", ");
    all.chars().map(|c| if c.is_control() || "\"\\".contains(c) { ' ' } else { c }).collect()
}

/// The name of the test: the invariant's, as identifiers are written.
fn name(schedule: &Schedule) -> String {
    let invariant = schedule.header.violation.first().map_or("", String::as_str);
    let invariant = invariant.split(':').next().unwrap_or_default();
    let mut name = String::from("test");
    let mut gap = true;
    for c in invariant.chars() {
        if !c.is_ascii_alphanumeric() {
            gap = true;
            continue;
        }
        if gap || c.is_ascii_uppercase() {
            name.push('_');
        }
        gap = false;
        name.push(c.to_ascii_lowercase());
    }
    name
}

/// What a test over the protocol holds: the model's command, the scenario, and the schedule's lines, all as JSON.
fn parts(scenario: &Scenario, schedule: &Schedule) -> Result<(String, String, Vec<String>), String> {
    let value = serde_json::to_value(scenario).map_err(|e| e.to_string())?;
    let Some(command) = value.pointer("/model/command").filter(|command| command.is_array()) else {
        return Err(
            "such a test drives a model that is a command: the scenario has none; for a model in Rust use \
                    --format rust-test"
                .to_owned(),
        );
    };
    let text = schedule.to_text();
    let lines = text.lines().map(literal).collect::<Result<_, _>>()?;
    Ok((command.to_string(), value.to_string(), lines))
}

fn literal(text: &str) -> Result<String, String> {
    serde_json::to_string(text).map_err(|e| e.to_string())
}

fn javascript(scenario: &Scenario, schedule: &Schedule) -> Result<String, String> {
    let (command, scenario, lines) = parts(scenario, schedule)?;
    let lines: String = lines.iter().map(|line| format!("  {line},\n")).collect();
    let broken = broken(schedule);
    Ok(format!(
        "// The shortest execution found that breaks {broken}.\n//\n// Written by `demi-lineage export --format \
         js-test`. It fails while the bug is there. Run it with `node --test` where the\n// model's command is \
         found.\n\nimport assert from \"node:assert/strict\";\nimport {{ test }} from \"node:test\";\n\nimport {{ \
         follow }} from \"demi-model/testing\";\n\nconst COMMAND = {command};\nconst SCENARIO = \
         {scenario};\nconst SCHEDULE = [\n{lines}];\n\ntest({name}, async () => {{\n  const {{ violations, step }} = \
         await follow(COMMAND, SCENARIO, SCHEDULE.join(\"\\n\"));\n  assert.deepEqual(violations, [], `at step \
         ${{step}}`);\n}});\n",
        name = literal(&broken)?,
    ))
}

fn python(scenario: &Scenario, schedule: &Schedule) -> Result<String, String> {
    let (command, value, lines) = parts(scenario, schedule)?;
    let lines: String = lines.iter().map(|line| format!("    {line},\n")).collect();
    Ok(format!(
        "\"\"\"The shortest execution found that breaks {broken}.\n\nWritten by `demi-lineage export --format pytest`. It \
         fails while the bug is there. Run it where the model's command\nis found.\n\"\"\"\n\nimport json\nimport \
         unittest\n\nfrom demi_model.testing import follow\n\nCOMMAND = {command}\nSCENARIO = \
         json.loads({scenario})\nSCHEDULE = [\n{lines}]\n\n\nclass Schedule(unittest.TestCase):\n    def {name}(self):\n        \
         outcome = follow(COMMAND, SCENARIO, \"\\n\".join(SCHEDULE))\n        self.assertEqual(outcome.violations, [], \"at \
         step %d\" % outcome.step)\n\n\nif __name__ == \"__main__\":\n    unittest.main()\n",
        broken = broken(schedule),
        scenario = literal(&value)?,
        name = name(schedule),
    ))
}

fn rust(scenario: &Scenario, schedule: &Schedule, program: &str) -> String {
    let library = match program {
        "demi-lineage" => "my_crate".to_owned(),
        own => own.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect(),
    };
    let mut lines = String::new();
    for line in schedule.to_text().lines() {
        let _ = writeln!(lines, "    {line:?},");
    }
    format!(
        "//! The shortest execution found that breaks {broken}.\n//!\n//! Written by `demi-lineage export --format \
         rust-test`. It fails while the bug is there.\n\n// The function of your crate that gives its models.\nuse \
         {library}::models;\n\nconst SCENARIO: &str = {scenario:?};\n\nconst SCHEDULE: &[&str] = &[\n{lines}];\n\n#[test]\nfn \
         {name}() {{\n    let broken = demi_lineage::testing::violations(&models(), SCENARIO, &SCHEDULE.join(\"\\n\"));\n    \
         assert_eq!(broken.expect(\"it can be followed\"), [\"\"; 0]);\n}}\n",
        broken = broken(schedule),
        scenario = scenario.to_text(),
        name = name(schedule),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers() {
        for (violation, expected) in [
            ("MutualExclusion:a:b", "test_mutual_exclusion"),
            ("no two leaders!", "test_no_two_leaders"),
            ("Größe", "test_gr_e"),
            ("", "test"),
        ] {
            let mut schedule = Schedule::new(Vec::new());
            schedule.header.violation = vec![violation.to_owned()];
            assert_eq!(name(&schedule), expected);
        }
    }

    #[test]
    fn a_model_in_rust_has_no_python_test() {
        let scenario = Scenario::parse("model = \"raft\"\nnetwork = \"fifo\"\n").unwrap();
        assert!(text(Language::Python, &scenario, &Schedule::new(Vec::new()), "demi-lineage").is_err());
    }
}
