//! Embeds the default policies. Builds nothing: guests are compiled for another target, by `cargo xtask guests`.

use std::{env, error::Error, fs, path::PathBuf};

const DEFAULTS: [&str; 4] = ["konnect-env.wasm", "conflict-resolution.wasm", "plugin-packaging.wasm", "object-hook.wasm"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed=WEIR_GUESTS_DIR");
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let guests = env::var_os("WEIR_GUESTS_DIR").map_or_else(|| here.join("../../target/guests"), PathBuf::from);
    // Tests load the other guests from there.
    println!("cargo::rustc-env=WEIR_GUESTS={}", guests.display());
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for name in DEFAULTS {
        let guest = guests.join(name);
        println!("cargo::rerun-if-changed={}", guest.display());
        if let Err(error) = fs::copy(&guest, out.join(name)) {
            println!("cargo::error=the default policy {} cannot be read ({error}): run `cargo xtask guests`", guest.display());
            break;
        }
    }
    // The contract is compiled in by a macro.
    println!("cargo::rerun-if-changed={}", here.join("../../wit").display());
    Ok(())
}
