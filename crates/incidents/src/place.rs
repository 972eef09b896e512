//! Where everything of incidents lies.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::event::Stage;
use crate::id::IncidentId;

/// The folder `incidents` of a store.
#[derive(Clone, Debug)]
pub struct Place {
    store: PathBuf,
    root: PathBuf,
}

/// A sign of life of whoever works on an incident.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Beat {
    /// How many there were.
    pub count: u64,
    /// The stage.
    #[serde(default)]
    pub stage: Option<Stage>,
    /// Seconds of the stage so far.
    #[serde(default)]
    pub seconds: f64,
}

impl Place {
    /// That of a store.
    #[must_use]
    pub fn of(store: &Path) -> Self {
        Place { store: store.to_owned(), root: store.join("incidents") }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Path {
        &self.store
    }

    /// The folder with the journal.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of what was made of an incident.
    #[must_use]
    pub fn data(&self, id: IncidentId) -> PathBuf {
        self.root.join("data").join(id.to_string())
    }

    /// The folder of logs or executions that somebody brought, by a name that this crate made.
    #[must_use]
    pub fn uploads(&self) -> PathBuf {
        self.root.join("uploads")
    }

    /// The folder of a scenario that is kept with the incidents.
    #[must_use]
    pub fn models(&self) -> PathBuf {
        self.root.join("models")
    }

    /// The name of the object in which the holder of an attempt gives signs of life.
    #[must_use]
    pub fn lease(id: IncidentId, attempt: u32) -> String {
        format!("lease/{id}-{attempt}.json")
    }
}
