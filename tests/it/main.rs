//! End-to-end tests of the binary, and of what the documents promise. They are one program, so that Polars and Delta are
//! linked once; run a part of them with `cargo test --test it NAME`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a failed expectation is a failed test"
)]

mod amplification;
mod backups;
mod bad_input;
mod built_of_logs;
mod command_line;
mod completions;
mod daemon;
mod daemon_full_disk;
mod daemon_kill;
mod daemon_mapped;
mod daemon_mapped_requests;
mod daemon_operation;
mod daemon_tls;
mod damage;
mod deleting;
mod docs;
mod docs_run;
mod exit_status;
mod explore;
mod find;
mod folders;
mod foreign_logs;
mod formats_cli;
mod hostile;
mod incident_service;
mod incidents;
mod incomplete;
mod infer;
mod ingest;
mod json_forms;
mod logging_layer;
mod main_job;
mod minimize_options;
mod monitors;
mod moves;
mod nats_daemon;
mod object_store;
mod otlp_daemon;
mod otlp_grpc;
mod output;
mod plans;
mod programs;
mod python_model;
mod query;
mod redaction;
mod reference;
mod release;
mod repeated;
mod report;
mod spans;
mod stamps;
mod structure;
mod third_party;
mod threads;
mod windows;
mod wrong_path;

mod support {
    pub mod browser;
    pub mod demo;
    pub mod kill;
    pub mod run;
    pub mod tls;
}
