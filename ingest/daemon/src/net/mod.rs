//! Who may connect: listeners, TLS, tokens. Nothing else in the program accepts connections.

mod connection;
mod error;
pub mod guard;
mod secrets;
pub mod security;
