//! Compiles the shim, which is loaded into programs, and what carries programs that load nothing, with the C compiler. Without one the crate is built all the same, and says so when the
//! shim is needed.

use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-changed=shim");
    let Some(out) = std::env::var_os("OUT_DIR").map(PathBuf::from) else { return };
    let linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    let shim = ["-fPIC", "-shared", "-fno-stack-protector", "-ftls-model=initial-exec"];
    let carrier = ["-fPIE", "-pie"];
    for (name, source, arguments) in
        [("shim.so", "shim/shim.c", &shim[..]), ("carrier", "shim/carrier.c", &carrier)]
    {
        let path = out.join(name);
        let made = linux
            && cc::Build::new().opt_level(2).cargo_metadata(false).try_get_compiler().is_ok_and(|compiler| {
                let mut command = compiler.to_command();
                command.args(["-O2", "-Wall"]).args(arguments).arg("-o").arg(&path);
                command.args([source, "-ldl", "-lpthread"]);
                command.status().is_ok_and(|status| status.success())
            });
        if !made && std::fs::write(&path, b"").is_err() {
            println!("cargo:warning=the folder for the shim cannot be written");
        }
    }
}
