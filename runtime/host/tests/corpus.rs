//! Components of published versions of the contract load and answer as they did (`tests/corpus`). `WEIR_BLESS=1` writes answers that are not
//! recorded yet; one that is recorded is never written again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's way to fail")]

mod support;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use futures::executor::block_on;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use weir_core::policy::{ConflictResolution, KonnectEnv, ObjectHook, PluginPackaging, Policy, PolicyError, SlotName};
use weir_host::wasm::{Limits, Wasm, WasmSlot};

/// Versions that are published.
const VERSIONS: [&str; 1] = ["0.1.0"];

#[derive(Deserialize)]
struct Corpus {
    contract: String,
    components: Vec<Component>,
}

#[derive(Deserialize)]
struct Component {
    name: String,
    sha256: String,
    bytes: usize,
    slots: Vec<SlotName>,
}

fn dir(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus").join(version)
}

fn document(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a component says to the question of its slot.
fn said<S: WasmSlot>(host: &Wasm, dir: &Path, component: &Component, bytes: &[u8]) -> Value
where
    S::Input: DeserializeOwned,
{
    let name = format!("{} {}", component.name, S::NAME);
    // It is about answers and not about time.
    let limits = Limits::new(Duration::from_secs(5), Limits::default().memory()).unwrap();
    let policy = host.load::<S>(bytes, name.clone(), Value::Null, limits).unwrap_or_else(|error| panic!("{name}: {error}"));
    let question = document(&dir.join(format!("questions/{}.json", S::NAME)));
    let input: S::Input = serde_json::from_value(question).unwrap_or_else(|error| panic!("{name}: {error}"));
    match block_on(policy.evaluate(&input)) {
        Ok(answer) => json!({"answer": answer}),
        Err(PolicyError::Refused(refusal)) => json!({"refused": refusal}),
        Err(error) => panic!("{name}: {error}"),
    }
}

#[test]
fn components_of_published_contracts_load_and_answer_as_they_did() {
    let host = support::host();
    for version in VERSIONS {
        let dir = dir(version);
        let corpus: Corpus = serde_json::from_value(document(&dir.join("corpus.json"))).unwrap();
        assert_eq!(corpus.contract, version);
        let mut files = 0;
        for component in &corpus.components {
            let bytes = fs::read(dir.join(format!("{}.wasm", component.name))).unwrap();
            let found = (hex::encode(Sha256::digest(&bytes)), bytes.len());
            assert_eq!(found, (component.sha256.clone(), component.bytes), "{} is not what was built", component.name);
            assert!(!component.slots.is_empty(), "{}", component.name);
            for slot in &component.slots {
                let said = match slot {
                    SlotName::KonnectEnv => said::<KonnectEnv>(&host, &dir, component, &bytes),
                    SlotName::ConflictResolution => said::<ConflictResolution>(&host, &dir, component, &bytes),
                    SlotName::PluginPackaging => said::<PluginPackaging>(&host, &dir, component, &bytes),
                    SlotName::ObjectHook => said::<ObjectHook>(&host, &dir, component, &bytes),
                };
                let path = dir.join(format!("answers/{}.{slot}.json", component.name));
                if !path.exists() && std::env::var_os("WEIR_BLESS").is_some() {
                    fs::write(&path, format!("{}\n", serde_json::to_string_pretty(&said).unwrap())).unwrap();
                }
                assert_eq!(said, document(&path), "{} {slot}", component.name);
                files += 1;
            }
        }
        assert_eq!(fs::read_dir(dir.join("answers")).unwrap().count(), files, "every recorded answer is asked for");
        for slot in SlotName::ALL.into_iter().filter(|slot| slot.contract() == version) {
            assert!(corpus.components.iter().any(|component| component.slots.contains(&slot)), "{version} {slot}");
        }
    }
}
