//! Generates messages, clients and servers from `proto/`. Pure Rust: nobody needs `protoc`.

use std::{error::Error, path::PathBuf};

const FILES: [&str; 5] =
    ["cnpgi/identity.proto", "cnpgi/operator.proto", "cnpgi/operator_lifecycle.proto", "cnpgi/reconciler.proto", "weir/policy.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    println!("cargo::rerun-if-changed={}", root.display());
    let set = protox::compile(FILES, [&root])?;
    // Connections are the host's own, so no client comes with a way to connect. Maps are ordered, so that equal questions have equal bytes.
    tonic_prost_build::configure().build_transport(false).btree_map(".").compile_fds(set)?;
    Ok(())
}
