//! What tests share: paths, one Wasm host for the process, policies.

use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
};

use weir_core::policy::Policies;
use weir_host::wasm::{Config, Wasm};

/// Root of the checkout.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A guest that `cargo xtask guests` built; hostile ones may be named without their prefix.
pub(crate) fn guest(name: &str) -> PathBuf {
    let dir = root().join("target/guests");
    let names = [format!("{name}.wasm"), format!("hostile-{name}.wasm")];
    let found = names.iter().map(|file| dir.join(file)).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("guest {name} is missing: run `cargo xtask guests`"))
}

/// A component that imports what of WASI has no stub: the guest that imports WASI, said to be built for a later one.
pub(crate) fn without_stub() -> Vec<u8> {
    let (from, to) = (b"wasi:cli/environment@0.2.0", b"wasi:cli/environment@0.3.0");
    let mut bytes = std::fs::read(guest("wasi-importer")).unwrap();
    let places: Vec<usize> = bytes.windows(from.len()).enumerate().filter(|(_, name)| name == from).map(|(at, _)| at).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    bytes
}

/// One engine per process.
pub(crate) fn host() -> &'static Wasm {
    static HOST: OnceLock<Wasm> = OnceLock::new();
    HOST.get_or_init(|| Wasm::new(Config::default()).unwrap())
}

/// The built-in policies.
pub(crate) fn defaults() -> Policies {
    static DEFAULTS: OnceLock<Policies> = OnceLock::new();
    DEFAULTS.get_or_init(|| host().defaults().unwrap()).clone()
}

/// A test for libtest-mimic.
pub(crate) fn test(name: impl Into<String>, run: impl FnOnce() + Send + 'static) -> libtest_mimic::Trial {
    libtest_mimic::Trial::test(name, move || {
        run();
        Ok(())
    })
}
