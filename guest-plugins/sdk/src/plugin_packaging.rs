//! Slot plugin-packaging: what a fetched plugin artifact contains and where its files go.

use crate::{Policy, Refusal, bindings::plugin_packaging::exports::weir::policy::plugin_packaging as wit, policy::settings_for_evaluate};

pub use wit::{Answer, File, Input, Placement, Plugin};

/// Answers the slot.
pub trait PluginPackaging: Policy {
    /// Must depend on its arguments only.
    ///
    /// # Errors
    /// An artifact without a plugin, or one that must not be installed, is refused with the reason.
    fn evaluate(input: Input, settings: Self::Settings) -> Result<Answer, Refusal>;
}

impl<P: PluginPackaging> wit::Guest for P {
    fn evaluate(input: Input, settings: String) -> Result<Answer, Refusal> {
        <P as PluginPackaging>::evaluate(input, settings_for_evaluate::<P>(&settings)?)
    }
}

/// A file of the artifact at a place below the plugin's folder.
///
/// ```
/// use weir_policy_sdk::plugin_packaging::{placement, plugin};
/// let it = plugin("my_plugin", vec![placement("src/handler.lua", "handler.lua"), placement("src/schema.lua", "schema.lua")]);
/// assert_eq!(it.placements[0].target, "handler.lua");
/// ```
pub fn placement(source: impl Into<String>, target: impl Into<String>) -> Placement {
    Placement { source: source.into(), target: target.into(), extensions: Vec::new() }
}

/// A plugin without version and priority.
pub fn plugin(name: impl Into<String>, placements: Vec<Placement>) -> Plugin {
    Plugin { name: name.into(), version: None, priority: None, placements, extensions: Vec::new() }
}

/// The answer that only says which plugins there are.
///
/// ```
/// assert_eq!(weir_policy_sdk::plugin_packaging::answer(Vec::new()).lua_package_path, None);
/// ```
#[must_use]
pub fn answer(plugins: Vec<Plugin>) -> Answer {
    Answer { plugins, lua_package_path: None, env: Vec::new(), findings: Vec::new(), extensions: Vec::new() }
}
