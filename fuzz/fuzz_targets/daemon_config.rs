//! Any text as the daemon's configuration: it is read or refused with a reason.
#![no_main]

use demi_daemon::Config;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(error) = Config::parse(text, |_| Some("/x".to_owned())) {
        assert!(!error.to_string().is_empty());
    }
});
