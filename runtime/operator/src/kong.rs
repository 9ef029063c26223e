//! Whether Kong's own operator runs in this cluster: two operators on one DataPlane would fight.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;

use crate::cache::Cache;

/// Name of its leader election, in whatever namespace it runs.
pub const LEASE: &str = "a7feedc84.konghq.com";

/// The holder of a Lease of Kong's operator that is being renewed.
#[must_use]
pub fn live(leases: &Cache<Lease>, now: Timestamp) -> Option<String> {
    leases.all().iter().find_map(|lease| {
        let spec = lease.spec.as_ref()?;
        let holder = spec.holder_identity.clone().filter(|h| !h.is_empty())?;
        let seconds = spec.lease_duration_seconds.unwrap_or(15);
        let until = spec.renew_time.as_ref()?.0.checked_add(SignedDuration::from_secs(i64::from(seconds))).ok()?;
        (until > now).then_some(holder)
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{
        api::coordination::v1::LeaseSpec,
        apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
    };

    use super::*;

    #[test]
    fn a_lease_that_is_renewed_is_live_until_it_ends() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let cache = Cache::default();
        cache.apply(Lease {
            metadata: ObjectMeta { name: Some(LEASE.into()), namespace: Some("kong".into()), ..ObjectMeta::default() },
            spec: Some(LeaseSpec {
                holder_identity: Some("pod".into()),
                lease_duration_seconds: Some(15),
                renew_time: Some(MicroTime(now)),
                ..LeaseSpec::default()
            }),
        });
        assert_eq!(live(&cache, now).as_deref(), Some("pod"));
        assert_eq!(live(&cache, now + SignedDuration::from_secs(16)), None);
    }
}
