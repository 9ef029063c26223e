//! Policies in Rust, and what an installation gives.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::Value;
use weir_core::{
    plugin_installation::content::{Content, MAX_CONFIG_MAP, pack},
    policy::{
        BoxFuture, EnvVar, Identity, Policy, PolicyError, Slot,
        conflict_resolution::{self, Conflict, ConflictResolution, Resolution, Verdict},
        konnect_env::{self, KonnectEnv},
        plugin_packaging::{self, Placement, Plugin},
    },
};

type Answer<S> = Result<<S as Slot>::Answer, PolicyError>;
type Says<S> = Box<dyn Fn(&<S as Slot>::Input) -> Answer<S> + Send + Sync>;

/// A policy in Rust.
pub(crate) struct Scripted<S: Slot> {
    identity: Identity,
    says: Says<S>,
    asked: AtomicUsize,
    questions: Mutex<Vec<Value>>,
}

impl<S: Slot> Scripted<S> {
    pub(crate) fn new(digest: &str, says: impl Fn(&S::Input) -> Answer<S> + Send + Sync + 'static) -> Arc<Self> {
        let identity = Identity { source: "test".into(), digest: digest.into(), settings_digest: "s".into() };
        Arc::new(Self { identity, says: Box::new(says), asked: AtomicUsize::new(0), questions: Mutex::default() })
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    pub(crate) fn questions(&self) -> Vec<Value> {
        self.questions.lock().unwrap().clone()
    }
}

impl<S: Slot> Policy<S> for Scripted<S> {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn evaluate<'a>(&'a self, input: &'a S::Input) -> BoxFuture<'a, Answer<S>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.questions.lock().unwrap().push(serde_json::to_value(input).unwrap());
        let answer = (self.says)(input);
        let checked = answer.and_then(|answer| S::check(input, &answer).map(|()| answer).map_err(PolicyError::BadOutput));
        Box::pin(std::future::ready(checked))
    }
}

/// A policy that gives every conflict the verdict of a function.
pub(crate) fn verdicts(digest: &str, of: impl Fn(&Conflict) -> Verdict + Send + Sync + 'static) -> Arc<Scripted<ConflictResolution>> {
    Scripted::new(digest, move |input: &conflict_resolution::Input| {
        let resolution = |conflict| Resolution { verdict: of(conflict), findings: Vec::new() };
        Ok(conflict_resolution::Answer { resolutions: input.conflicts.iter().map(resolution).collect() })
    })
}

/// A policy whose environment names the endpoint, and `KONG_EXTRA` where it has one.
pub(crate) fn environment(digest: &str, extra: Option<&'static str>) -> Arc<Scripted<KonnectEnv>> {
    Scripted::new(digest, move |input: &konnect_env::Input| {
        let var = |name: &str, value: &str| EnvVar { name: name.into(), value: value.into() };
        let mut env =
            vec![var("KONG_CLUSTER_CONTROL_PLANE", &format!("{}:443", input.endpoints.control_plane)), var("KONG_ROLE", "data_plane")];
        env.extend(extra.map(|value| var("KONG_EXTRA", value)));
        let source = konnect_env::VolumeSource::Secret { secret_name: input.certificate.secret_name.clone(), default_mode: None };
        let volumes = vec![konnect_env::Volume { name: "kong-cluster-cert".into(), source }];
        Ok(konnect_env::Answer { env, volumes, mounts: Vec::new(), readiness_path: None, findings: Vec::new() })
    })
}

pub(crate) fn unavailable<S: Slot>(digest: &str) -> Arc<Scripted<S>> {
    Scripted::new(digest, |_| Err(PolicyError::Unavailable("the policy is away".into())))
}

/// What an installation gives: plugins of these names, whose handlers say this version.
pub(crate) fn content(names: &[&str], version: &str) -> Arc<Content> {
    packed(names, version, 0, |_| ())
}

/// The same with a handler that fills a ConfigMap of its own.
pub(crate) fn big_content(names: &[&str], version: &str) -> Arc<Content> {
    packed(names, version, MAX_CONFIG_MAP, |_| ())
}

/// The same with what a packaging policy may add.
pub(crate) fn packed(names: &[&str], version: &str, size: usize, add: impl Fn(&mut plugin_packaging::Answer)) -> Arc<Content> {
    let mut handler = format!("return {{ VERSION = '{version}' }}").into_bytes();
    handler.resize(handler.len().max(size), b' ');
    let files = [("handler.lua".to_owned(), handler.clone()), ("schema.lua".to_owned(), b"return {}".to_vec())].into();
    let placements: Vec<Placement> =
        ["handler.lua", "schema.lua"].map(|path| Placement { source: path.into(), target: path.into() }).into();
    let plugin =
        |name: &&str| Plugin { name: (*name).into(), version: Some(version.into()), priority: None, placements: placements.clone() };
    let plugins = names.iter().map(plugin).collect();
    let mut answer = plugin_packaging::Answer { plugins, lua_package_path: None, env: Vec::new(), findings: Vec::new() };
    add(&mut answer);
    let digest = weir_core::hash::digest(&handler);
    Arc::new(pack("registry.example/plugin", &digest, &files, &answer).unwrap().0)
}
