//! From a plugin to a policy: does it serve the slot, does it take the settings?

use std::{
    sync::{Arc, LazyLock},
    time::Instant,
};

use serde_json::Value;
use weir_core::policy::{Finding, Identity, PolicyError};
use weir_proto::policy::{self as wire, settings_client::SettingsClient};

use super::{Asked, OnDrop, RemotePolicy, fail};
use crate::{
    remote::{Lease, Plugin, slot, slot::RemoteSlot, wire::origin},
    wasm::{Limits, LoadError, settings, watchdog::Watchdog},
};

/// One for all plugins: it bounds how many schemas are at work at once.
static SCHEMAS: LazyLock<Watchdog> = LazyLock::new(settings::watchdog);

impl<S: RemoteSlot> RemotePolicy<S> {
    /// Makes a policy of what `plugin` is now: checks that it advertises the slot, then the settings by its schema and its own `Validate`.
    /// `settings` of JSON `null` are `{}`.
    ///
    /// # Errors
    /// As for components: [`LoadError::Policy`] with `Incompatible` when the plugin does not serve the slot, with `Unavailable` or `Deadline` when
    /// it cannot be asked; [`LoadError::Settings`] when it refuses the settings.
    pub async fn load(plugin: Arc<Plugin>, settings: Value, limits: Limits) -> Result<Self, LoadError> {
        let settings = settings::Settings::new(settings).map_err(LoadError::Settings)?;
        let runtime = plugin.runtime().clone();
        let (asked, document) = (Arc::clone(&plugin), settings.json.clone());
        let limits_of_settings = limits.for_settings();
        let told = OnDrop(runtime.spawn(async move { inquire::<S>(&asked, document, limits_of_settings).await })).wait().await??;
        // A schema is checked on a thread of its own, and this waits for it: away from the threads of connections.
        let (checked, schema) = (settings.clone(), told.schema);
        let findings = runtime.spawn_blocking(move || checked.check(&SCHEMAS, schema)).await;
        let mut findings = findings.map_err(|_| PolicyError::Unavailable("the host stops".into()))??;
        if !settings::invalid(&findings) {
            findings = settings::bounded(told.findings)?;
        }
        if settings::invalid(&findings) {
            return Err(LoadError::Settings(findings));
        }
        let identity = Identity { source: format!("remote:{}", plugin.name()), digest: told.digest, settings_digest: settings.digest };
        let asked = Asked { plugin, settings: settings.json.into(), limits };
        Ok(Self { asked, identity, findings, slot: std::marker::PhantomData })
    }
}

/// What the plugin says of settings, all of it over one connection, so by one version.
struct Told {
    digest: String,
    schema: String,
    findings: Vec<Finding>,
}

async fn inquire<S: RemoteSlot>(plugin: &Arc<Plugin>, settings: String, limits: Limits) -> Result<Told, PolicyError> {
    let began = Instant::now();
    let lease = plugin.acquire(limits.timeout()).await.map_err(|error| fail::not_acquired(error, limits))?;
    if !lease.capabilities().slots.contains(&S::NAME) {
        return Err(fail::not_served(plugin.name(), S::NAME));
    }
    if !S::HAS_SETTINGS {
        let schema = r#"{"type": "object", "maxProperties": 0}"#.to_owned();
        return Ok(Told { digest: lease.metadata().digest(), schema, findings: Vec::new() });
    }
    let slot = S::NAME.as_str().to_owned();
    let within = limits.timeout().saturating_sub(began.elapsed());
    let mut client = client(&lease, limits);
    let question = wire::SchemaRequest { slot: slot.clone() };
    let schema = lease.call("Settings/Schema", within, question, |request| async move { client.schema(request).await });
    let schema = schema.await.map_err(|error| fail::call(&error, limits))?.schema;
    let within = limits.timeout().saturating_sub(began.elapsed());
    let mut client = self::client(&lease, limits);
    let question = wire::ValidateRequest { slot, settings };
    let findings = lease.call("Settings/Validate", within, question, |request| async move { client.validate(request).await });
    let findings = slot::findings(findings.await.map_err(|error| fail::call(&error, limits))?.findings);
    let schema = if schema.trim().is_empty() { "{}".into() } else { schema };
    Ok(Told { digest: lease.metadata().digest(), schema, findings })
}

fn client(lease: &Lease, limits: Limits) -> SettingsClient<crate::remote::wire::Wire> {
    let cap = lease.limits().message;
    SettingsClient::with_origin(lease.wire(), origin()).max_decoding_message_size(cap.min(limits.answer())).max_encoding_message_size(cap)
}
