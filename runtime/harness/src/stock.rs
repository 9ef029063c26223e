//! Components by name, and policies made of them: each is loaded once.

use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;
use weir_core::policy::{
    Chosen, ConflictResolution, Finding, KonnectEnv, ObjectHook, PluginPackaging, Policies, Policy, SlotName, object_hook::Hooks,
};
use weir_host::{
    files::Broken,
    wasm::{BUILTIN_SOURCE, Builtin, Limits, LoadError, MAX_COMPONENT, Wasm, WasmPolicy, WasmSlot},
};

use crate::{
    calls::{Calls, Recorded},
    exit::{Exit, Failure},
    suite::{Case, Component},
};

/// Policies of one slot that stay loaded.
const MOST: usize = 128;

/// A component's bytes, and the name that people know it by.
#[derive(Debug, Clone)]
pub struct Bytes {
    /// `file:…` or a reference.
    pub source: String,
    /// The component.
    pub bytes: Arc<[u8]>,
}

/// Fetches an artifact of a registry.
pub type Fetch<'a> = &'a mut dyn FnMut(&str) -> Result<Vec<u8>, Failure>;

/// The components that cases name.
#[derive(Debug, Default)]
pub struct Components {
    by_place: BTreeMap<Place, Bytes>,
    folder: Option<PathBuf>,
}

/// Where a component is, whatever suite names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Place {
    Builtin,
    File(PathBuf),
    Ref(String),
}

impl Components {
    /// Reads the components of all cases. Names are looked up in `folder`.
    ///
    /// # Errors
    /// A component that is not there, with the suite that names it.
    pub fn read(cases: &[Case], folder: Option<&Path>, fetch: Fetch<'_>) -> Result<Self, Failure> {
        let mut all = Self { by_place: BTreeMap::new(), folder: folder.map(Path::to_owned) };
        for case in cases {
            let named = case.policies.values().chain(case.steps.iter().flat_map(|step| step.policies.values()));
            for component in named {
                all.add(case, component, fetch).map_err(|error| Failure { message: format!("{}: {error}", case.origin), ..error })?;
            }
        }
        Ok(all)
    }

    fn place(&self, case: &Case, component: &Component) -> Result<Place, Failure> {
        Ok(match component {
            Component::Builtin => Place::Builtin,
            Component::File(path) => Place::File(case.folder().join(path)),
            Component::Ref(reference) => Place::Ref(reference.clone()),
            Component::Name(name) if name.contains(['/', '\\']) => {
                return Err(Failure::usage(format!("policies: {name:?} is no name; write {{file: {name}}}")));
            }
            Component::Name(name) => match &self.folder {
                Some(folder) => Place::File(folder.join(format!("{name}.wasm"))),
                None => return Err(Failure::usage(format!("policies: {name} is a name: say with --components in which folder"))),
            },
        })
    }

    fn add(&mut self, case: &Case, component: &Component, fetch: Fetch<'_>) -> Result<(), Failure> {
        let place = self.place(case, component)?;
        if self.by_place.contains_key(&place) {
            return Ok(());
        }
        let bytes = match &place {
            Place::Builtin => return Ok(()),
            Place::File(path) => file(path)?,
            Place::Ref(reference) => Bytes { source: reference.clone(), bytes: fetch(reference)?.into() },
        };
        self.by_place.insert(place, bytes);
        Ok(())
    }
}

/// Reads a component out of a file.
///
/// # Errors
/// A file that cannot be read ([`Exit::Usage`]).
pub fn file(path: &Path) -> Result<Bytes, Failure> {
    let failed = |error: std::io::Error| Failure::usage(format!("{}: {error}: build the component first", path.display()));
    let mut bytes = Vec::new();
    // One byte more than the host takes: it says what is too large.
    File::open(path).map_err(failed)?.take(MAX_COMPONENT as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Bytes { source: format!("file:{}", path.file_name().unwrap_or_default().to_string_lossy()), bytes: bytes.into() })
}

/// Policies that are loaded. Every worker has a stock of its own, so that no call waits for another one's.
pub struct Stock<'a> {
    host: &'a Wasm,
    components: &'a Components,
    calls: Arc<Calls>,
    konnect_env: Shelf<KonnectEnv>,
    conflict_resolution: Shelf<ConflictResolution>,
    plugin_packaging: Shelf<PluginPackaging>,
    object_hook: Shelf<ObjectHook>,
}

type Shelf<S> = HashMap<(Place, String, Limits), Result<Arc<WasmPolicy<S>>, LoadError>>;

/// Policies for a case.
pub struct Stocked {
    /// One per slot, and the hook that the case names, if it names one.
    pub policies: Policies,
    /// The hook that the case names, or the default.
    pub hook: Chosen<ObjectHook>,
    /// What is wrong with components: how a command ends at least.
    pub exit: Exit,
}

/// A policy that takes no such settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsRefused {
    /// The slot.
    pub slot: SlotName,
    /// What it says.
    pub findings: Vec<Finding>,
}

/// What a case has by slot.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The case, for its folder.
    pub case: &'a Case,
    /// Components.
    pub policies: &'a BTreeMap<SlotName, Component>,
    /// Settings.
    pub settings: &'a BTreeMap<SlotName, Value>,
}

impl<'a> Stock<'a> {
    /// An empty stock.
    #[must_use]
    pub fn new(host: &'a Wasm, components: &'a Components) -> Self {
        let calls = Arc::default();
        let (konnect_env, conflict_resolution, plugin_packaging, object_hook) = Default::default();
        Self { host, components, calls, konnect_env, conflict_resolution, plugin_packaging, object_hook }
    }

    /// The calls of all its policies.
    #[must_use]
    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Policies for all slots.
    ///
    /// # Errors
    /// The outer one: a component that was not read. The inner one: settings that a policy refuses.
    pub fn policies(&mut self, wanted: Wanted<'_>) -> Result<Result<Stocked, SettingsRefused>, Failure> {
        let mut exit = Exit::Done;
        let mut refused = None;
        macro_rules! slot {
            ($shelf:ident, $slot:ty) => {{
                let (place, settings) = self.named(wanted, <$slot as weir_core::policy::Slot>::NAME)?;
                match load::<$slot>(self.host, self.components, &mut self.$shelf, &place, &settings, wanted.case.limits)? {
                    Ok(policy) => Arc::new(Recorded::new(policy, Arc::clone(&self.calls))) as Arc<dyn Policy<$slot>>,
                    Err(LoadError::Settings(findings)) => {
                        let slot = <$slot as weir_core::policy::Slot>::NAME;
                        refused.get_or_insert(SettingsRefused { slot, findings });
                        Arc::new(Broken::new(String::new(), &[], &Value::Null, weir_core::policy::PolicyError::Unavailable(String::new())))
                    }
                    Err(LoadError::Policy(error)) => {
                        exit = exit.max(weir_core::plan::Outcome::from(&error).into());
                        let (source, bytes) = bytes::<$slot>(self.components, &place)?;
                        Arc::new(Broken::new(source, bytes, &settings, error))
                    }
                }
            }};
        }
        let hook: Chosen<ObjectHook> = slot!(object_hook, ObjectHook).into();
        let is_named = wanted.policies.contains_key(&SlotName::ObjectHook);
        let object_hooks = if is_named { Hooks::one(hook.identity().source.clone(), hook.clone()) } else { Hooks::default() };
        let policies = Policies {
            object_hooks,
            konnect_env: slot!(konnect_env, KonnectEnv).into(),
            conflict_resolution: slot!(conflict_resolution, ConflictResolution).into(),
            plugin_packaging: slot!(plugin_packaging, PluginPackaging).into(),
        };
        Ok(refused.map_or(Ok(Stocked { policies, hook, exit }), Err))
    }

    fn named(&self, wanted: Wanted<'_>, slot: SlotName) -> Result<(Place, Value), Failure> {
        let component = wanted.policies.get(&slot).unwrap_or(&Component::Builtin);
        let settings = wanted.settings.get(&slot).cloned().unwrap_or(Value::Null);
        Ok((self.components.place(wanted.case, component)?, settings))
    }
}

fn bytes<'c, S: Builtin>(components: &'c Components, place: &Place) -> Result<(String, &'c [u8]), Failure> {
    match components.by_place.get(place) {
        Some(found) => Ok((found.source.clone(), &found.bytes)),
        None if *place == Place::Builtin => Ok((BUILTIN_SOURCE.to_owned(), S::COMPONENT)),
        None => Err(Failure { exit: Exit::Internal, message: format!("a component was not read: {place:?}") }),
    }
}

fn load<S: Builtin + WasmSlot>(
    host: &Wasm,
    components: &Components,
    shelf: &mut Shelf<S>,
    place: &Place,
    settings: &Value,
    limits: Limits,
) -> Result<Result<Arc<WasmPolicy<S>>, LoadError>, Failure> {
    let key = (place.clone(), settings.to_string(), limits);
    if let Some(known) = shelf.get(&key) {
        return Ok(known.clone());
    }
    let (source, bytes) = bytes::<S>(components, place)?;
    let loaded = host.load::<S>(bytes, source, settings.clone(), limits);
    if shelf.len() >= MOST {
        shelf.clear();
    }
    shelf.insert(key, loaded.clone());
    Ok(loaded)
}
