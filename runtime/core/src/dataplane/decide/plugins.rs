//! Plugins: no policy is asked here. What an installation gives, or what the pods had of it before.

use std::sync::Arc;

use weir_api::condition::reasons;

use super::{
    super::{
        plugins::{Contents, Used, mounted_maps},
        validate::State,
    },
    Decided, Pass,
};
use crate::{
    decisions::Record,
    plan::HeldPart,
    plugin_installation::content::{Content, MOUNTED_PREFIX},
    policy::{Identity, SlotName},
};

impl Pass<'_> {
    /// Fills `decided.plugins`. A plugin that cannot be had holds back itself only.
    pub(super) fn plugins(&mut self, decided: &mut Decided) {
        if self.dp.plugins.is_empty() {
            return;
        }
        let mut before = None;
        for plugin in &self.dp.plugins {
            let reference = plugin.reference();
            let (reason, message) = match &plugin.state {
                State::Ready(content) => {
                    decided.plugins.push(Used { reference, content: Arc::clone(content), fresh: true });
                    continue;
                }
                State::Unavailable { reason, message } => (*reason, message),
            };
            let before = before.get_or_insert_with(|| {
                let record = self.stored::<Contents>(SlotName::PluginPackaging, decided);
                record.map(|record| record.answer).unwrap_or_default()
            });
            match before.get(&reference) {
                Some(content) => {
                    decided.hold(HeldPart::Plugin, reason, format!("{message}; {} stays in the pods", content.digest));
                    decided.plugins.push(Used { reference, content: Arc::new(content.clone()), fresh: false });
                }
                // A gateway is not made without its plugins, and then again with them, for want of a moment's patience.
                None if reason == reasons::PENDING && self.live.is_none() => {
                    decided.hold(HeldPart::PodTemplate, reason, format!("{message}; the pods are made when that is known"));
                }
                // Whose content the pods have is not on record (too large, or somebody removed it): nothing is taken out on a guess.
                None if before.is_empty() && self.mounts_plugins() => {
                    let lost =
                        "what the pods have of it is not on record, so the pod template stays until it can be had or is no longer named";
                    decided.hold(HeldPart::PodTemplate, reason, format!("{message}; {lost}"));
                }
                None => decided.hold(HeldPart::Plugin, reason, format!("{message}; the pods are without it")),
            }
        }
        self.put_plugins(&decided.plugins);
    }

    /// Whether the live pods have content of any installation.
    pub(super) fn mounts_plugins(&self) -> bool {
        let is_content = |name: &String| name.starts_with(MOUNTED_PREFIX);
        self.live.is_some_and(|live| mounted_maps(&live.object).iter().any(is_content))
    }

    /// The record has what the pods get, whichever policy packaged it: that stands on the installation.
    pub(super) fn put_plugins(&mut self, used: &[Used]) {
        if used.is_empty() {
            return;
        }
        let contents: Contents = used.iter().map(|u| (u.reference.clone(), Content::clone(&u.content))).collect();
        let policy = Identity { source: "installations".into(), digest: String::new(), settings_digest: String::new() };
        let record = Record { policy, input: String::new(), answer: contents, fallback_for: None, mac: String::new() };
        self.writer.put(SlotName::PluginPackaging, &self.dp.uid, record, self.sealing);
    }
}
