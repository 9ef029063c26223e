//! `weir cleanup`: what has to happen before an operator is uninstalled.

#[cfg(test)]
mod tests;

use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use weir_api::keys;

use crate::{
    cluster::{self, Deadline, Flags, code, failed},
    exit::{Exit, Failure},
    names,
};

/// Shown after the flags.
pub const HELP: &str = "\
DataPlanes, their pods and every other object stay as they are. Only the finalizer that keeps a KonnectExtension while a DataPlane names it
is taken off: without an operator it would keep the extension, and its namespace, for ever.

Exit codes:
  0  no object has the finalizer any more
  5  the API server does not answer or does not allow it, or the operator does not stop

Example:
  weir cleanup --namespace weir-system --deployment weir";

/// Objects per request.
const PAGE: u32 = 500;
/// Tries for one object that others write to at the same time.
const TRIES: usize = 5;
/// So many looks one after the other find nothing before it is done: a pass that had begun may set the finalizer once more.
const CLEAN_LOOKS: usize = 2;

/// `weir cleanup`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    cluster: Flags,
    /// The operator's own namespace.
    #[arg(long, env = "WEIR_NAMESPACE", value_name = "NAMESPACE", default_value = "weir-system", value_parser = names::namespace)]
    namespace: String,
    /// Deployment of the operator in it, which is scaled to 0 first. Without it the operator must have been stopped before.
    #[arg(long, value_name = "NAME", value_parser = names::object)]
    deployment: Option<String>,
    /// Look in this namespace only. Repeatable; in all by default.
    #[arg(long = "watch-namespace", env = "WEIR_WATCH_NAMESPACE", value_name = "NAMESPACE", value_delimiter = ',',
          value_parser = names::namespace_if_any)]
    watch_namespaces: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// There is no cluster, or a request is refused.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    cluster::run(&args.cluster, |client| cleanup(client, args))
}

async fn cleanup(client: Client, args: &Args) -> anyhow::Result<Exit> {
    let deadline = Deadline::after(args.cluster.timeout);
    if let Some(name) = &args.deployment {
        stop(&Api::namespaced(client.clone(), &args.namespace), name, deadline).await?;
    }
    let namespaces: Vec<&str> = args.watch_namespaces.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    let apis: Vec<Api<DynamicObject>> = if namespaces.is_empty() {
        vec![Api::all_with(client.clone(), &extensions())]
    } else {
        namespaces.iter().map(|namespace| Api::namespaced_with(client.clone(), namespace, &extensions())).collect()
    };
    let mut released = 0_usize;
    let mut clean = 0;
    while clean < CLEAN_LOOKS {
        let mut now = 0_usize;
        for api in &apis {
            now = now.saturating_add(look(&client, api, deadline).await?);
        }
        clean = if now == 0 { clean + 1 } else { 0 };
        released = released.saturating_add(now);
        if clean < CLEAN_LOOKS && !deadline.pause().await {
            let message = "finalizers come back as fast as they are taken off: an operator still runs; stop it, or name its --deployment";
            return Err(Failure { exit: Exit::Unavailable, message: message.into() }.into());
        }
    }
    crate::print(format!("{released} finalizers were taken off").as_bytes())
}

/// Scales the operator to 0 and waits until it has no pods. One that is not there needs no stop.
async fn stop(api: &Api<Deployment>, name: &str, deadline: Deadline) -> anyhow::Result<()> {
    let what = format!("Deployment {name} cannot be stopped");
    let none = Patch::Merge(json!({"spec": {"replicas": 0}}));
    let params = PatchParams::apply(keys::FIELD_MANAGER);
    match deadline.request(|| api.patch_scale(name, &params, &none)).await {
        Err(error) if code(&error) == Some(404) => return Ok(()),
        Err(error) => return Err(failed(&what, &error).into()),
        Ok(_) => {}
    }
    loop {
        let live = deadline.request(|| api.get_opt(name)).await.map_err(|error| failed(&what, &error))?;
        let Some(live) = live else { return Ok(()) };
        if has_stopped(&live) {
            return Ok(());
        }
        if !deadline.pause().await {
            let message = format!("Deployment {name} was scaled to 0 and still has pods; look at them");
            return Err(Failure { exit: Exit::Unavailable, message }.into());
        }
    }
}

fn has_stopped(deployment: &Deployment) -> bool {
    let status = deployment.status.as_ref();
    let seen = status.and_then(|status| status.observed_generation) >= deployment.metadata.generation;
    let pods = status.map_or(0, |status| status.replicas.unwrap_or(0).saturating_add(status.terminating_replicas.unwrap_or(0)));
    seen && pods == 0
}

/// Takes the finalizer off every object that has it, and says how many these were. A kind that is not served has none.
async fn look(client: &Client, api: &Api<DynamicObject>, deadline: Deadline) -> anyhow::Result<usize> {
    let mut params = ListParams::default().limit(PAGE);
    let mut count = 0_usize;
    loop {
        let page = match deadline.request(|| api.list(&params)).await {
            Err(error) if code(&error) == Some(404) => return Ok(count),
            page => page.map_err(|error| failed("KonnectExtensions cannot be listed", &error))?,
        };
        for object in page.items {
            if without(&object.metadata.finalizers).is_some() {
                release(client, object, deadline).await?;
                count = count.saturating_add(1);
            }
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(count),
        }
    }
}

/// The finalizers without ours; none when it is not among them.
fn without(finalizers: &Option<Vec<String>>) -> Option<Vec<String>> {
    let finalizers = finalizers.as_deref()?;
    let kept: Vec<String> = finalizers.iter().filter(|f| *f != keys::EXTENSION_IN_USE).cloned().collect();
    (kept.len() < finalizers.len()).then_some(kept)
}

/// Conditional on the version that was read: somebody else's finalizer must not get lost.
fn patch(object: &DynamicObject) -> Option<Value> {
    let finalizers = without(&object.metadata.finalizers)?;
    Some(json!({"metadata": {"resourceVersion": object.metadata.resource_version, "finalizers": finalizers}}))
}

async fn release(client: &Client, mut object: DynamicObject, deadline: Deadline) -> anyhow::Result<()> {
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &extensions());
    let what = format!("KonnectExtension {namespace}/{name} keeps its finalizer");
    let params = PatchParams::apply(keys::FIELD_MANAGER);
    for _ in 0..TRIES {
        let Some(patch) = patch(&object).map(Patch::Merge) else { return Ok(()) };
        match deadline.request(|| api.patch(&name, &params, &patch)).await {
            Ok(_) => {
                crate::print(format!("KonnectExtension {namespace}/{name}: finalizer taken off").as_bytes())?;
                return Ok(());
            }
            Err(error) if code(&error) == Some(404) => return Ok(()),
            Err(error) if code(&error) == Some(409) => {
                // `list` and `patch` are all that is granted: the list is asked for the one object.
                let one = ListParams::default().fields(&format!("metadata.name={name}"));
                let found = deadline.request(|| api.list(&one)).await.map_err(|error| failed(&what, &error))?;
                let Some(now) = found.items.into_iter().next() else { return Ok(()) };
                object = now;
            }
            Err(error) => return Err(failed(&what, &error).into()),
        }
    }
    Err(Failure { exit: Exit::Unavailable, message: format!("{what}: others write to it all the time; run this again") }.into())
}

fn extensions() -> ApiResource {
    ApiResource {
        group: keys::GATEWAY_OPERATOR_GROUP.to_owned(),
        version: "v1alpha1".to_owned(),
        api_version: format!("{}/v1alpha1", keys::GATEWAY_OPERATOR_GROUP),
        kind: "KonnectExtension".to_owned(),
        plural: "konnectextensions".to_owned(),
    }
}
