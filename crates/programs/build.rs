//! Compiles the shim, which is loaded into programs, with the C compiler. Without one the crate is built all the same, and says so when the
//! shim is needed.

use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-changed=shim/shim.c");
    let Some(out) = std::env::var_os("OUT_DIR").map(PathBuf::from) else { return };
    let shim = out.join("shim.so");
    let linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    let made = linux
        && cc::Build::new().opt_level(2).cargo_metadata(false).try_get_compiler().is_ok_and(|compiler| {
            let mut command = compiler.to_command();
            command.args(["-O2", "-fPIC", "-shared", "-Wall", "-ftls-model=initial-exec", "-o"]).arg(&shim);
            command.args(["shim/shim.c", "-ldl", "-lpthread"]);
            command.status().is_ok_and(|status| status.success())
        });
    if !made && std::fs::write(&shim, b"").is_err() {
        println!("cargo:warning=the folder for the shim cannot be written");
    }
}
