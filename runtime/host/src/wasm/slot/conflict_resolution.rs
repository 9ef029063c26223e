//! Slot conflict-resolution: conversions between the core's types and `wit/conflict-resolution.wit`.

use wasmtime::{Store, component::InstancePre};
use weir_core::policy::{ConflictResolution, conflict_resolution as core};

use super::{Export, WasmSlot, context, extensions, findings, unknown};
use crate::wasm::call::State;

mod bindings {
    #![allow(missing_docs, unreachable_pub, clippy::all, reason = "generated; the WIT files document it")]
    wasmtime::component::bindgen!({
        world: "conflict-resolution-policy",
        path: "../../wit",
        with: {
            "weir:policy/types": crate::wasm::slot::konnect_env::bindings::weir::policy::types,
            "weir:policy/log": crate::wasm::slot::konnect_env::bindings::weir::policy::log,
        },
    });
}

use bindings::{ConflictResolutionPolicyPre, exports::weir::policy::conflict_resolution as wit};

impl WasmSlot for ConflictResolution {
    type Pre = ConflictResolutionPolicyPre<State>;
    type Question = wit::Input;

    fn prepare(pre: InstancePre<State>) -> wasmtime::Result<Self::Pre> {
        ConflictResolutionPolicyPre::new(pre)
    }

    fn question(input: &core::Input) -> wit::Input {
        wit::Input { context: context(&input.context), conflicts: input.conflicts.iter().map(conflict).collect(), extensions: extensions() }
    }

    fn evaluate(pre: &Self::Pre, store: &mut Store<State>, input: &wit::Input, settings: &str) -> Export<Self> {
        let policy = pre.instantiate(&mut *store)?;
        store.data_mut().enter();
        let answer = policy.weir_policy_conflict_resolution().call_evaluate(store, input, settings)?;
        Ok(answer.map(answer_to_core).map_err(|refusal| (refusal.code, refusal.message)))
    }

    fn schema(pre: &Self::Pre, store: &mut Store<State>) -> wasmtime::Result<String> {
        let policy = pre.instantiate(&mut *store)?;
        store.data_mut().enter();
        policy.weir_policy_settings().call_schema(store)
    }

    fn validate(pre: &Self::Pre, store: &mut Store<State>, settings: &str) -> wasmtime::Result<Vec<super::WitFinding>> {
        let policy = pre.instantiate(&mut *store)?;
        store.data_mut().enter();
        policy.weir_policy_settings().call_validate(store, settings)
    }
}

fn conflict(conflict: &core::Conflict) -> wit::Conflict {
    wit::Conflict {
        kind: match conflict.kind {
            core::SubjectKind::EnvVar => wit::SubjectKind::EnvVar,
            core::SubjectKind::PluginName => wit::SubjectKind::PluginName,
            core::SubjectKind::BundledPlugin => wit::SubjectKind::BundledPlugin,
            core::SubjectKind::PluginInstallation => wit::SubjectKind::PluginInstallation,
            core::SubjectKind::Volume => wit::SubjectKind::Volume,
            core::SubjectKind::VolumeMount => wit::SubjectKind::VolumeMount,
        },
        subject: conflict.subject.clone(),
        claims: conflict.claims.iter().map(claim).collect(),
        extensions: extensions(),
    }
}

fn claim(claim: &core::Claim) -> wit::Claim {
    wit::Claim {
        who: claim.who.clone(),
        since: claim.since.clone(),
        origin: match claim.origin {
            core::Origin::User => wit::Origin::User,
            core::Origin::Policy => wit::Origin::Policy,
            core::Origin::Generated => wit::Origin::Generated,
            core::Origin::Default => wit::Origin::Default,
        },
        value: match &claim.value {
            core::ClaimValue::Text(text) => wit::ClaimValue::Text(text.clone()),
            core::ClaimValue::Object(json) => wit::ClaimValue::Object(json.clone()),
        },
        extensions: extensions(),
    }
}

fn answer_to_core(answer: wit::Answer) -> Result<core::Answer, String> {
    let resolutions = answer.resolutions.into_iter().map(resolution).collect::<Result<_, _>>()?;
    Ok(core::Answer { resolutions })
}

fn resolution(resolution: wit::Resolution) -> Result<core::Resolution, String> {
    let verdict = match resolution.verdict {
        wit::Verdict::Keep(index) => core::Verdict::Keep(index),
        wit::Verdict::KeepSome(indices) => core::Verdict::KeepSome(indices),
        wit::Verdict::Merge(value) => core::Verdict::Merge(value),
        wit::Verdict::Reject(message) => core::Verdict::Reject(message),
        wit::Verdict::Hold(message) => core::Verdict::Hold(message),
        wit::Verdict::Other(case) => return Err(unknown("verdict", &case)),
    };
    Ok(core::Resolution { verdict, findings: findings(resolution.findings) })
}
