//! Slot object-hook: conversions between the core's types and `wit/0.1.1/object-hook.wit`.

use wasmtime::{Store, component::InstancePre};
use weir_core::policy::{ObjectHook, object_hook as core};

use super::{Export, WasmSlot, context, extensions, findings};
use crate::wasm::call::State;

mod bindings {
    #![allow(missing_docs, unreachable_pub, clippy::all, reason = "generated; the WIT files document it")]
    wasmtime::component::bindgen!({
        world: "weir:policy/object-hook-policy@0.1.1",
        path: ["../../wit", "../../wit/0.1.1"],
        with: {
            "weir:policy/types@0.1.0": crate::wasm::slot::konnect_env::bindings::weir::policy::types,
            "weir:policy/log@0.1.0": crate::wasm::slot::konnect_env::bindings::weir::policy::log,
        },
    });
}

use bindings::{ObjectHookPolicyPre, exports::weir::policy0_1_1::object_hook as wit};

impl WasmSlot for ObjectHook {
    type Pre = ObjectHookPolicyPre<State>;
    type Question = wit::Input;

    fn prepare(pre: InstancePre<State>) -> wasmtime::Result<Self::Pre> {
        ObjectHookPolicyPre::new(pre)
    }

    fn question(input: &core::Input) -> wit::Input {
        wit::Input {
            context: context(&input.context),
            operation: match input.operation {
                core::Operation::Create => wit::Operation::Create,
                core::Operation::Patch => wit::Operation::Patch,
                core::Operation::Delete => wit::Operation::Delete,
                core::Operation::Evaluate => wit::Operation::Evaluate,
            },
            api_version: input.api_version.clone(),
            kind: input.kind.clone(),
            object: input.object.clone(),
            owner: input.owner.clone(),
            paths: input.paths.clone(),
            extensions: extensions(),
        }
    }

    fn evaluate(pre: &Self::Pre, store: &mut Store<State>, input: &wit::Input, settings: &str) -> Export<Self> {
        let policy = pre.instantiate(&mut *store)?;
        store.data_mut().enter();
        let answer = policy.weir_policy0_1_1_object_hook().call_evaluate(store, input, settings)?;
        Ok(answer.map(|answer| Ok(answer_to_core(answer))).map_err(|refusal| (refusal.code, refusal.message)))
    }

    fn schema(pre: &Self::Pre, store: &mut Store<State>) -> wasmtime::Result<String> {
        let policy = pre.instantiate(&mut *store)?;
        store.data_mut().enter();
        policy.weir_policy0_1_0_settings().call_schema(store)
    }

    fn validate(pre: &Self::Pre, store: &mut Store<State>, settings: &str) -> wasmtime::Result<Vec<super::WitFinding>> {
        let policy = pre.instantiate(&mut *store)?;
        store.data_mut().enter();
        policy.weir_policy0_1_0_settings().call_validate(store, settings)
    }
}

fn answer_to_core(answer: wit::Answer) -> core::Answer {
    core::Answer { patch: answer.patch, findings: findings(answer.findings) }
}
