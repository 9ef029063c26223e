//! How a registry is reached, and how often it is asked.

use libtest_mimic::Trial;
use serde_json::json;
use weir_host::oci::{self, Credentials, DockerConfig, Error, Reference, Registries, Resolved, Secret};
use weir_testkit::registry::{Credentials as User, Format, Image, Layer, Registry, RegistryOptions, Request, archive::Archive, pack::gzip};

use super::{Client, HANDLER, OCI, SCHEMA, Scratch, TAR, TAR_GZIP, files, plugin, plugin_archive, registry, settings};
use crate::support::test;

pub(super) fn tests() -> Vec<Trial> {
    vec![
        test("registry nothing is asked for twice", frugal),
        test("registry with an authority of its own", tls),
        test("registry with passwords", passwords),
        test("registry goes and comes back", outage),
        test("registry weir plan pulls", planned),
    ]
}

fn frugal() {
    let Some(registry) = registry("registry nothing is asked for twice", &RegistryOptions::default()) else { return };
    let raw = registry.raw("team/x").unwrap();
    let push = |handler: &str| {
        let layer = |archive: Archive| raw.blob(TAR_GZIP, &gzip(&archive.finish()).unwrap()).unwrap();
        let layers =
            [layer(Archive::new().file("handler.lua", handler).unwrap()), layer(Archive::new().file("schema.lua", SCHEMA).unwrap())];
        raw.image("v1", &layers).unwrap()
    };
    let digest = push(HANDLER);
    let reference = registry.reference("team/x", "v1");
    let client = Client::new(settings());
    let counted = || {
        let requests = registry.requests().unwrap();
        let ours: Vec<_> = requests.into_iter().filter(|request| request.agent.starts_with("weir/")).collect();
        let count = |of: fn(&Request) -> bool| ours.iter().filter(|request| of(request)).count();
        (count(Request::gets_manifest), count(Request::gets_blob), count(|request| request.method == "HEAD"))
    };
    assert_eq!(client.resolve(&reference).unwrap(), Resolved { digest: digest.clone(), media_type: OCI.to_owned() });
    assert_eq!(counted(), (0, 0, 1), "a look is no pull");
    assert_eq!(client.pull(&reference).unwrap().digest, digest);
    assert_eq!(counted(), (1, 2, 1));

    // The tag moves; what was resolved before stays what it is.
    let newer = push("return 2");
    assert_eq!(client.resolve(&reference).unwrap().digest, newer);
    let pinned = Reference::parse(&reference).unwrap().with_digest(&digest).unwrap().to_string();
    assert_eq!(files(&client.pull(&pinned).unwrap())["handler.lua"], HANDLER);
    assert_eq!(files(&client.pull(&reference).unwrap())["handler.lua"], "return 2");
}

fn credentials(registry: &Registry, reference: &str) -> Credentials {
    let config = registry.docker_config().unwrap().to_string();
    oci::docker_config(DockerConfig::Json, config.as_bytes(), &Reference::parse(reference).unwrap()).unwrap()
}

fn tls() {
    let options = RegistryOptions { tls: true, credentials: Some(User::new("kong", "first")) };
    let Some(registry) = registry("registry with an authority of its own", &options) else { return };
    let dir = Scratch::plugin();
    let image = Image::build(&[Layer::new(dir.folder(), "/")]).unwrap();
    registry.skopeo_copy(&image.source(), "team/x", "v1", Some(Format::Oci), &[]).unwrap();
    let reference = registry.reference("team/x", "v1");
    let user = credentials(&registry, &reference);
    let trusting = |ca_bundles: Vec<Vec<u8>>| Registries { loopback_tls: vec![registry.host()], ca_bundles, ..settings() };

    let client = Client::new(trusting(vec![registry.ca_pem().unwrap().as_bytes().to_vec()]));
    assert_eq!(files(&client.pull_as(&reference, &user).unwrap()), plugin());
    let error = client.pull(&reference).unwrap_err();
    assert!(matches!(error, Error::Unauthorized { sent: false, .. }), "{error}");
    // The certificate is for both names of this machine.
    let localhost = reference.replace("127.0.0.1", "localhost");
    let by_name = Client::new(Registries {
        loopback_tls: vec!["localhost".into()],
        ca_bundles: vec![registry.ca_pem().unwrap().as_bytes().to_vec()],
        ..settings()
    });
    assert_eq!(files(&by_name.pull_as(&localhost, &user).unwrap()), plugin());

    let error = Client::new(trusting(Vec::new())).pull_as(&reference, &user).unwrap_err();
    assert!(matches!(&error, Error::Tls { .. }) && error.to_string().contains("CA") && !error.transient(), "{error}");
    // Loopback is spoken to in plain HTTP unless somebody says otherwise; the server says what it thinks of that.
    let error = Client::new(settings()).pull_as(&reference, &user).unwrap_err();
    assert!(matches!(error, Error::Status { status: 400, .. }) && !error.transient(), "{error}");
    // Only what the operator allows is asked at all.
    let elsewhere = Registries { allowed: vec!["registry.example".into()], ..settings() };
    let error = Client::new(elsewhere).pull_as(&reference, &user).unwrap_err();
    assert!(matches!(error, Error::NotAllowed { .. }), "{error}");
}

fn passwords() {
    let options = RegistryOptions { credentials: Some(User::new("kong", "first-secret")), ..RegistryOptions::default() };
    let Some(mut registry) = registry("registry with passwords", &options) else { return };
    let raw = registry.raw("team/x").unwrap();
    raw.image("v1", &[raw.blob(TAR, &plugin_archive().finish()).unwrap()]).unwrap();
    let reference = registry.reference("team/x", "v1");
    let client = Client::new(settings());
    let first = credentials(&registry, &reference);
    let wrong = Credentials::Basic { username: "kong".into(), password: Secret::new("wrong-secret") };

    let error = client.pull(&reference).unwrap_err();
    assert!(matches!(error, Error::Unauthorized { sent: false, .. }) && error.to_string().contains("name a pull secret"), "{error}");
    let error = client.pull_as(&reference, &wrong).unwrap_err();
    assert!(matches!(error, Error::Unauthorized { sent: true, .. }) && error.to_string().contains("check the pull secret"), "{error}");
    assert!(!error.to_string().contains("wrong-secret"), "{error}");
    assert_eq!(files(&client.pull_as(&reference, &first).unwrap()), plugin());

    registry.set_password("second-secret").unwrap();
    let error = client.pull_as(&reference, &first).unwrap_err();
    assert!(matches!(error, Error::Unauthorized { sent: true, .. }) && !error.transient(), "{error}");
    assert_eq!(files(&client.pull_as(&reference, &credentials(&registry, &reference)).unwrap()), plugin());

    // A config that names other registries gives nothing, and says what it has.
    let config = json!({ "auths": { "registry.example": { "auth": "a29uZzpmaXJzdA==" } } }).to_string();
    let error = oci::docker_config(DockerConfig::Json, config.as_bytes(), &Reference::parse(&reference).unwrap()).unwrap_err();
    assert!(error.to_string().contains("it has entries for: registry.example"), "{error}");
}

fn outage() {
    let Some(mut registry) = registry("registry goes and comes back", &RegistryOptions::default()) else { return };
    let raw = registry.raw("team/x").unwrap();
    raw.image("v1", &[raw.blob(TAR, &plugin_archive().finish()).unwrap()]).unwrap();
    let reference = registry.reference("team/x", "v1");
    let client = Client::new(settings());
    assert_eq!(files(&client.pull(&reference).unwrap()), plugin());
    registry.stop();
    let error = client.pull(&reference).unwrap_err();
    assert!(matches!(error, Error::Network { .. }) && error.transient(), "{error}");
    registry.resume().unwrap();
    assert_eq!(files(&client.pull(&reference).unwrap()), plugin());
}

/// `weir plan --pull`: the artifact of the manifest, out of the registry that it names.
fn planned() {
    let options = RegistryOptions { credentials: Some(User::new("kong", "first")), ..RegistryOptions::default() };
    let Some(registry) = registry("registry weir plan pulls", &options) else { return };
    let dir = Scratch::plugin();
    let image = Image::build(&[Layer::new(dir.folder(), "/")]).unwrap();
    registry.skopeo_copy(&image.source(), "team/x", "v1", Some(Format::Oci), &[]).unwrap();
    let config = dir.write("config.json", registry.docker_config().unwrap().to_string()).display().to_string();
    let manifest = json!({
        "apiVersion": "gateway-operator.konghq.com/v1alpha1", "kind": "KongPluginInstallation",
        "metadata": {"name": "x", "namespace": "gateways"}, "spec": {"image": registry.reference("team/x", "v1")},
    })
    .to_string();
    let plan = |more: &[&str]| {
        let output = crate::cli::run(&[&["plan", "-o", "json", "-f", "-", "--quiet"], more].concat(), Some(&manifest));
        (output.status.code(), serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap())
    };
    let accepted = |plan: &serde_json::Value| {
        let conditions = plan["statuses"][0]["status"]["conditions"].as_array().unwrap().clone();
        let found = conditions.into_iter().find(|c| c["type"] == "Accepted").unwrap();
        [found["status"].as_str(), found["reason"].as_str(), found["message"].as_str()].map(|text| text.unwrap().to_owned())
    };
    let (_, without) = plan(&[]);
    assert_eq!(accepted(&without)[1], "Pending");
    let (code, refused) = plan(&["--pull"]);
    assert_ne!(code, Some(0));
    assert!(accepted(&refused)[1] == "Failed" && accepted(&refused)[2].contains("credentials"), "{:?}", accepted(&refused));
    let (code, pulled) = plan(&["--pull", "--registry-auth-file", &config]);
    assert_eq!((code, accepted(&pulled)[..2].join("/")), (Some(0), "True/Ready".to_owned()));
    assert_eq!(pulled["objects"][0]["kind"], "ConfigMap");
}
