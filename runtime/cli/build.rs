//! Embeds what a new policy's project is made of: the SDK, the default policies, the contract.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// Folders of the repository, and what they are called in a project.
const FOLDERS: [&str; 6] = [
    "guest-plugins/sdk",
    "guest-plugins/konnect-env",
    "guest-plugins/conflict-resolution",
    "guest-plugins/plugin-packaging",
    "guest-plugins/object-hook",
    "wit",
];

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../..").canonicalize()?;
    let mut list = String::from("/// Path in the repository, and content.\npub(super) const FILES: &[(&str, &str)] = &[\n");
    for folder in FOLDERS {
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
        let mut files = Vec::new();
        walk(&root.join(folder), &mut files)?;
        files.sort();
        for file in files {
            let name = file.strip_prefix(&root)?.display().to_string();
            writeln!(list, "    ({name:?}, include_str!({:?})),", file.display().to_string())?;
        }
    }
    list.push_str("];\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("files.rs"), list)?;
    Ok(())
}

/// Sources. The component crates of the defaults, suites, what was built and published contracts are no part of a project.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !["component", "suites", "target", "frozen"].contains(&name.as_str()) {
            walk(&path, files)?;
        } else if [".rs", ".json", ".wit"].iter().any(|end| name.ends_with(end)) {
            files.push(path);
        }
    }
    Ok(())
}
