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
