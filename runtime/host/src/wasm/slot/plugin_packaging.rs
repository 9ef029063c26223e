//! Slot plugin-packaging: conversions between the core's types and `wit/plugin-packaging.wit`.

use wasmtime::{Store, component::InstancePre};
use weir_core::policy::{PluginPackaging, plugin_packaging as core};

use super::{Export, WasmSlot, context, env_vars, extensions, findings, pairs};
use crate::wasm::call::State;

mod bindings {
    #![allow(missing_docs, unreachable_pub, clippy::all, reason = "generated; the WIT files document it")]
    wasmtime::component::bindgen!({
        world: "plugin-packaging-policy",
        path: "../../wit",
        with: {
            "weir:policy/types": crate::wasm::slot::konnect_env::bindings::weir::policy::types,
            "weir:policy/log": crate::wasm::slot::konnect_env::bindings::weir::policy::log,
        },
    });
}

use bindings::{PluginPackagingPolicyPre, exports::weir::policy::plugin_packaging as wit};

impl WasmSlot for PluginPackaging {
    type Pre = PluginPackagingPolicyPre<State>;
    type Question = wit::Input;

    fn prepare(pre: InstancePre<State>) -> wasmtime::Result<Self::Pre> {
        PluginPackagingPolicyPre::new(pre)
    }

    fn question(input: &core::Input) -> wit::Input {
        wit::Input {
            context: context(&input.context),
            reference: input.reference.clone(),
            digest: input.digest.clone(),
            annotations: pairs(&input.annotations),
            signers: input.signers.clone(),
            files: input.files.iter().map(file).collect(),
            bundled: input.bundled.clone(),
            extensions: extensions(),
        }
    }

    fn evaluate(pre: &Self::Pre, store: &mut Store<State>, input: &wit::Input, settings: &str) -> Export<Self> {
        let policy = pre.instantiate(&mut *store)?;
        store.data_mut().enter();
        let answer = policy.weir_policy_plugin_packaging().call_evaluate(store, input, settings)?;
        Ok(answer.map(|a| Ok(answer_to_core(a))).map_err(|refusal| (refusal.code, refusal.message)))
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

fn file(file: &core::File) -> wit::File {
    wit::File { path: file.path.clone(), size: file.size, digest: file.digest.clone(), text: file.text.clone(), extensions: extensions() }
}

fn answer_to_core(answer: wit::Answer) -> core::Answer {
    core::Answer {
        plugins: answer.plugins.into_iter().map(plugin).collect(),
        lua_package_path: answer.lua_package_path,
        env: env_vars(answer.env),
        findings: findings(answer.findings),
    }
}

fn plugin(plugin: wit::Plugin) -> core::Plugin {
    core::Plugin {
        name: plugin.name,
        version: plugin.version,
        priority: plugin.priority,
        placements: plugin.placements.into_iter().map(|p| core::Placement { source: p.source, target: p.target }).collect(),
    }
}
