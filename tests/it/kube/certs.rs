//! The cluster CA and the admin certificates: made, used, renewed with an overlap.

use std::time::{Duration, Instant};

use k8s_openapi::ByteString;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{
    api::{DATA_PLANE, DEPLOYMENT, REPLICA_SET, SECRET},
    labs::{Lab, lab},
    ns::{CONVERGED, Ns, READY},
    shape::{gateway, holds, name_of, same},
};

pub(crate) fn tests() -> Vec<Trial> {
    vec![lab("certs-ca", made), lab("certs-rsa", given), lab("certs-renewal", renewal)]
}

/// A value of a Secret.
fn part(secret: &Value, key: &str) -> Vec<u8> {
    serde_json::from_value::<ByteString>(secret["data"][key].clone()).unwrap_or_else(|_| panic!("no {key}")).0
}

/// The first certificate of a PEM value, and what to ask of it.
fn certificate<T>(secret: &Value, key: &str, ask: impl FnOnce(&X509Certificate<'_>) -> T) -> T {
    let (_, pem) = x509_parser::pem::parse_x509_pem(&part(secret, key)).unwrap();
    let (_, certificate) = X509Certificate::from_der(&pem.contents).unwrap();
    ask(&certificate)
}

fn algorithm(certificate: &X509Certificate<'_>) -> &'static str {
    use x509_parser::public_key::PublicKey;
    let key = certificate.public_key().parsed().unwrap();
    if matches!(key, PublicKey::RSA(_)) {
        "RSA"
    } else if matches!(key, PublicKey::EC(_)) {
        "ECDSA"
    } else {
        "another"
    }
}

fn seconds(certificate: &X509Certificate<'_>) -> i64 {
    certificate.validity().not_after.timestamp() - certificate.validity().not_before.timestamp()
}

async fn leaves(ns: &Ns) -> Result<Vec<Value>, String> {
    ns.list(SECRET, "gateway-operator.konghq.com/service-secret=dataplane-admin-gw").await
}

async fn made(lab: Lab) {
    let (ns, system) = (&lab.ns, lab.system());
    let mut operator = lab.operator("weir", &[]);
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    let ca = system.get(SECRET, "kong-operator-ca").await.unwrap();
    assert_eq!(ca["metadata"]["labels"]["konghq.com/secret"], "internal", "{:#}", ca["metadata"]);
    assert_eq!(ca["type"], "kubernetes.io/tls");
    assert_eq!(certificate(&ca, "tls.crt", algorithm), "ECDSA");
    assert!(certificate(&ca, "tls.crt", |c| c.is_ca()));
    assert!(certificate(&ca, "tls.crt", seconds) > 3_600 * 24 * 3_000, "years");
    let [leaf] = leaves(ns).await.unwrap().try_into().unwrap();
    assert_eq!(part(&leaf, "ca.crt"), part(&ca, "tls.crt"));
    certificate(&leaf, "tls.crt", |c| {
        let wanted = format!("*.dataplane-admin-gw.{}.svc", ns.name);
        assert_eq!(c.subject().iter_common_name().next().unwrap().as_str().unwrap(), &wanted[..wanted.len().min(64)]);
        let names = c.subject_alternative_name().unwrap().unwrap().value.general_names.clone();
        assert!(matches!(&names[..], [x509_parser::extensions::GeneralName::DNSName(name)] if *name == wanted), "{names:?}");
        assert!(c.extended_key_usage().unwrap().unwrap().value.server_auth);
    });
    certificate(&ca, "tls.crt", |ca| certificate(&leaf, "tls.crt", |c| c.verify_signature(Some(ca.public_key())).unwrap()));
    assert!(leaf["metadata"]["annotations"]["konghq.com/cert-expires-at"].is_string(), "{:#}", leaf["metadata"]);
    // A restart makes neither a new CA nor a new certificate.
    operator.kill_and_restart();
    operator.wait_ready().await;
    ns.always(Duration::from_secs(3), "the same certificate", async || {
        let all = leaves(ns).await?;
        same("Secrets", all.iter().map(name_of).collect::<Vec<_>>(), vec![name_of(&leaf)])?;
        same("CA", part(&system.get(SECRET, "kong-operator-ca").await?, "tls.crt"), part(&ca, "tls.crt"))
    })
    .await;
    // A clock that jumps, or an operator that was away too long: the end is past, and there is one new certificate and one roll.
    operator.stop(Duration::from_secs(20));
    let past = json!({"metadata": {"annotations": {"konghq.com/cert-expires-at": "2026-01-01T00:00:00Z"}}});
    ns.edit(SECRET, &name_of(&leaf), past).await;
    let mut operator = lab.operator("weir", &[]);
    ns.eventually(READY, "another certificate is mounted", async || {
        let template = ns.get(DEPLOYMENT, "dataplane-gw").await?["spec"]["template"].to_string();
        holds(!template.contains(&name_of(&leaf)), || "the old one is".into())
    })
    .await;
    ns.ready("gw", READY).await;
    // Kubernetes makes it a moment after the Deployment has changed.
    ns.eventually(READY, "one roll", async || same("ReplicaSets", ns.list(REPLICA_SET, "app=gw").await?.len(), 2)).await;
    assert!(operator.is_running());
    // The CA goes: it is made again, and the pods follow once.
    system.delete(SECRET, "kong-operator-ca").await;
    ns.edit(DATA_PLANE, "gw", json!({"metadata": {"labels": {"look": "again"}}})).await;
    ns.eventually(READY, "a CA and a certificate of it", async || {
        let ca = system.get(SECRET, "kong-operator-ca").await?;
        let all = leaves(ns).await?;
        holds(all.iter().any(|leaf| part(leaf, "ca.crt") == part(&ca, "tls.crt")), || format!("{} Secrets", all.len()))
    })
    .await;
    ns.ready("gw", READY).await;
    drop(operator);
}

/// A CA that somebody else made, of the other algorithm and under another name.
async fn given(lab: Lab) {
    let (ns, system) = (&lab.ns, lab.system());
    let key = rcgen::KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, rcgen::RsaKeySize::_2048).unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign, rcgen::KeyUsagePurpose::CrlSign];
    let ca = params.self_signed(&key).unwrap();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "company-ca"}, "type": "kubernetes.io/tls",
        "stringData": {"tls.crt": ca.pem(), "tls.key": key.serialize_pem()}
    });
    system.apply(&secret).await;
    let before = system.get(SECRET, "company-ca").await.unwrap();
    let operator = lab.operator("weir", &["--cluster-ca-secret", "company-ca"]);
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    let [leaf] = leaves(ns).await.unwrap().try_into().unwrap();
    assert_eq!(certificate(&leaf, "tls.crt", algorithm), "RSA");
    assert_eq!(part(&leaf, "ca.crt"), ca.pem().into_bytes());
    certificate(&before, "tls.crt", |ca| certificate(&leaf, "tls.crt", |c| c.verify_signature(Some(ca.public_key())).unwrap()));
    let after = system.get(SECRET, "company-ca").await.unwrap();
    assert_eq!(after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"], "not ours to write");
    assert!(system.find(SECRET, "kong-operator-ca").await.unwrap().is_none(), "no second CA");
    drop(operator);
}

/// Certificates of 40 s, renewed when 25 s are left: a new one about every 15 s.
async fn renewal(lab: Lab) {
    let ns = &lab.ns;
    let operator = lab.operator("weir", &["--cert-ttl", "40s", "--cert-expiration-margin", "25s"]);
    ns.apply(&gateway("gw")).await;
    ns.ready("gw", READY).await;
    let mounted = async || {
        let deployment = ns.get(DEPLOYMENT, "dataplane-gw").await?;
        let volumes = deployment["spec"]["template"]["spec"]["volumes"].as_array().cloned().unwrap_or_default();
        let name = volumes.iter().find(|v| v["name"] == "cluster-certificate").map(|v| v["secret"]["secretName"].clone());
        name.and_then(|n| n.as_str().map(str::to_owned)).ok_or("no certificate is mounted".to_owned())
    };
    let mut names = vec![mounted().await.unwrap()];
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(40) {
        let all = leaves(ns).await.unwrap();
        let name = mounted().await.unwrap();
        // The order of events: at no time does a template name a Secret that is not there.
        let secret = all.iter().find(|s| name_of(s) == name);
        if secret.is_none() {
            ns.get(SECRET, &name).await.expect("the new Secret is there before the Deployment names it");
        }
        if let Some(secret) = secret {
            let left = certificate(secret, "tls.crt", |c| c.validity().not_after.timestamp()) - jiff::Timestamp::now().as_second();
            assert!(left > 5, "{left} s before its end {name} is still mounted");
        }
        if names.last() != Some(&name) {
            names.push(name);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!((3..=4).contains(&names.len()), "two or three renewals in 40 s: {names:?}");
    ns.ready("gw", READY).await;
    let sets = ns.list(REPLICA_SET, "app=gw").await.unwrap();
    assert!(sets.len() <= names.len() + 1, "one roll per renewal: {} ReplicaSets for {names:?}", sets.len());
    // A Secret goes when no ReplicaSet names it any more, and not before.
    let used = |sets: &[Value], name: &str| sets.iter().any(|set| set["spec"]["template"].to_string().contains(&format!("\"{name}\"")));
    for secret in leaves(ns).await.unwrap() {
        let sets = ns.list(REPLICA_SET, "app=gw").await.unwrap();
        let newest = mounted().await.unwrap() == name_of(&secret);
        assert!(newest || used(&sets, &name_of(&secret)), "{} is used by nothing", name_of(&secret));
    }
    let first = names[0].clone();
    for set in ns.list(REPLICA_SET, "app=gw").await.unwrap().iter().filter(|set| used(std::slice::from_ref(*set), &first)) {
        ns.delete(REPLICA_SET, &name_of(set)).await;
    }
    ns.eventually(CONVERGED, "the first Secret goes with its last ReplicaSet", async || {
        holds(ns.find(SECRET, &first).await?.is_none(), || format!("{first} is there"))
    })
    .await;
    drop(operator);
}
