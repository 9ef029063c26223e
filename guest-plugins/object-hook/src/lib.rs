//! The default policy of slot object-hook: every object stays as it was rendered. The operator asks it only where it stands in for a hook
//! that failed (`onFailure: Fallback`), since a chain without hooks changes nothing by itself.

use weir_policy_sdk::{
    NoSettings, ObjectHook, Policy, Refusal,
    object_hook::{Answer, Input},
};

/// The policy.
#[derive(Debug, Clone, Copy)]
pub struct DefaultPolicy;

impl Policy for DefaultPolicy {
    type Settings = NoSettings;

    fn schema() -> &'static str {
        include_str!("settings.schema.json")
    }
}

impl ObjectHook for DefaultPolicy {
    fn evaluate(_: Input, _: NoSettings) -> Result<Answer, Refusal> {
        Ok(Answer::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_changed() {
        let answer = <DefaultPolicy as ObjectHook>::evaluate(weir_policy_sdk::sample::object_hook(), NoSettings {}).unwrap();
        assert_eq!(answer, Answer::default());
    }
}
