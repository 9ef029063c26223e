//! guest-plugins/guests.toml: which guests there are and what each is for.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::files;
use crate::workspace::Workspace;

/// All guests, in the order of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// One entry per file in target/guests/.
    #[serde(rename = "guest", default)]
    pub(crate) guests: Vec<Guest>,
}

/// One guest.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Guest {
    /// The file name in target/guests/, without `.wasm`.
    pub(crate) name: String,
    /// The package in guest-plugins/ that is compiled. A composed guest has none: its parts are.
    pub(crate) package: Option<String>,
    /// What becomes of the compiled module.
    pub(crate) kind: Kind,
    /// What the guest is for.
    pub(crate) role: Role,
    /// For `composed`: names of the guests it is made of: the one whose imports are satisfied, then those that satisfy them.
    #[serde(default)]
    pub(crate) parts: Vec<String>,
}

/// What becomes of the compiled module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// A component.
    Component,
    /// Left as it is: the host must refuse it by name.
    CoreModule,
    /// Several components linked into one.
    Composed,
}

/// What the guest is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    /// Ships inside the binary.
    Default,
    /// Shown to policy authors.
    Example,
    /// Misbehaves in one way; a test proves that the host survives it.
    Hostile,
}

const FILE: &str = "guest-plugins/guests.toml";

/// Reads and checks the list.
pub(crate) fn read(workspace: &Workspace) -> Result<List> {
    parse(&files::read_text(&workspace.path(FILE), "it lists the guests to build and is checked in; restore it with `git checkout`")?)
}

/// The file in target/guests/ of a guest.
pub(crate) fn file_name(guest: &str) -> String {
    format!("{guest}.wasm")
}

fn parse(text: &str) -> Result<List> {
    let list: List = toml::from_str(text).with_context(|| format!("{FILE} is not a list of guests; correct the entry named below"))?;
    let names: BTreeSet<&str> = list.guests.iter().map(|guest| guest.name.as_str()).collect();
    if names.len() != list.guests.len() {
        bail!("{FILE} has two guests of one name; each name is one file, rename one of them");
    }
    for guest in &list.guests {
        check(guest, &names)?;
    }
    Ok(list)
}

fn check(guest: &Guest, names: &BTreeSet<&str>) -> Result<()> {
    let name = &guest.name;
    // The name becomes a path.
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') {
        bail!("{FILE}: the guest name {name:?} must consist of a-z, 0-9 and `-`");
    }
    match guest.kind {
        Kind::Component | Kind::CoreModule => {
            if guest.package.is_none() {
                bail!("{FILE}: the guest {name} needs `package`: which package of guest-plugins/ is compiled");
            }
            if !guest.parts.is_empty() {
                bail!("{FILE}: the guest {name} has `parts`, which only `kind = \"composed\"` uses");
            }
        }
        Kind::Composed => {
            if guest.parts.is_empty() {
                bail!("{FILE}: the composed guest {name} needs `parts`: the guests it is made of");
            }
            if let Some(part) = guest.parts.iter().find(|part| *part == name || !names.contains(part.as_str())) {
                bail!("{FILE}: the composed guest {name} names the part {part}, which is no other guest of this list");
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        [[guest]]
        name = "konnect-env"
        package = "konnect-env"
        kind = "component"
        role = "default"

        [[guest]]
        name = "not-a-component"
        package = "hostile-core"
        kind = "core-module"
        role = "hostile"

        [[guest]]
        name = "both"
        kind = "composed"
        role = "example"
        parts = ["konnect-env", "not-a-component"]
    "#;

    #[test]
    fn every_kind_and_role_is_read() {
        let list = parse(GOOD).unwrap();
        let seen: Vec<_> = list.guests.iter().map(|guest| (guest.name.as_str(), guest.kind, guest.role)).collect();
        assert_eq!(
            seen,
            [
                ("konnect-env", Kind::Component, Role::Default),
                ("not-a-component", Kind::CoreModule, Role::Hostile),
                ("both", Kind::Composed, Role::Example),
            ]
        );
        assert_eq!(list.guests[2].parts, ["konnect-env", "not-a-component"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (from, to, part) in [
            ("not-a-component", "../escape", "a-z"),
            ("\"not-a-component\"\n        package", "\"konnect-env\"\n        package", "two guests"),
            ("\"component\"", "\"module\"", "component"),
            ("package = \"konnect-env\"\n", "", "needs `package`"),
            ("parts = [\"konnect-env\", \"not-a-component\"]", "", "needs `parts`"),
            ("parts = [\"konnect-env\", \"not-a-component\"]", "parts = [\"nobody\"]", "nobody"),
            ("role = \"default\"", "role = \"default\"\nrank = 1", "rank"),
        ] {
            let text = GOOD.replacen(from, to, 1);
            assert_ne!(text, GOOD, "{from} is not in the sample");
            let error = format!("{:#}", parse(&text).unwrap_err());
            assert!(error.contains(part), "{to}: {error}");
        }
    }
}
