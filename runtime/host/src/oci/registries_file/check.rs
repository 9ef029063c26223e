//! Whether the values of a file can be used, so that a typing error is told with its field and not when a pull fails.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    Dial, File,
    document::{Document, Entry, KIND},
};
use crate::oci::{
    DialPolicy, Proxies, Rule,
    dial::Guard,
    http::certificates,
    reference::{authority, prefix},
    text,
    yaml_file::{self, Problem, wrong},
};

/// Checks the values, and reads CAs. Paths are relative to `directory`.
pub(super) fn file(document: Document, directory: &Path) -> Result<File, Problem> {
    yaml_file::kind(&document.api_version, &document.kind, KIND)?;
    let mut hosts = Hosts::default();
    for (index, allowed) in document.allowed.iter().enumerate() {
        hosts.name(&place(&format!("allowed[{index}]"), allowed)?, None, "")?;
    }
    let (mut rules, mut files): (Vec<Rule>, Vec<PathBuf>) = (Vec::new(), Vec::new());
    for (index, entry) in document.registries.into_iter().enumerate() {
        let field = format!("registries[{index}]");
        files.extend(entry.ca_file.as_ref().map(|path| directory.join(path)));
        let rule = rule(&field, entry, directory, &mut hosts)?;
        if let Some(other) = rules.iter().position(|other| other.prefix == rule.prefix) {
            return Err(wrong(format!("{field}.prefix"), format!("registries[{other}] has it too; merge the two")));
        }
        rules.push(rule);
    }
    let own = document.dial;
    let dial = Dial { listed: own.listed, refused: own.refused, private: own.private, loopback: own.loopback };
    addresses(&dial)?;
    let proxies = Proxies { https: document.proxies.https, http: document.proxies.http, no_proxy: document.proxies.no_proxy };
    urls(&proxies)?;
    let (insecure, secure) = hosts.split();
    Ok(File {
        allowed: document.allowed,
        rules,
        insecure,
        secure,
        hosts: hosts.hosts(),
        proxies,
        dial,
        auth_file: document.auth_file.map(|path| directory.join(path)),
        files,
    })
}

/// The canonical form of a registry with or without a path.
fn place(field: &str, text: &str) -> Result<String, Problem> {
    prefix(text).map_err(|problem| wrong(field, format!("\"{}\": {problem}", text::name(text))))
}

fn rule(field: &str, entry: Entry, directory: &Path, hosts: &mut Hosts) -> Result<Rule, Problem> {
    let own = place(&format!("{field}.prefix"), &entry.prefix)?;
    hosts.name(&own, entry.insecure, &format!("{field}.insecure"))?;
    let mut mirrors = Vec::new();
    for (index, mirror) in entry.mirrors.iter().enumerate() {
        let field = format!("{field}.mirrors[{index}]");
        let location = place(&format!("{field}.location"), &mirror.location)?;
        hosts.name(&location, mirror.insecure, &format!("{field}.insecure"))?;
        mirrors.push(location);
    }
    if entry.mirror_only && mirrors.is_empty() {
        return Err(wrong(format!("{field}.mirrorOnly"), "there is no mirror to ask instead; add one to `mirrors`"));
    }
    let ca = match (entry.ca, entry.ca_file) {
        (Some(_), Some(_)) => return Err(wrong(format!("{field}.caFile"), "there is `ca` too; leave one of them")),
        (Some(ca), None) => Some((format!("{field}.ca"), ca.into_bytes())),
        (None, Some(path)) => {
            let field = format!("{field}.caFile");
            let pem = yaml_file::named(&field, &directory.join(path))?;
            Some((field, pem))
        }
        (None, None) => None,
    };
    if let Some((field, _)) = ca.as_ref().filter(|(_, pem)| certificates(pem).is_empty()) {
        return Err(wrong(field, "it holds no certificate in PEM form; give the CA's certificate, from -----BEGIN CERTIFICATE----- on"));
    }
    Ok(Rule { prefix: own, mirrors, mirror_only: entry.mirror_only, ca: ca.map(|(_, pem)| pem) })
}

fn addresses(dial: &Dial) -> Result<(), Problem> {
    for (index, entry) in dial.listed.iter().enumerate() {
        let policy = DialPolicy { listed: vec![entry.clone()], ..DialPolicy::default() };
        Guard::new(&policy, &Proxies::default()).map_err(|entry| {
            let problem = format!("\"{}\" is neither host, address nor range; write a host, 10.1.2.3 or 10.0.0.0/8", text::name(&entry));
            wrong(format!("dial.listed[{index}]"), problem)
        })?;
    }
    for (index, entry) in dial.refused.iter().enumerate() {
        let policy = DialPolicy { refused: vec![entry.clone()], ..DialPolicy::default() };
        Guard::new(&policy, &Proxies::default()).map_err(|entry| {
            let problem = format!("\"{}\" is neither address nor range; write 10.1.2.3 or 10.0.0.0/8", text::name(&entry));
            wrong(format!("dial.refused[{index}]"), problem)
        })?;
    }
    Ok(())
}

/// URLs carry passwords and are not told.
fn urls(proxies: &Proxies) -> Result<(), Problem> {
    for (field, proxy) in [("proxies.https", &proxies.https), ("proxies.http", &proxies.http)] {
        if proxy.as_ref().is_some_and(|url| reqwest::Proxy::all(url).is_err()) {
            return Err(wrong(field, "it is no URL; write http://host:port"));
        }
    }
    Ok(())
}

/// Hosts that the file names, and what it says of plain HTTP for each: the field that said it, and what.
#[derive(Default)]
struct Hosts(BTreeMap<String, Option<(String, bool)>>);

impl Hosts {
    /// Takes note of the host of `place`. One host cannot be both, whatever the path.
    fn name(&mut self, place: &str, insecure: Option<bool>, field: &str) -> Result<(), Problem> {
        let (authority, _) = authority(place);
        let known = self.0.entry(authority.to_owned()).or_default();
        match (insecure, known.as_ref()) {
            (Some(says), Some((other, said))) if says != *said => Err(wrong(
                field,
                format!("{other} says the opposite of {authority}; plain HTTP is a matter of the host, so write the same"),
            )),
            (Some(says), None) => {
                *known = Some((field.to_owned(), says));
                Ok(())
            }
            (Some(_) | None, _) => Ok(()),
        }
    }

    /// Those in plain HTTP, and the others.
    fn split(&self) -> (Vec<String>, Vec<String>) {
        let insecure = |said: &Option<(String, bool)>| said.as_ref().is_some_and(|(_, says)| *says);
        let (plain, tls): (Vec<_>, Vec<_>) = self.0.iter().partition(|(_, said)| insecure(said));
        let names = |hosts: Vec<(&String, _)>| hosts.into_iter().map(|(host, _)| host.clone()).collect();
        (names(plain), names(tls))
    }

    fn hosts(&self) -> Vec<String> {
        let mut hosts: Vec<String> = self.0.keys().map(|authority_| authority(authority_).1.to_owned()).collect();
        hosts.dedup();
        hosts
    }
}
