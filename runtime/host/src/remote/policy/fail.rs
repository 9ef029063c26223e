//! The pool's failures as those of a policy.

use weir_core::policy::{PolicyError, SlotName};

use crate::{
    remote::{AcquireError, CallError, Class},
    wasm::Limits,
};

pub(super) fn not_acquired(error: AcquireError, limits: Limits) -> PolicyError {
    match error {
        // The time was the policy's; where it went is the pool's business.
        AcquireError::Timeout { .. } => deadline(limits),
        AcquireError::Unknown { .. } | AcquireError::NotReady { .. } | AcquireError::Busy { .. } | AcquireError::Closed { .. } => {
            PolicyError::Unavailable(error.to_string())
        }
    }
}

pub(super) fn not_served(plugin: &str, slot: SlotName) -> PolicyError {
    if slot == SlotName::ObjectHook {
        return PolicyError::Incompatible(format!("remote plugin {plugin} has no lifecycle service, so it is no hook for objects"));
    }
    PolicyError::Incompatible(format!(
        "remote plugin {plugin} does not serve slot {slot}: its manifest needs `weir.dev/slot.{slot}` with the value `v1alpha1`"
    ))
}

pub(super) fn call(error: &CallError, limits: Limits) -> PolicyError {
    let text = error.to_string();
    match error.class {
        Class::Deadline => deadline(limits),
        Class::Connection | Class::Later => PolicyError::Unavailable(text),
        Class::Unimplemented => PolicyError::Incompatible(text),
        Class::TooLarge => PolicyError::Memory(text),
        Class::Garbage => PolicyError::BadOutput(text),
        Class::Permanent | Class::Failed => PolicyError::Trap(text),
    }
}

fn deadline(limits: Limits) -> PolicyError {
    PolicyError::Deadline { limit_ms: limits.timeout_ms() }
}
