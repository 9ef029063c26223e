//! Hand-written guests: a core module in text, one body per behaviour, made a component of a world in `wit/`.

#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's way to fail")]

use std::{collections::BTreeMap, num::NonZeroUsize, path::PathBuf, sync::Arc, time::Duration};

use futures::executor::block_on;
use serde_json::Value;
use weir_core::policy::{Context, KonnectEnv, Policy, PolicyError, konnect_env as core};
use weir_host::wasm::{Config, Limits, Wasm, WasmPolicy};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};

/// The folder of the contract.
pub fn wit() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../wit")
}

/// A component of `world` made of a core module.
pub fn component(world: &str, core: &str) -> Vec<u8> {
    component_of(world, core, |resolve| resolve.push_path(wit()).expect("wit/ parses").0)
}

/// A component of a world in `more`, WIT that may use the contract.
pub fn component_with(more: &str, world: &str, core: &str) -> Vec<u8> {
    component_of(world, core, |resolve| {
        resolve.push_path(wit()).expect("wit/ parses");
        resolve.push_str("more.wit", more).expect("more WIT parses")
    })
}

fn component_of(world: &str, core: &str, wit: impl FnOnce(&mut wit_parser::Resolve) -> wit_parser::PackageId) -> Vec<u8> {
    let mut resolve = wit_parser::Resolve::default();
    let package = wit(&mut resolve);
    let world = resolve.select_world(&[package], Some(world)).expect("the world exists");
    let mut module = wat::parse_str(core).expect("the module parses");
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false).expect("metadata");
    ComponentEncoder::default().validate(true).module(&module).expect("the module fits").encode().expect("a component")
}

/// A guest of slot konnect-env. Zeros at 1024 are `ok` with an empty answer; `evaluate` returns the address of its result.
pub struct Guest {
    pub evaluate: String,
    pub schema: String,
    pub validate: String,
    pub more: String,
    pub pages: u32,
}

impl Default for Guest {
    fn default() -> Self {
        Self {
            evaluate: "(i32.const 1024)".into(),
            schema: "{}".into(),
            validate: "(i32.const 1024)".into(),
            more: String::new(),
            pages: 4,
        }
    }
}

impl Guest {
    pub fn evaluating(body: &str) -> Self {
        Self { evaluate: body.into(), ..Self::default() }
    }

    pub fn build(&self) -> Vec<u8> {
        component("konnect-env-policy", &self.core())
    }

    /// The core module, as text.
    pub fn core(&self) -> String {
        let Self { evaluate, schema, validate, more, pages } = self;
        let length = schema.len();
        let schema = schema.replace('\\', "\\\\").replace('"', "\\\"");
        format!(
            r#"(module
  (import "weir:policy/log@0.1.0" "log" (func $log (param i32 i32 i32 i32 i32)))
  (memory (export "memory") {pages})
  (global $next (mut i32) (i32.const 16384))
  (func $alloc (export "cabi_realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
    (global.set $next (i32.add (local.get $at) (local.get $size)))
    (block $fits (loop $more
      (br_if $fits (i32.le_u (global.get $next) (i32.mul (memory.size) (i32.const 65536))))
      (if (i32.eq (memory.grow (i32.const 16)) (i32.const -1)) (then (unreachable)))
      (br $more)))
    (local.get $at))
  (func (export "weir:policy/konnect-env@0.1.0#evaluate") (param $in i32) (result i32) {evaluate})
  (func (export "weir:policy/settings@0.1.0#schema") (result i32) (i32.const 2048))
  (func (export "weir:policy/settings@0.1.0#validate") (param i32 i32) (result i32) {validate})
  {more}
  (data (i32.const 2048) "\00\0c\00\00")
  (data (i32.const 2052) "{}")
  (data (i32.const 3072) "{schema}"))"#,
            le(u32::try_from(length).expect("short")),
        )
    }
}

/// The same component with one more custom section: other bytes and another digest, and nothing else.
pub fn stamped(component: &[u8], number: u32) -> Vec<u8> {
    let name = b"weir-test";
    let mut payload = vec![u8::try_from(name.len()).expect("short")];
    payload.extend_from_slice(name);
    payload.extend_from_slice(&number.to_le_bytes());
    let mut bytes = component.to_vec();
    bytes.extend([0, u8::try_from(payload.len()).expect("short")]);
    bytes.extend(payload);
    bytes
}

/// Little-endian bytes as WebAssembly text.
pub fn le(value: u32) -> String {
    value.to_le_bytes().map(|b| format!("\\{b:02x}")).concat()
}

pub fn input() -> core::Input {
    core::Input {
        context: Context { contract_version: "0.1.0".into(), ..Context::default() },
        control_plane_id: "a1b2c3".into(),
        cluster_type: core::ClusterType::ControlPlane,
        endpoints: core::Endpoints { control_plane: "a.cp0.konghq.com".into(), telemetry: "a.tp0.konghq.com".into() },
        region: Some("us".into()),
        certificate: core::Certificate { secret_name: "konnect-client".into(), mount_path: "/etc/secrets/konnect".into() },
        data_plane_labels: BTreeMap::from([("team".to_owned(), "a".to_owned())]),
        image: "kong/kong-gateway:3.12".into(),
    }
}

pub fn host() -> Wasm {
    Wasm::new(Config { threads: NonZeroUsize::new(2).unwrap(), ..Config::default() }).expect("a host")
}

pub fn limits(ms: u64, mib: usize) -> Limits {
    Limits::new(Duration::from_millis(ms), mib << 20).expect("limits")
}

pub fn load(host: &Wasm, bytes: &[u8]) -> Arc<WasmPolicy<KonnectEnv>> {
    host.load(bytes, "test".into(), Value::Null, limits(200, 32)).expect("it loads")
}

pub fn ask(policy: &dyn Policy<KonnectEnv>) -> Result<core::Answer, PolicyError> {
    block_on(policy.evaluate(&input()))
}

/// Loads and asks once.
pub fn run(host: &Wasm, guest: &Guest) -> Result<core::Answer, PolicyError> {
    ask(&*load(host, &guest.build()))
}

/// Resident memory of this process, KiB.
pub fn rss() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc");
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).expect("VmRSS");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number")
}
