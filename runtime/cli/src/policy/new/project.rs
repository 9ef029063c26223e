//! The files of a project.

use weir_core::policy::SlotName;

use super::files::FILES;

const CARGO: &str = include_str!("template/Cargo.toml.txt");
const MEMBER: &str = include_str!("template/member.toml.txt");
const MAKEFILE: &str = include_str!("template/Makefile.txt");
const README: &str = include_str!("template/README.md.txt");
const WORKFLOW: &str = include_str!("template/workflow.yaml.txt");

/// What a slot's template is made of.
struct Template {
    source: &'static str,
    schema: &'static str,
    suite: &'static str,
    trait_name: &'static str,
}

fn template(slot: SlotName) -> Template {
    match slot {
        SlotName::KonnectEnv => Template {
            source: include_str!("template/konnect-env.rs.txt"),
            schema: include_str!("template/konnect-env.schema.json"),
            suite: include_str!("template/konnect-env.test.yaml"),
            trait_name: "KonnectEnv",
        },
        SlotName::ConflictResolution => Template {
            source: include_str!("template/conflict-resolution.rs.txt"),
            schema: include_str!("template/conflict-resolution.schema.json"),
            suite: include_str!("template/conflict-resolution.test.yaml"),
            trait_name: "ConflictResolution",
        },
        SlotName::PluginPackaging => Template {
            source: include_str!("template/plugin-packaging.rs.txt"),
            schema: include_str!("template/plugin-packaging.schema.json"),
            suite: include_str!("template/plugin-packaging.test.yaml"),
            trait_name: "PluginPackaging",
        },
        SlotName::ObjectHook => Template {
            source: include_str!("template/object-hook.rs.txt"),
            schema: include_str!("template/object-hook.schema.json"),
            suite: include_str!("template/object-hook.test.yaml"),
            trait_name: "ObjectHook",
        },
    }
}

/// Path and content.
pub(super) fn rust(name: &str, slot: SlotName) -> Vec<(String, String)> {
    let template = template(slot);
    let fill = |text: &str| {
        text.replace("{{name}}", name)
            .replace("{{crate}}", &name.replace('-', "_"))
            .replace("{{slot}}", slot.as_str())
            .replace("{{slot_crate}}", &slot.as_str().replace('-', "_"))
            .replace("{{trait}}", template.trait_name)
    };
    let mut files = vec![
        ("Cargo.toml".to_owned(), fill(CARGO)),
        ("src/lib.rs".to_owned(), fill(template.source)),
        ("src/settings.schema.json".to_owned(), template.schema.to_owned()),
        (format!("suites/{name}.test.yaml"), fill(template.suite)),
        ("Makefile".to_owned(), fill(MAKEFILE)),
        ("README.md".to_owned(), fill(README)),
        (".github/workflows/policy.yaml".to_owned(), fill(WORKFLOW)),
        (".gitignore".to_owned(), "/target\n".to_owned()),
        ("sdk/Cargo.toml".to_owned(), member("weir-policy-sdk", "The contract as Rust.", SDK_DEPENDENCIES)),
        ("default/Cargo.toml".to_owned(), member(slot.as_str(), "The default policy of the slot.", DEFAULT_DEPENDENCIES)),
    ];
    let default = format!("guest-plugins/{slot}/");
    for (path, text) in FILES {
        if let Some(rest) = path.strip_prefix("guest-plugins/sdk/") {
            // In the repository the contract is a folder higher up.
            files.push((format!("sdk/{rest}"), text.replace("\"../../wit", "\"../wit")));
        } else if let Some(rest) = path.strip_prefix(&default) {
            files.push((format!("default/{rest}"), (*text).to_owned()));
        } else if path.starts_with("wit/") {
            files.push(((*path).to_owned(), (*text).to_owned()));
        }
    }
    files
}

const SDK_DEPENDENCIES: &str = "\
wit-bindgen = { version = \"0.61\", default-features = false, features = [\"macros\", \"realloc\"] }
serde = { version = \"1\", features = [\"derive\"] }
serde_json = \"1\"
";
const DEFAULT_DEPENDENCIES: &str = "\
weir-policy-sdk = { path = \"../sdk\" }
serde = { version = \"1\", features = [\"derive\"] }

[dev-dependencies]
serde_json = \"1\"
";

fn member(name: &str, description: &str, dependencies: &str) -> String {
    MEMBER.replace("{{name}}", name).replace("{{description}}", description).replace("{{dependencies}}", dependencies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_has_all_it_needs_and_nothing_of_the_repository() {
        for slot in SlotName::ALL {
            let files = rust("my-policy", slot);
            let has = |name: &str| files.iter().any(|(path, _)| path == name);
            for name in
                ["Cargo.toml", "src/lib.rs", "sdk/src/lib.rs", "default/src/lib.rs", "default/src/settings.schema.json", "wit/types.wit"]
            {
                assert!(has(name), "{slot}: no {name}");
            }
            assert!(has("suites/my-policy.test.yaml") && !files.iter().any(|(path, _)| path.contains("..") || path.contains("component/")));
            for (path, text) in &files {
                assert!(
                    !text.contains("{{") || path.starts_with("sdk/") || path.starts_with("default/") || path.ends_with("policy.yaml"),
                    "{path}"
                );
                assert!(!text.contains("\"../../wit") && !text.contains(".workspace = true"), "{path} names the repository");
            }
        }
    }

    #[test]
    fn the_first_suite_of_a_project_is_one() {
        for slot in SlotName::ALL {
            let dir = tempfile::tempdir().unwrap();
            let (_, text) = rust("my-policy", slot).into_iter().find(|(path, _)| path.ends_with(".test.yaml")).unwrap();
            let path = dir.path().join("a.test.yaml");
            std::fs::write(&path, text).unwrap();
            assert!(weir_harness::suite::read(&path).unwrap().len() >= 2, "{slot}");
        }
    }
}
