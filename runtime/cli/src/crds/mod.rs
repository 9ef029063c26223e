//! `weir crds apply`: the CRDs of this version into a cluster.

mod merge;
#[cfg(test)]
mod tests;

use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams, ValidationDirective},
};
use serde_json::Value;
use weir_api::keys;

use self::merge::{Step, step};
use crate::{
    cluster::{self, Deadline, Flags, failed},
    exit::{Exit, Failure},
};

/// Shown after the flags.
pub const HELP: &str = "\
A CRD of an older Weir is upgraded. One of a newer Weir stays, so that going back to an older operator takes no field away. One that
somebody else installed (another Helm release, Kong's operator) stays too, unless --take-over says otherwise. A version that is served or
stored is never dropped, and a conversion is never changed.

Exit codes:
  0  every kind is served
  1  a CRD of somebody else does not serve what this version needs, or the API server does not accept one
  5  the API server does not answer, or does not allow it";

/// `weir crds apply`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    cluster: Flags,
    /// Also replace CRDs that somebody else installed.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    take_over: bool,
    /// Let the API server check everything and store nothing.
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
///
/// # Errors
/// There is no cluster, or a CRD cannot be applied.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    cluster::run(&args.cluster, |client| apply(client, args))
}

async fn apply(client: Client, args: &Args) -> anyhow::Result<Exit> {
    let crds = Crds {
        api: Api::all_with(client, &resource()),
        deadline: Deadline::after(args.cluster.timeout),
        take_over: args.take_over,
        dry_run: args.dry_run,
    };
    let mut exit = Exit::Done;
    let mut applied = Vec::new();
    for crd in weir_api::crds::all() {
        let wanted = serde_json::to_value(&crd)?;
        let name = crd.metadata.name.unwrap_or_default();
        let said = crds.one(&name, &wanted).await?;
        crate::print(format!("{name}: {}", said.words).as_bytes())?;
        exit = exit.max(said.exit);
        if said.applied && !args.dry_run {
            applied.push(name);
        }
    }
    for name in applied {
        crds.established(&name).await?;
    }
    Ok(exit)
}

struct Crds {
    api: Api<DynamicObject>,
    deadline: Deadline,
    take_over: bool,
    dry_run: bool,
}

/// What became of one CRD.
struct Said {
    words: String,
    exit: Exit,
    applied: bool,
}

impl Crds {
    async fn one(&self, name: &str, wanted: &Value) -> anyhow::Result<Said> {
        let live = self.get(name).await?;
        let said = |words: String, exit: Exit| Said { words, exit, applied: false };
        Ok(match step(live.as_ref(), wanted, self.take_over) {
            Step::Apply(object) => {
                self.patch(name, &object).await?;
                let words = match (live.is_some(), self.dry_run) {
                    (_, true) => "would be accepted (nothing was stored)",
                    (false, false) => "created",
                    (true, false) => "applied",
                };
                Said { words: words.to_owned(), exit: Exit::Done, applied: true }
            }
            Step::Newer { version } => said(format!("left alone: Weir {version}, which is newer, made it"), Exit::Done),
            Step::Foreign { owner, lacks } if lacks.is_empty() => {
                said(format!("left alone: {owner} made it; --take-over replaces it"), Exit::Done)
            }
            Step::Foreign { owner, lacks } => {
                said(format!("not served as {}: {owner} made it; --take-over replaces it", lacks.join(", ")), Exit::Held)
            }
        })
    }

    async fn get(&self, name: &str) -> anyhow::Result<Option<Value>> {
        let found = self.deadline.request(|| self.api.get_opt(name)).await;
        let found = found.map_err(|error| failed(&format!("CustomResourceDefinition {name} cannot be read"), &error))?;
        Ok(found.map(serde_json::to_value).transpose()?)
    }

    /// Forced: whose it is was decided before.
    async fn patch(&self, name: &str, object: &Value) -> anyhow::Result<()> {
        let params = PatchParams {
            dry_run: self.dry_run,
            force: true,
            field_manager: Some(keys::FIELD_MANAGER.to_owned()),
            field_validation: Some(ValidationDirective::Strict),
        };
        let sent = Patch::Apply(object);
        let patched = self.deadline.request(|| self.api.patch(name, &params, &sent)).await;
        let what = format!("CustomResourceDefinition {name} cannot be applied");
        match patched {
            Ok(_) => Ok(()),
            Err(error) if cluster::code(&error) == Some(422) => {
                Err(Failure { exit: Exit::Held, message: format!("{what}: {error}") }.into())
            }
            Err(error) => Err(failed(&what, &error).into()),
        }
    }

    /// Waits until the kind is served.
    async fn established(&self, name: &str) -> anyhow::Result<()> {
        loop {
            let live = self.get(name).await?.unwrap_or_default();
            if let Some(problem) = merge::refused(&live) {
                let message = format!("CustomResourceDefinition {name} is not accepted: {problem}; remove the CRD that has its names");
                return Err(Failure { exit: Exit::Held, message }.into());
            }
            if merge::is_established(&live) {
                return Ok(());
            }
            if !self.deadline.pause().await {
                let message = format!("CustomResourceDefinition {name} was applied and is not served yet; look at its status");
                return Err(Failure { exit: Exit::Unavailable, message }.into());
            }
        }
    }
}

/// Who else made a CRD that is there; none when it is ours.
pub(crate) fn owner(live: &Value) -> Option<String> {
    merge::foreign(live)
}

pub(crate) fn resource() -> ApiResource {
    ApiResource {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        plural: "customresourcedefinitions".to_owned(),
    }
}
