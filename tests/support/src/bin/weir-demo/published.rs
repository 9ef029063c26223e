//! Policies out of a registry: publishing is enough.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use weir_testkit::registry::{Registry, RegistryOptions};

use crate::cluster::{Cluster, OPERATOR_NAMESPACE, holds};
use crate::narrate::{difference, heading, say};
use crate::{Args, until};

const NAME: &str = "konnect";
const REPOSITORY: &str = "acme/konnect-env";

/// A registry on loopback, where this machine has one.
pub(crate) fn registry() -> Result<Option<Registry>> {
    if let Some(reason) = Registry::missing() {
        say(&format!("the part that publishes policies is left out: {reason}"));
        return Ok(None);
    }
    Registry::start(&RegistryOptions::default()).map(Some)
}

/// Publishes v1, v2 and a broken v3, and goes back.
pub(crate) async fn tour(args: &Args, cluster: &Cluster, registry: &Registry) -> Result<()> {
    heading("A policy from a registry: publish a component, and point a ReconcilePolicy at it");
    let image = |tag: &str| registry.reference(REPOSITORY, tag);
    push(args, &args.policy, &image("v1"))?;
    take(cluster, &image("v1")).await?;

    heading("Publish v2 and name it: it is fetched, checked, compiled and tried before it takes over, and no process restarts");
    push(args, &args.other, &image("v2"))?;
    let before = cluster.environment("edge").await?;
    take(cluster, &image("v2")).await?;
    let after = until("the Deployment has the answer of v2", || async {
        let now = cluster.environment("edge").await?;
        Ok((now != before).then_some(now))
    })
    .await?;
    difference(&before, &after);

    heading("Publish a v3 that fails: it is tried on objects that are there, and never takes over");
    push(args, &args.broken, &image("v3"))?;
    apply(cluster, &image("v3")).await?;
    let message = until("the policy says why v3 is refused", || async {
        Ok(condition(cluster, "Stalled").await?.filter(|(status, _)| status == "True").map(|(_, message)| message))
    })
    .await?;
    say(&format!("ReconcilePolicy {NAME}: Stalled {message}"));
    if cluster.environment("edge").await? != after {
        bail!("the answer of v2 is gone");
    }
    say("the gateways still have the answer of v2");

    heading("Go back: the spec is edited, and the former component answers at once");
    take(cluster, &image("v1")).await?;
    until("the Deployment has the answer of v1", || async { Ok((cluster.environment("edge").await? == before).then_some(())) }).await?;
    say("the gateways have the answer of v1 again");
    Ok(())
}

fn push(args: &Args, file: &Path, image: &str) -> Result<()> {
    let host = image.split('/').next().unwrap_or_default();
    say(&format!("$ weir policy push {} {image}", file.display()));
    let output = Command::new(&args.weir).args(["policy", "push"]).arg(file).args([image, "--insecure-registry", host]).output();
    let output = output.with_context(|| args.weir.display().to_string())?;
    if !output.status.success() {
        bail!("weir policy push: {}", String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8_lossy(&output.stdout).lines().for_each(say);
    Ok(())
}

async fn apply(cluster: &Cluster, image: &str) -> Result<()> {
    let manifest = json!({
        "apiVersion": "weir.dev/v1alpha1", "kind": "ReconcilePolicy",
        "metadata": {"name": NAME, "namespace": OPERATOR_NAMESPACE},
        "spec": {"slot": "KonnectEnv", "source": {"oci": {"image": image}}},
    });
    cluster.apply(&manifest).await
}

/// Applies the policy with this image, and waits until it is in force.
async fn take(cluster: &Cluster, image: &str) -> Result<()> {
    apply(cluster, image).await?;
    let begun = Instant::now();
    let layer = until("the component is in force", || async {
        let policy = cluster.policy(NAME).await?;
        let text = |pointer: &str| policy.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok((text("/status/active/image") == image).then(|| text("/status/active/layerDigest")))
    })
    .await?;
    say(&format!("{layer} is in force {:.2} s after the edit", begun.elapsed().as_secs_f64()));
    Ok(())
}

async fn condition(cluster: &Cluster, type_: &str) -> Result<Option<(String, String)>> {
    let policy = cluster.policy(NAME).await?;
    Ok(holds(&policy.pointer("/status/conditions").cloned().unwrap_or_default(), type_))
}
