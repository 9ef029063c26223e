//! Remote plugins without a cluster: the pool and `weir remote probe` against the server stack that plugins of CloudNativePG are made with,
//! and `weir plan --remote`.

mod plan;
mod plugin;
mod shapes;
mod stack;

use std::path::{Path, PathBuf};

use libtest_mimic::Trial;
use serde_json::Value;
use weir_remote_plugin::{Files, Pair, certificates as make};
use weir_testkit::{binaries, skipped};

pub(crate) use self::plugin::{NAME, Plugin};
use crate::{cli, support::test};

pub(crate) fn tests() -> Vec<Trial> {
    let mut tests = plan::tests();
    tests.extend([
        on_the_stack("remote stack certificates", async |program| shapes::certificates(program).await),
        on_the_stack("remote stack hooks", async |program| stack::hooks(program).await),
        on_the_stack("remote stack faults", async |program| stack::faults(program).await),
        on_the_stack("remote stack renewals and restarts", async |program| stack::life(program).await),
        on_the_stack("remote stack probe", async |program| probe(program)),
    ]);
    tests
}

/// The plugin's program; a reason is printed where it cannot be built.
pub(crate) fn program(test: &str) -> Option<PathBuf> {
    if let Some(reason) = binaries::missing_cnpg_plugin() {
        skipped(test, &reason).unwrap();
        return None;
    }
    Some(binaries::cnpg_plugin(&mut |line| eprintln!("{line}")).unwrap())
}

fn on_the_stack(name: &'static str, body: impl AsyncFnOnce(&Path) + Send + 'static) -> Trial {
    test(name, move || {
        let Some(program) = program(name) else { return };
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(body(&program));
    })
}

/// Both sides' certificates, in files that flags can name.
struct Keys {
    server: Pair,
    client: Pair,
    dir: tempfile::TempDir,
}

impl Keys {
    fn new() -> Self {
        let server = make::self_signed(&make::server(&["plugin"]).unwrap()).unwrap();
        let client = make::self_signed(&make::client().unwrap()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [("plugin.crt", &server.cert), ("client.crt", &client.cert), ("client.key", &client.key)] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        Self { server, client, dir }
    }

    fn files(&self) -> Files {
        Files { cert: self.server.cert.clone(), key: self.server.key.clone(), clients: self.client.cert.clone() }
    }

    /// Flags with this before their names.
    fn flags(&self, prefix: &str) -> Vec<String> {
        let files = [("ca", "plugin.crt"), ("cert", "client.crt"), ("key", "client.key")];
        let file = |name: &str| self.dir.path().join(name).display().to_string();
        let mut flags: Vec<String> = files.iter().flat_map(|(flag, name)| [format!("{prefix}{flag}"), file(name)]).collect();
        flags.extend([format!("{prefix}server-name"), "plugin".into()]);
        flags
    }
}

/// Runs `weir`; its exit code, what it printed, what it said.
fn weir(args: &[String]) -> (i32, String, String) {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = cli::run(&args, None);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// `weir remote probe` says who it is, and what is wrong.
fn probe(program: &Path) {
    let keys = Keys::new();
    let mut plugin = Plugin::start(program, &keys.files());
    let probe = |keys: &Keys| {
        let begin = ["remote", "probe", "-o", "json", "--probes", "3"].map(str::to_owned);
        weir(&[&begin[..], &[plugin.address.to_string()], &keys.flags("--")].concat())
    };
    let (code, out, err) = probe(&keys);
    assert_eq!(code, 0, "{out} {err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((report["ready"].as_bool(), report["name"].as_str()), (Some(true), Some(NAME)), "{report:#}");
    assert_eq!(report["services"].as_array().unwrap().len(), 3, "{report:#}");
    assert!(report["lifecycle"].to_string().contains("apps/Deployment"), "{report:#}");
    let (code, out, _) = probe(&Keys::new());
    assert!(code == 6 && out.contains("ServerNotTrusted"), "{code} {out}");
    plugin.answer(&serde_json::json!({"notReady": true}));
    let (code, out, _) = probe(&keys);
    assert!(code == 1 && out.contains("NotReady"), "{code} {out}");
    plugin.stop();
    let begin = ["remote", "probe", "-o", "json"].map(str::to_owned);
    let (code, out, _) = weir(&[&begin[..], &[plugin.address.to_string()], &keys.flags("--")].concat());
    assert!(code == 5 && out.contains("Unreachable"), "{code} {out}");
}
