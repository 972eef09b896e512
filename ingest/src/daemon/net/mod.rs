//! Who may connect: listeners, TLS, tokens. Nothing else in the program accepts connections.

mod connection;
mod error;
mod secrets;
pub mod security;
