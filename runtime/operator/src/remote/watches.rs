//! What wakes a pass over remote plugins. All of it may be forbidden: a plugin namespace without its Role has no plugins, and the log says so.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use k8s_openapi::api::{
    core::v1::{Secret, Service},
    discovery::v1::EndpointSlice,
};
use kube::core::{DeserializeGuard, PartialObjectMeta};
use weir_core::remote::validate::{CNPG, WEIR};

use crate::{
    context::Context,
    metrics::ObjectKind,
    watch::{Optional, Pending, Selection, Watching, optional},
    world::{name_only, slim},
};

/// Rights that come later are noticed within this time.
const NOTICED: Duration = Duration::from_secs(6);

/// Runs all watches, until it is dropped. Nobody waits for a namespace that may not be read.
pub async fn run(context: Arc<Context>, watching: Watching) {
    let remote = &*context.remote;
    // Its own count: plugins are looked at when all of them are known, whatever else is still being listed.
    let pending = Pending::new(1);
    let own = Watching { pending: pending.clone(), namespaces: remote.settings.namespaces.clone(), ..watching.clone() };
    let own = &own;
    let changed = || remote.changed.notify_one();
    let ignore = |_: bool| {};
    let slices_served = |served: bool| {
        if remote.slices_served.swap(served, Ordering::Relaxed) != served {
            changed();
        }
    };
    let may = |served| Optional { wait: NOTICED, served };
    let labelled = |label: &str| Selection::labels(label);
    futures::join!(
        optional::<DeserializeGuard<Service>, _>(
            own,
            ObjectKind::Service,
            (may(&ignore), labelled(WEIR.name)),
            &remote.services,
            |o| Some(slim(o)),
            |_| changed()
        ),
        async {
            if remote.settings.cnpg {
                let of = (may(&ignore), labelled(CNPG.name));
                optional::<DeserializeGuard<Service>, _>(
                    own,
                    ObjectKind::Service,
                    of,
                    &remote.cnpg_services,
                    |o| Some(slim(o)),
                    |_| changed(),
                )
                .await;
            }
        },
        optional::<PartialObjectMeta<Secret>, _>(
            own,
            ObjectKind::Secret,
            (may(&ignore), Selection::default()),
            &remote.secrets,
            |o| Some(name_only(o)),
            |_| changed()
        ),
        optional::<DeserializeGuard<EndpointSlice>, _>(
            own,
            ObjectKind::EndpointSlice,
            (may(&slices_served), labelled("kubernetes.io/service-name")),
            &remote.slices,
            |o| Some(slim(o)),
            |_| changed()
        ),
        async {
            pending.done();
            pending.all().await;
            remote.listed.send_replace(true);
            watching.pending.done();
        }
    );
}
