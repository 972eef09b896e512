//! The mappings that come with the program.

/// A mapping that comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// Its name.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
}

macro_rules! shipped {
    ($($name:literal),+ $(,)?) => {
        &[$(Shipped { name: $name, text: include_str!(concat!("../../mappings/", $name, ".toml")) }),+]
    };
}

/// All of them, by name.
#[must_use]
pub fn shipped() -> &'static [Shipped] {
    shipped![
        "akka",
        "csv",
        "elle",
        "govector",
        "itf",
        "jaeger",
        "jepsen",
        "jepsen-text",
        "json",
        "logfmt",
        "loghub",
        "native",
        "otlp",
        "p-trace",
        "p-trace-json",
        "pobserve",
        "pobserve-lines",
        "shiviz",
        "tlc",
        "tlc-json",
        "tracing",
        "zipkin",
    ]
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_file_is_shipped() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("mappings");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        files.sort();
        let names: Vec<&str> = super::shipped().iter().map(|s| s.name).collect();
        assert_eq!(files, names);
    }
}
