//! What is watched: a predicate, and the actors that it is about.

use demi_predicate::{Class, ClassError, ParseError, Predicate};
use demi_schemas::{InvariantEntry, InvariantsError, InvariantsFile, Standing};

/// An invariant to be watched.
#[derive(Clone, Debug)]
pub struct Invariant {
    /// Its name for machines: the entry's id, or its name, or the predicate.
    pub id: String,
    /// Its name for people, and in fingerprints.
    pub name: String,
    /// What has to hold.
    pub predicate: Predicate,
    /// Whom it is about.
    pub class: Class,
}

/// An error of preparing a file of invariants.
#[derive(Debug, thiserror::Error)]
pub enum InvariantError {
    /// It is no file of invariants.
    #[error(transparent)]
    File(#[from] InvariantsError),
    /// A predicate cannot be read.
    #[error("'{name}': {source}")]
    Predicate {
        /// The invariant.
        name: String,
        /// Why.
        source: ParseError,
    },
    /// A pattern of names cannot be read.
    #[error("'{name}': class: {source}")]
    Class {
        /// The invariant.
        name: String,
        /// Why.
        source: ClassError,
    },
    /// Two have one id.
    #[error("two invariants are called '{0}'")]
    Twice(String),
    /// All are muted, or there is none.
    #[error("it has no invariant that is not muted")]
    Nothing,
}

impl Invariant {
    /// The invariants of a file that are not muted.
    ///
    /// # Errors
    /// When the text is no file of invariants, a predicate or a class cannot be read, or there is nothing to watch.
    pub fn read(text: &str) -> Result<Vec<Invariant>, InvariantError> {
        let file = InvariantsFile::parse(text)?;
        let mut all: Vec<Invariant> = Vec::new();
        for entry in file.invariants.iter().filter(|entry| entry.status != Standing::Muted) {
            let invariant = Invariant::of(entry)?;
            if all.iter().any(|known| known.id == invariant.id) {
                return Err(InvariantError::Twice(invariant.id));
            }
            all.push(invariant);
        }
        if all.is_empty() { Err(InvariantError::Nothing) } else { Ok(all) }
    }

    fn of(entry: &InvariantEntry) -> Result<Invariant, InvariantError> {
        let id = if entry.id.is_empty() { entry.name.as_ref().unwrap_or(&entry.holds) } else { &entry.id };
        let name = entry.name.as_ref().unwrap_or(id).clone();
        let predicate = Predicate::parse(&entry.holds)
            .map_err(|source| InvariantError::Predicate { name: name.clone(), source })?;
        let class = entry.class.as_deref().map(Class::parse).transpose();
        let class = class.map_err(|source| InvariantError::Class { name: name.clone(), source })?;
        Ok(Invariant { id: id.clone(), name, predicate, class: class.unwrap_or_default() })
    }
}
