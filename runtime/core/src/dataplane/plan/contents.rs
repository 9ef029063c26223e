//! Content of plugins that has to stand in the namespace before pods mount it.

use super::{Wanted, rollout::Template};
use crate::{
    dataplane::{
        decide::Decided,
        objects::plain_owner,
        plugins::{self, Used},
        validate::Validated,
    },
    plan::{Change, ContentRequest},
};

/// The content that the template mounts stands in the namespace before the Deployment does. What pods have already is seen to as well: somebody
/// may have deleted it.
pub(super) fn provide(dp: &Validated<'_>, decided: &Decided, template: &Template<'_>, wanted: &mut Wanted) {
    let used: Vec<&Used> = match template {
        Template::Roll(_) => decided.plugins.iter().collect(),
        Template::Own(_, own) => own.plugins.iter().collect(),
        Template::Keep(live) => {
            let maps = plugins::mounted_maps(&live.object);
            let mounted = |used: &&Used| plugins::map_names([&*used.content]).any(|name| maps.contains(&name));
            let own = decided.own.iter().flat_map(|own| &own.plugins).chain(&decided.restored);
            let own = own.filter(|used| !decided.plugins.contains(used));
            decided.plugins.iter().chain(own).filter(mounted).collect()
        }
    };
    let mine =
        |name: &String| dp.snapshot.children.contents.iter().any(|map| map.name == *name && !map.leaving && map.owners.contains(&dp.uid));
    for used in used {
        if plugins::map_names([&*used.content]).all(|name| mine(&name)) {
            continue;
        }
        let (namespace, name) = used.reference.split_once('/').unwrap_or_default();
        wanted.changes.push(Change::ProvideContent(Box::new(ContentRequest {
            namespace: dp.namespace.clone(),
            hash: used.content.hash.clone(),
            maps: used.content.maps,
            installation: (namespace.to_owned(), name.to_owned()),
            owner: plain_owner(dp),
        })));
    }
}
