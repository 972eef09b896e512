//! `export --format pytest|js-test|rust-test`: a schedule as a test of the system that it was found in.

use std::fmt::Write as _;

use demi_schemas::{ModelRef, Scenario, Schedule};

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
/// When a test over the protocol is asked for, and the scenario's model is no command; or one in Rust, and the model is a command.
pub fn text(
    language: Language,
    scenario: &Scenario,
    schedule: &Schedule,
    program: &str,
) -> Result<String, String> {
    match language {
        Language::Python => python(scenario, schedule),
        Language::JavaScript => javascript(scenario, schedule),
        Language::Rust => rust(scenario, schedule, program),
    }
}

impl Language {
    /// A text with everything escaped, as the language writes it, that is not printable ASCII: it can end no comment and no line, and
    /// nobody reads another order of characters than the language's parser does.
    fn ascii(self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match (self, u32::from(c)) {
                (_, 0x20..=0x7e) => out.push(c),
                (Language::Python, code @ 0..=0xffff) => {
                    let _ = write!(out, "\\u{code:04x}");
                }
                (Language::Python, code) => {
                    let _ = write!(out, "\\U{code:08x}");
                }
                (Language::JavaScript | Language::Rust, code) => {
                    let _ = write!(out, "\\u{{{code:x}}}");
                }
            }
        }
        out
    }

    /// A text as a string of the language.
    fn literal(self, text: &str) -> String {
        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
        format!("\"{}\"", self.ascii(&quoted))
    }

    /// The lines of a schedule as strings of the language, a line each.
    fn lines(self, schedule: &Schedule) -> String {
        let text = schedule.to_text();
        text.lines().map(|line| format!("    {},\n", self.literal(line))).collect()
    }
}

/// What is broken.
fn broken(schedule: &Schedule) -> String {
    schedule.header.violation.join(", ")
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

/// What actors break that come to no end or wait for each other: it is seen by who knows all that could go on, and a test over the protocol follows
/// the schedule alone.
const BEYOND_A_STEP: [&str; 4] = ["Livelock:", "Hog:", "Deadlock:", "Stuck:"];

/// What a test over the protocol holds: the model's command, as strings of the language, and the scenario as JSON.
fn parts(language: Language, scenario: &Scenario, schedule: &Schedule) -> Result<(String, String), String> {
    let broken = &schedule.header.violation;
    let unseen = |broken: &String| BEYOND_A_STEP.iter().any(|begin| broken.starts_with(begin));
    if !broken.is_empty() && broken.iter().all(unseen) {
        return Err(format!(
            "such a test cannot see {}: run `replay SCHEDULE --scenario SCENARIO --strict` as a test, which says whether it is there",
            broken.join(", ")
        ));
    }
    let command = match &scenario.model {
        ModelRef::Child(child) if child.nodes.is_some() => {
            return Err("such a test asks a model, and the scenario's program is no model: write a script with --format maelstrom-script, or run `replay \
                        SCHEDULE --scenario SCENARIO --strict` as a test"
                .to_owned());
        }
        ModelRef::Child(child) if !child.command.is_empty() => &child.command,
        ModelRef::Child(_) => {
            return Err("such a test starts its model, and the scenario names a socket: give it one with a \
                        command (--scenario)"
                .to_owned());
        }
        ModelRef::Name(name) => {
            return Err(format!(
                "such a test drives a model that is a command, and '{name}' is a model in Rust: write it with \
                 --format rust-test"
            ));
        }
    };
    let words: Vec<String> = command.iter().map(|word| language.literal(word)).collect();
    let scenario = serde_json::to_string(scenario).map_err(|e| e.to_string())?;
    Ok((format!("[{}]", words.join(", ")), language.literal(&scenario)))
}

fn javascript(scenario: &Scenario, schedule: &Schedule) -> Result<String, String> {
    let language = Language::JavaScript;
    let (command, scenario) = parts(language, scenario, schedule)?;
    Ok(format!(
        "// The shortest execution found that breaks {broken}.\n//\n// Written by `demi-lineage export --format \
         js-test`. It fails while the bug is there. Run it with `node --test` where the\n// model's command is \
         found. The package it imports is the folder sdk/js of demi-lineage; no registry has it.\n\nimport assert from \
         \"node:assert/strict\";\nimport {{ test }} from \"node:test\";\n\nimport {{ \
         follow }} from \"demi-model/testing\";\n\nconst COMMAND = {command};\nconst SCENARIO = \
         JSON.parse({scenario});\nconst SCHEDULE = [\n{lines}];\n\ntest({name}, async () => {{\n  const {{ violations, step }} = \
         await follow(COMMAND, SCENARIO, SCHEDULE.join(\"\\n\"));\n  assert.deepEqual(violations, [], `at step \
         ${{step}}`);\n}});\n",
        broken = language.ascii(&broken(schedule)),
        lines = language.lines(schedule),
        name = language.literal(&broken(schedule)),
    ))
}

fn python(scenario: &Scenario, schedule: &Schedule) -> Result<String, String> {
    let language = Language::Python;
    let (command, scenario) = parts(language, scenario, schedule)?;
    // The first two lines of a file in Python may say how it is encoded: nothing from outside stands there.
    Ok(format!(
        "\"\"\"The shortest execution found that breaks an invariant.\n\nWritten by `demi-lineage export --format \
         pytest`. It fails while the bug is there. Run it where the model's command\nis found. The package it imports is \
         the folder sdk/python of demi-lineage; no registry has it.\n\"\"\"\n\nimport json\nimport unittest\n\nfrom \
         demi_model.testing import follow\n\n# It breaks {broken}.\nCOMMAND = {command}\nSCENARIO = \
         json.loads({scenario})\nSCHEDULE = [\n{lines}]\n\n\nclass Schedule(unittest.TestCase):\n    def {name}(self):\n        \
         outcome = follow(COMMAND, SCENARIO, \"\\n\".join(SCHEDULE))\n        self.assertEqual(outcome.violations, [], \"at \
         step %d\" % outcome.step)\n\n\nif __name__ == \"__main__\":\n    unittest.main()\n",
        broken = language.ascii(&broken(schedule)),
        lines = language.lines(schedule),
        name = name(schedule),
    ))
}

fn rust(scenario: &Scenario, schedule: &Schedule, program: &str) -> Result<String, String> {
    if let ModelRef::Child(_) = &scenario.model {
        return Err("such a test drives a model in Rust, and the scenario's model is a command: write it with --format pytest, or with \
                    --format js-test"
            .to_owned());
    }
    let language = Language::Rust;
    Ok(format!(
        "//! The shortest execution found that breaks {broken}.\n//!\n//! Written by `demi-lineage export --format \
         rust-test`. It fails while the bug is there.\n\n// The function of your crate that gives its models.\nuse \
         {library}::models;\n\nconst SCENARIO: &str = {scenario};\n\nconst SCHEDULE: &[&str] = &[\n{lines}];\n\n#[test]\nfn \
         {name}() {{\n    let broken = demi_commands::testing::violations(&models(), SCENARIO, &SCHEDULE.join(\"\\n\"));\n    \
         assert_eq!(broken.expect(\"it can be followed\"), [\"\"; 0]);\n}}\n",
        broken = language.ascii(&broken(schedule)),
        library = library(program),
        scenario = language.literal(&scenario.to_text()),
        lines = language.lines(schedule),
        name = name(schedule),
    ))
}

/// The library of the program that runs, as a name in Rust.
fn library(program: &str) -> String {
    let name: String = program.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    // This project's own program is nobody's library.
    match crate::new_model::checked_name(&name) {
        Ok(own) => own,
        Err(_) => "my_crate".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_that_of_a_program_of_ones_own() {
        for (program, expected) in [
            ("my-lock", "my_lock"),
            ("demi-lineage", "my_crate"),
            ("demi-mine", "my_crate"),
            ("9", "my_crate"),
            ("match", "my_crate"),
        ] {
            assert_eq!(library(program), expected, "{program}");
        }
    }

    #[test]
    fn a_test_that_would_pass_while_the_bug_is_there_is_refused() {
        let scenario = |nodes: &str| {
            Scenario::parse(&format!("network = \"fifo\"\n[model]\ncommand = [\"x\"]\n{nodes}")).unwrap()
        };
        let written = |scenario: &Scenario, violations: &[&str]| {
            let mut schedule = Schedule::new(Vec::new());
            schedule.header.violation = violations.iter().map(|&text| text.to_owned()).collect();
            [Language::Python, Language::JavaScript]
                .map(|language| text(language, scenario, &schedule, "program").is_ok())
        };
        let model = scenario("");
        assert_eq!(written(&model, &["MutualExclusion:a:b"]), [true; 2]);
        assert_eq!(written(&model, &["Livelock:shop"]), [false; 2]);
        assert_eq!(written(&model, &["Deadlock:a:b"]), [false; 2]);
        assert_eq!(written(&model, &["Livelock:shop", "Paid:a"]), [true; 2], "the other one is seen");
        assert_eq!(written(&scenario("nodes = 2\n"), &["lin-kv/not linearizable"]), [false; 2]);
    }

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
