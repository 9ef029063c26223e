//! What a labelled Service says, read once: after this step nobody reads labels and annotations.

use k8s_openapi::api::core::v1::Service;
use weir_api::{keys, names};

use super::{
    Key,
    reason::{Problem, Reason},
    snapshot::Snapshot,
    tenants::Tenants,
};
use crate::policy::limits;

/// The keys of one prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    /// Label: the name.
    pub name: &'static str,
    port: &'static str,
    server_name: &'static str,
    client_secret: &'static str,
    server_secret: &'static str,
}

/// Ours.
pub const WEIR: Dialect = Dialect {
    name: keys::PLUGIN_NAME,
    port: keys::PLUGIN_PORT,
    server_name: keys::PLUGIN_SERVER_NAME,
    client_secret: keys::PLUGIN_CLIENT_SECRET,
    server_secret: keys::PLUGIN_SERVER_SECRET,
};

/// That of CNPG-I plugins.
pub const CNPG: Dialect = Dialect {
    name: keys::CNPG_PLUGIN_NAME,
    port: keys::CNPG_PLUGIN_PORT,
    server_name: keys::CNPG_PLUGIN_SERVER_NAME,
    client_secret: keys::CNPG_PLUGIN_CLIENT_SECRET,
    server_secret: keys::CNPG_PLUGIN_SERVER_SECRET,
};

/// What a Service asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Port of the Service.
    pub port: u16,
    /// Name that the certificate is checked for, where it is not the Service's own.
    pub server_name: Option<String>,
    /// Secret with what the operator shows.
    pub client_secret: Key,
    /// Secret with what the operator trusts.
    pub server_secret: Key,
    /// The annotations that name the two.
    pub fields: (&'static str, &'static str),
}

/// A Service that is to be a plugin, read.
#[derive(Debug, Clone)]
pub struct Validated<'a> {
    /// The Service.
    pub service: &'a Service,
    /// Its namespace and name.
    pub key: Key,
    /// Name of the plugin; may be empty.
    pub name: &'a str,
    /// What it asks for, or the first thing that is wrong.
    pub wanted: Result<Wanted, Problem>,
    /// Whose policies may use it.
    pub tenants: Tenants,
    /// What is wrong with the annotation that says so. Nobody is let in then, and everything else goes on.
    pub tenants_problem: Option<String>,
}

/// Reads every Service. One that has the labels of both prefixes is ours.
#[must_use]
pub fn validate(snapshot: &Snapshot) -> Vec<Validated<'_>> {
    snapshot.services.iter().filter_map(|service| one(service, snapshot.cnpg)).collect()
}

/// The Secrets that a Service names: what the shell has to look at.
#[must_use]
pub fn secrets(service: &Service, cnpg: bool) -> Vec<Key> {
    let wanted = one(service, cnpg).and_then(|validated| validated.wanted.ok());
    wanted.map(|wanted| vec![wanted.client_secret, wanted.server_secret]).unwrap_or_default()
}

fn one(service: &Service, cnpg: bool) -> Option<Validated<'_>> {
    let label = |key: &str| service.metadata.labels.as_ref()?.get(key).map(String::as_str);
    let (dialect, name) = match (label(WEIR.name), label(CNPG.name).filter(|_| cnpg)) {
        (Some(name), _) => (WEIR, name),
        (None, Some(name)) => (CNPG, name),
        (None, None) => return None,
    };
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let key = (text(&service.metadata.namespace), text(&service.metadata.name));
    let (tenants, tenants_problem) = match Tenants::parse(annotation(service, keys::PLUGIN_TENANTS).unwrap_or_default()) {
        Ok(tenants) => (tenants, None),
        Err(problem) => (Tenants::None, Some(format!("annotation {}: {problem}", keys::PLUGIN_TENANTS))),
    };
    let wanted = wanted(service, &key, &dialect);
    Some(Validated { service, key, name, wanted, tenants, tenants_problem })
}

fn annotation<'a>(service: &'a Service, key: &str) -> Option<&'a str> {
    service.metadata.annotations.as_ref()?.get(key).map(|value| value.trim()).filter(|value| !value.is_empty())
}

fn wanted(service: &Service, key: &Key, dialect: &Dialect) -> Result<Wanted, Problem> {
    let needed = |annotated: &'static str, what: &str| {
        let missing = || Problem::new(Reason::AnnotationMissing, format!("annotation {annotated} is missing: set it to {what}"));
        annotation(service, annotated).ok_or_else(missing)
    };
    let secret = |annotated: &'static str, what: &str| {
        let name = needed(annotated, what)?;
        if !names::is_dns_subdomain(name) {
            let message = format!("annotation {annotated}: {:?} is no name of a Secret: set it to {what}", limits::cut(name));
            return Err(Problem::new(Reason::AnnotationMissing, message));
        }
        Ok((key.0.clone(), name.to_owned()))
    };
    let port = port(service, dialect.port, needed(dialect.port, "the port of this Service that the plugin is served at")?)?;
    let client_secret = secret(dialect.client_secret, "the Secret in this namespace with the certificate and key that the operator shows")?;
    let server_secret =
        secret(dialect.server_secret, "the Secret in this namespace with the certificate that the plugin shows, or its CA")?;
    let server_name = annotation(service, dialect.server_name);
    if let Some(name) = server_name.filter(|name| !names::is_dns_subdomain(name)) {
        let message = format!(
            "annotation {}: {:?} is no host name: set it to a DNS name of the plugin's certificate",
            dialect.server_name,
            limits::cut(name)
        );
        return Err(Problem::new(Reason::InvalidServerName, message));
    }
    Ok(Wanted {
        port,
        server_name: server_name.map(String::from),
        client_secret,
        server_secret,
        fields: (dialect.client_secret, dialect.server_secret),
    })
}

fn port(service: &Service, annotated: &str, text: &str) -> Result<u16, Problem> {
    let wrong = |message: String| Problem { reason: Reason::InvalidPort, event: "InvalidPortAnnotation", message };
    let port = text.parse::<u16>().ok().filter(|port| *port > 0 && text.bytes().all(|b| b.is_ascii_digit()));
    let Some(port) = port else {
        return Err(wrong(format!("annotation {annotated}: {:?} is no port: write a number from 1 to 65535", limits::cut(text))));
    };
    let spec = service.spec.as_ref();
    let headless = spec.is_some_and(|spec| spec.cluster_ip.as_deref() == Some("None") || spec.type_.as_deref() == Some("ExternalName"));
    let mut ports = spec.and_then(|spec| spec.ports.as_ref()).into_iter().flatten();
    if headless || ports.any(|p| p.port == i32::from(port)) {
        return Ok(port);
    }
    let listed: Vec<String> = spec.and_then(|s| s.ports.as_ref()).into_iter().flatten().take(10).map(|p| p.port.to_string()).collect();
    let has = if listed.is_empty() { "none".to_owned() } else { listed.join(", ") };
    Err(wrong(format!("annotation {annotated}: {port} is none of the ports in spec.ports of this Service ({has}): name one of them")))
}
