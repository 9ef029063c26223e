//! Who answers for an object: a ReconcilePolicy that selects it, or what the operator starts with.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, PoisonError, RwLock},
};

use weir_core::policy::{
    BoxFuture, Chosen, ConflictResolution, Identity, KonnectEnv, ObjectHook, OnFailure, PluginPackaging, Policies, Policy, PolicyError,
    Slot, SlotName,
    object_hook::{Hook, Hooks, Paths},
    selection::{Entry, ObjectKind, Subject, select},
};
use weir_core::reconcile_policy::snapshot::Reach;

use super::{
    any::Served,
    base::Base,
    revisions::{Revision, RevisionId},
    shadow::{Queued, Shadow, Shadowed},
};
use crate::cache::Key;

/// A policy that has a revision in force.
#[derive(Clone)]
pub struct Service {
    /// Whom it is for.
    pub entry: Entry,
    /// What holds while it fails.
    pub on_failure: OnFailure,
    /// The revision that the status says is in force.
    pub id: RevisionId,
    /// The same, loaded; or why it is not.
    pub running: Result<Arc<Revision>, String>,
    /// With mode Shadow: where it is asked.
    pub shadow: Option<Arc<Shadow>>,
}

/// Who answers for what. Cheap to read: a pass that has begun keeps what it began with.
pub struct Book {
    /// What answers where no policy does.
    pub base: Arc<Base>,
    operator_namespace: String,
    tenants: bool,
    hook_paths: Arc<Paths>,
    services: RwLock<Arc<Services>>,
}

#[derive(Default)]
struct Services {
    entries: Vec<Entry>,
    by: BTreeMap<Key, Service>,
}

/// What an object is, for who answers for it.
#[derive(Debug, Clone)]
pub struct Place {
    /// Its kind.
    pub kind: ObjectKind,
    /// Its name.
    pub key: Key,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Labels of its namespace.
    pub namespace_labels: BTreeMap<String, String>,
}

impl Place {
    fn subject(&self) -> Subject<'_> {
        Subject {
            kind: self.kind,
            namespace: &self.key.namespace,
            name: &self.key.name,
            labels: &self.labels,
            namespace_labels: &self.namespace_labels,
        }
    }
}

impl Book {
    /// Nobody answers but what the operator starts with.
    pub fn new(base: Arc<Base>, operator_namespace: String, tenants: bool) -> Self {
        Self { base, operator_namespace, tenants, hook_paths: Arc::default(), services: RwLock::default() }
    }

    /// Hooks may change these paths.
    #[must_use]
    pub fn with_hook_paths(self, paths: Paths) -> Self {
        Self { hook_paths: Arc::new(paths), ..self }
    }

    fn services(&self) -> Arc<Services> {
        Arc::clone(&self.services.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The policies in force for an object.
    pub fn policies(&self, place: &Place) -> Policies {
        let services = self.services();
        let mut base = self.base.current();
        base.object_hooks.paths = Arc::clone(&self.hook_paths);
        if services.entries.is_empty() {
            return base;
        }
        Policies {
            konnect_env: self.chosen::<KonnectEnv>(&services, place, base.konnect_env),
            conflict_resolution: self.chosen::<ConflictResolution>(&services, place, base.conflict_resolution),
            plugin_packaging: self.chosen::<PluginPackaging>(&services, place, base.plugin_packaging),
            object_hooks: self.hooks(&services, place, base.object_hooks),
        }
    }

    /// All hooks of an object; those of files where no policy is one.
    fn hooks(&self, services: &Services, place: &Place, base: Hooks) -> Hooks {
        let selection = select(&services.entries, SlotName::ObjectHook, &place.subject(), &self.operator_namespace, self.tenants);
        let hook = |entry: &&Entry| {
            let key = key(entry);
            Some(Hook { name: key.to_string(), chosen: self.service::<ObjectHook>(services.by.get(&key)?)? })
        };
        let mut hooks = if selection.chain.is_empty() { base } else { Hooks { chain: Vec::new(), paths: base.paths } };
        hooks.chain.extend(selection.chain.iter().filter_map(hook));
        let shadows: Vec<Arc<Shadow>> = selection.shadows.iter().filter_map(|entry| services.by.get(&key(entry))?.shadow.clone()).collect();
        // A shadow sees what comes out of the chain, and is compared with a hook that leaves that as it is.
        if let (false, Some(unchanged)) = (shadows.is_empty(), <ObjectHook as Served>::of(&self.base.builtin(), None)) {
            let policy: Arc<dyn Policy<ObjectHook>> = Arc::new(Shadowed::new(Arc::clone(unchanged), shadows));
            hooks.chain.push(Hook { name: String::new(), chosen: policy.into() });
        }
        hooks
    }

    fn chosen<S: Queued>(&self, services: &Services, place: &Place, base: Chosen<S>) -> Chosen<S> {
        let selection = select(&services.entries, S::NAME, &place.subject(), &self.operator_namespace, self.tenants);
        let winner = selection.winner.and_then(|winner| services.by.get(&key(winner)));
        let mut chosen = winner.and_then(|service| self.service(service)).unwrap_or(base);
        let shadows = selection.shadows.iter().filter_map(|entry| services.by.get(&key(entry))?.shadow.clone());
        let shadows: Vec<Arc<Shadow>> = shadows.collect();
        if !shadows.is_empty() {
            chosen.policy = Arc::new(Shadowed::new(chosen.policy, shadows));
        }
        chosen
    }

    fn service<S: Served>(&self, service: &Service) -> Option<Chosen<S>> {
        let policy = match &service.running {
            Ok(revision) => S::pick(&revision.policy)?,
            Err(why) => Arc::new(Absent::of(&service.id, why)) as Arc<dyn Policy<S>>,
        };
        let fallback = S::of(&self.base.builtin(), None).cloned();
        Some(Chosen { policy, on_failure: service.on_failure, fallback })
    }

    /// What would answer for an object if this policy were in force as well: whether it would be this one.
    pub fn would_answer(&self, entry: &Entry, place: &Place) -> bool {
        let services = self.services();
        let mut entries: Vec<Entry> = services.entries.iter().filter(|e| e.key != entry.key).cloned().collect();
        entries.push(Entry { usable: true, ..entry.clone() });
        let selection = select(&entries, entry.slot, &place.subject(), &self.operator_namespace, self.tenants);
        let is_it = |e: &Entry| e.key == entry.key;
        selection.winner.is_some_and(is_it) || selection.chain.iter().any(|e| is_it(e)) || selection.shadows.into_iter().any(is_it)
    }

    /// What is asked of a policy, and the namespaces that is in.
    pub fn reach(&self, policy: &Key, slot: SlotName, places: &[Place]) -> (Reach, usize) {
        let services = self.services();
        let mut reach = Reach::default();
        let (mut namespaces, mut winners, mut ambiguous) = (BTreeSet::new(), BTreeMap::<Key, usize>::new(), BTreeSet::new());
        let is_it = |entry: &Entry| key(entry) == *policy;
        for place in places {
            let selection = select(&services.entries, slot, &place.subject(), &self.operator_namespace, self.tenants);
            if selection.winner.is_some_and(is_it) || selection.chain.iter().any(|e| is_it(e)) {
                reach.objects += 1;
                namespaces.insert(&place.key.namespace);
            } else if let (true, Some(winner)) = (selection.losers.iter().any(|(e, _)| is_it(e)), selection.winner) {
                reach.lost += 1;
                *winners.entry(key(winner)).or_default() += 1;
            }
            if selection.ambiguous.iter().any(|e| is_it(e)) {
                ambiguous.extend(selection.ambiguous.into_iter().filter(|e| !is_it(e)).map(|e| key(e).to_string()));
            }
        }
        reach.lost_to = winners.into_iter().max_by_key(|(_, count)| *count).map(|(winner, _)| winner.to_string());
        reach.ambiguous = ambiguous.into_iter().take(4).collect();
        (reach, namespaces.len())
    }

    /// A policy as it stands now; none when it has no revision in force. True when other answers may come of it.
    pub fn set(&self, policy: &Key, service: Option<Service>) -> bool {
        let mut place = self.services.write().unwrap_or_else(PoisonError::into_inner);
        let same = match (place.by.get(policy), &service) {
            (Some(old), Some(new)) => {
                old.entry == new.entry && old.on_failure == new.on_failure && old.id == new.id && old.running.is_ok() == new.running.is_ok()
            }
            (None, None) => return false,
            (Some(_), None) | (None, Some(_)) => false,
        };
        let mut by = place.by.clone();
        match service {
            Some(service) => by.insert(policy.clone(), service),
            None => by.remove(policy),
        };
        let entries = by.values().map(|service| service.entry.clone()).collect();
        *place = Arc::new(Services { entries, by });
        !same
    }

    /// A policy as it stands now.
    pub fn get(&self, policy: &Key) -> Option<Service> {
        self.services().by.get(policy).cloned()
    }

    /// Every policy that has a revision in force.
    pub fn all(&self) -> Vec<Service> {
        self.services().by.values().cloned().collect()
    }
}

fn key(entry: &Entry) -> Key {
    Key::new(&entry.key.0, &entry.key.1)
}

/// Stands for a revision that is in force and not loaded: last answers stay.
struct Absent {
    identity: Identity,
    why: String,
}

impl Absent {
    fn of(id: &RevisionId, why: &str) -> Self {
        let identity = Identity { source: format!("policy:{}", id.policy), digest: id.layer.clone(), settings_digest: id.settings.clone() };
        Self { identity, why: why.to_owned() }
    }
}

impl<S: Slot> Policy<S> for Absent {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn evaluate<'a>(&'a self, _: &'a S::Input) -> BoxFuture<'a, Result<S::Answer, PolicyError>> {
        Box::pin(std::future::ready(Err(PolicyError::Unavailable(self.why.clone()))))
    }
}
