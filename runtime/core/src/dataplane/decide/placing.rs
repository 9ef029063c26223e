//! Plugins and the parts of the pod: what is settled, and which plugins have their place in it.
//!
//! Kong does not start with a plugin that is named and not there: one whose volume or mount is another's is left out of a second layering.

use super::{
    super::{
        conflicts::{self, Settled, Settlements, settle},
        objects::proxy::Layers,
        plugins::{self, Mounted, Used, bringing, is_in_place, mounted},
        validate::Validated,
    },
    Decided, Pass,
};
use crate::{
    plan::HeldPart,
    policy::{conflict_resolution::Conflict, konnect_env},
};

/// What the layers of a pod are made of, besides the spec.
#[derive(Clone, Copy)]
pub(super) struct Inputs<'a> {
    /// Installations.
    pub(super) used: &'a [Used],
    /// Answer of slot konnect-env.
    pub(super) konnect: Option<&'a konnect_env::Answer>,
    /// Secret of the admin certificate.
    pub(super) certificate: &'a str,
}

impl<'a> Inputs<'a> {
    fn layers(self, dp: &Validated<'_>, mounted: &[Mounted<'_>]) -> Layers {
        Layers::collect(dp, self.konnect, self.certificate, &bringing(self.used, mounted), mounted)
    }

    /// What settlements that are there make of it, and the questions that led to them.
    pub(super) fn settled(self, dp: &Validated<'_>, settlements: &Settlements) -> (Settled, [Vec<Conflict>; 3]) {
        let mut mounted = mounted(self.used, settlements);
        let layers = self.layers(dp, &mounted);
        let settled = settle(&layers, settlements);
        let asked = [plugins::conflicts(self.used), conflicts::find(&layers)];
        if !leave_out(&mut mounted, &settled) {
            let [names, parts] = asked;
            return (settled, [names, parts, Vec::new()]);
        }
        let layers = self.layers(dp, &mounted);
        let [names, parts] = asked;
        (settle(&layers, settlements), [names, parts, conflicts::find(&layers)])
    }
}

/// Leaves out plugins that are not in their place. False where all are.
fn leave_out(mounted: &mut Vec<Mounted<'_>>, settled: &Settled) -> bool {
    let all = mounted.len();
    mounted.retain(|m| is_in_place(*m, settled));
    mounted.len() < all
}

impl Pass<'_> {
    /// Settles the parts of the pod once it is settled which plugin is whose, and says which plugins are in it. No parts when a conflict about one of them has no verdict and never had.
    pub(super) async fn placed<'a>(&mut self, inputs: Inputs<'a>, decided: &mut Decided) -> (Option<Settled>, Vec<Mounted<'a>>) {
        let mut mounted = mounted(inputs.used, &self.settlements);
        let mut settled = self.parts(inputs, &mounted, decided).await;
        if settled.as_ref().is_some_and(|settled| leave_out(&mut mounted, settled)) {
            settled = self.parts(inputs, &mounted, decided).await;
        }
        (settled, mounted)
    }

    async fn parts(&mut self, inputs: Inputs<'_>, mounted: &[Mounted<'_>], decided: &mut Decided) -> Option<Settled> {
        let layers = inputs.layers(self.dp, mounted);
        let complete = self.settle(conflicts::find(&layers), HeldPart::PodTemplate, decided).await;
        complete.then(|| settle(&layers, &self.settlements))
    }
}
