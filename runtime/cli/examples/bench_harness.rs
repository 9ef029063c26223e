//! `cargo xtask bench harness`: how long 1,000 cases of suites take, with Rust guests. Half of them are questions to a slot, half are passes over a
//! gateway with an extension; every case is looked at with all invariants. The first run compiles, the others are warm.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark may stop at the first thing that is not as it should be"
)]

use std::{
    fs,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Duration,
};

use weir_harness::{
    pass::Kinds,
    run::{self, Plan, Runner, Status},
    stock::Components,
    suite,
};
use weir_host::wasm::{Config, Wasm};

const CASES: usize = 1_000;
const RUNS: usize = 3;
/// What a warm run may take on two cores.
const AIM: Duration = Duration::from_secs(5);

fn main() {
    if cfg!(debug_assertions) {
        eprintln!("bench: this is not a release build; the figures mean little");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guests = root.join("target/guests");
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &root);
    let paths: Vec<PathBuf> = suite::find(&[dir.path().to_owned()]).unwrap();
    let cases: Vec<_> = paths.iter().flat_map(|path| suite::read(path).unwrap_or_else(|failure| panic!("{failure}"))).collect();
    assert_eq!(cases.len(), CASES);
    let components = Components::read(&cases, Some(&guests), &mut |_| panic!("nothing is fetched")).expect("run `cargo xtask guests`");
    let host = Wasm::new(Config::default()).unwrap();
    let runner = Runner { kinds: Kinds::new().unwrap(), update: false };
    let jobs = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    println!("{:<44} {:>10} {:>10}", "what", "measured", "aim");
    for number in 1..=RUNS {
        let totals = run::run(&runner, &host, &components, &cases, Plan { jobs, fail_fast: false });
        for ran in totals.ran.iter().filter(|ran| ran.status != Status::Passed).take(3) {
            eprintln!("{}: {:?}", ran.origin, ran.misses);
        }
        assert_eq!(totals.count(Status::Passed), CASES, "every case passes");
        let what = if number == 1 { "cold".to_owned() } else { format!("warm, run {number}") };
        let aim = if number == 1 { String::new() } else { format!("{:.1} s", AIM.as_secs_f64()) };
        println!(
            "{:<44} {:>10} {aim:>10}",
            format!("{CASES} cases, {jobs} at once, {what}"),
            format!("{:.2} s", totals.time.as_secs_f64())
        );
        let calls: usize = totals.ran.iter().map(|ran| ran.calls).sum();
        println!("{:<44} {calls:>10}", "  calls of guests");
    }
}

/// Ten suites of a hundred cases.
fn write(dir: &Path, root: &Path) {
    fs::copy(root.join("tests/cases/konnect-env/control-plane/input/input.yaml"), dir.join("question.yaml")).unwrap();
    fs::write(dir.join("gateway.yaml"), GATEWAY).unwrap();
    let head = "apiVersion: test.weir.dev/v1alpha1\nkind: PolicyTest\nmetadata: {name: bench}\n\
                policies: {konnect-env: konnect-env, conflict-resolution: conflict-resolution}\nlimits: {timeout: 2s}\n";
    for number in 0..10 {
        let mut text = format!("{head}cases:\n");
        for case in 0..CASES / 10 {
            text.push_str(&if case % 2 == 0 {
                format!("- {{name: question {case}, slot: konnect-env, given: {{inputFile: question.yaml}}, expect: {{outcome: accepted}}}}\n")
            } else {
                format!(
                    "- {{name: pass {case}, given: {{manifests: [gateway.yaml], clusterName: c{number}-{case}}}, expect: {{env: {{KONG_ROLE: data_plane}}}}}}\n"
                )
            });
        }
        fs::write(dir.join(format!("suite-{number}.test.yaml")), text).unwrap();
    }
}

const GATEWAY: &str = "\
apiVersion: gateway-operator.konghq.com/v1beta1
kind: DataPlane
metadata: {name: gw, namespace: bench}
spec:
  extensions: [{group: gateway-operator.konghq.com, kind: KonnectExtension, name: hybrid}]
  deployment:
    podTemplateSpec:
      spec:
        containers:
          - name: proxy
            image: kong/kong-gateway:3.11
            env: [{name: KONG_LOG_LEVEL, value: debug}]
---
apiVersion: gateway-operator.konghq.com/v1alpha1
kind: KonnectExtension
metadata: {name: hybrid, namespace: bench}
spec:
  controlPlaneRef: {type: konnectID, konnectID: 7d7b1a6e}
  konnectControlPlaneAPIAuthConfiguration:
    clusterCertificateSecretRef: {name: tls}
---
apiVersion: v1
kind: Secret
type: kubernetes.io/tls
metadata: {name: tls, namespace: bench, labels: {konghq.com/secret: 'true'}}
data: {tls.crt: Y2VydA==, tls.key: a2V5}
";
