//! Documents, lists, kinds and duplicates.

use super::*;

fn texts(loaded: &Loaded) -> Vec<String> {
    loaded.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn every_kind_finds_its_place() {
    let kinds = [
        ("v1", "Secret"),
        ("v1", "Namespace"),
        ("v1", "Service"),
        ("apps/v1", "Deployment"),
        ("apps/v1", "ReplicaSet"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("policy/v1", "PodDisruptionBudget"),
        ("v1", "ConfigMap"),
        ("konnect.konghq.com/v1alpha2", "KonnectExtension"),
        ("autoscaling/v1", "HorizontalPodAutoscaler"),
    ];
    let spec = |kind: &str| if kind == "KonnectExtension" { "spec: {}\n" } else { "" };
    let text: String = kinds
        .iter()
        .map(|(version, kind)| format!("---\napiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n{}", spec(kind)))
        .collect();
    // HorizontalPodAutoscalers of two versions would be the same object.
    let text = text.replacen("{name: a}", "{name: b}", 6);
    let loaded = read(&[("f", &text)]);
    assert_eq!(texts(&loaded), Vec::<String>::new());
    let objects = &loaded.objects;
    let lengths = [
        objects.secrets.len(),
        objects.namespaces.len(),
        objects.services.len(),
        objects.deployments.len(),
        objects.replica_sets.len(),
        objects.horizontal_pod_autoscalers.len(),
        objects.pod_disruption_budgets.len(),
        objects.konnect_v2_extensions.len(),
        objects.others.len(),
    ];
    assert_eq!(lengths, [1, 1, 1, 1, 1, 1, 1, 1, 2]);
    assert_eq!(objects.secrets[0].source, SourceRef { file: "f".into(), line: 2 });
    assert_eq!(objects.deployments[0].object.metadata.namespace.as_deref(), Some("default"));
    assert_eq!(objects.namespaces[0].object.metadata.namespace, None);
    assert_eq!(objects.konnect_v2_extensions[0].object.metadata.namespace.as_deref(), Some("default"));
}

#[test]
fn lists_are_taken_apart() {
    let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Namespace\n  metadata: {name: a}\n- apiVersion: v1\n  kind: List\n  items:\n  - apiVersion: v1\n    kind: Namespace\n    metadata: {name: b}\n- apiVersion: v1\n  kind: Namespace\n- 5\n";
    let loaded = read(&[("f", text)]);
    let lines: Vec<usize> = loaded.objects.namespaces.iter().map(|namespace| namespace.source.line).collect();
    assert_eq!(lines, [4, 10]);
    assert_eq!(loaded.problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [13, 15]);
    let typed = "{\"apiVersion\":\"v1\",\"kind\":\"SecretList\",\"items\":[{\"metadata\":{\"name\":\"s\"},\"data\":{\"k\":\"aGk=\"}}]}";
    let loaded = read(&[("f", typed)]);
    assert_eq!((loaded.objects.secrets.len(), loaded.objects.len()), (1, 1));
    assert!(read(&[("f", "{apiVersion: v1, kind: List, items: []}")]).objects.is_empty());
}

#[test]
fn objects_need_an_identity() {
    for (text, expected) in [
        ("5", "f:1: expected a Kubernetes object, a map with apiVersion, kind and metadata"),
        ("[a]", "f:1: expected a Kubernetes object"),
        ("\nkind: X", "f:2: X: apiVersion: `apiVersion` is missing"),
        ("apiVersion: v1", "f:1: kind: `kind` is missing"),
        ("{apiVersion: v1, kind: X}", "f:1: X: metadata.name: `metadata.name` is missing"),
        ("apiVersion: v1\nkind: X\nmetadata:\n  name: 5", "f:4: X: metadata.name: `metadata.name` is missing or not a text"),
        (
            "apiVersion: v1\nkind: X\nmetadata:\n  generateName: a-",
            "f:4: X: metadata.generateName: an object without a name cannot be planned",
        ),
        (
            "apiVersion: example.org/v2\nkind: Gateway\nmetadata: {name: gw}",
            "f:1: Gateway gw: apiVersion: version `example.org/v2` of Gateway is not known: use `example.org/v1`",
        ),
    ] {
        let loaded = read(&[("f", text)]);
        assert_eq!(loaded.problems.len(), 1);
        assert_eq!(loaded.problems[0].kind, ProblemKind::Schema);
        assert!(loaded.problems[0].to_string().starts_with(expected), "{}", loaded.problems[0]);
    }
}

#[test]
fn a_name_that_is_a_boolean_to_kubectl_is_explained() {
    let loaded = read(&[("f", "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: n\n")]);
    assert_eq!(loaded.problems[0].kind, ProblemKind::Yaml11Boolean);
    assert_eq!(texts(&loaded), ["f:4: Namespace: metadata.name: kubectl reads the unquoted `n` as a boolean: quote it: \"n\""]);
}

#[test]
fn duplicates_name_both_places_and_none_is_taken() {
    let one = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n";
    let same = "# a comment\napiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: default}\n";
    let other = "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: other}\n";
    let loaded = read(&[("one", one), ("two", same), ("three", other), ("four", one)]);
    assert_eq!(
        texts(&loaded),
        [
            "two:2: Service default/a: the same object is also given at one:1: keep one",
            "four:1: Service default/a: the same object is also given at one:1: keep one",
        ]
    );
    assert!(loaded.problems.iter().all(|problem| problem.kind == ProblemKind::Duplicate && !problem.is_unreadable()));
    assert_eq!(loaded.objects.len(), 1);
}

#[test]
fn types_of_core_kinds_name_the_field() {
    let text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  replicas: three\n  selector: {}\n  template: {}\n";
    let loaded = read(&[("f", text)]);
    assert_eq!(loaded.problems[0].kind, ProblemKind::Type);
    assert_eq!(texts(&loaded), ["f:5: Deployment default/a: spec.replicas: invalid type: string \"three\", expected i32"]);
    let text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  selector: {}\n  template:\n    spec:\n      containers:\n      - name: x\n        env:\n        - name: A\n          value: ok\n        - name: B\n          value: on\n";
    let loaded = read(&[("f", text)]);
    assert_eq!(loaded.problems[0].kind, ProblemKind::Yaml11Boolean);
    assert_eq!(
        texts(&loaded),
        [
            "f:14: Deployment default/a: spec.template.spec.containers[0].env[1].value: kubectl reads the unquoted `on` as a boolean: quote it: \"on\""
        ]
    );
}

#[test]
fn unreadable_texts_are_another_class() {
    let loaded = read(&[("a", "a: [\n"), ("b", "a: 1\na: 2\n"), ("c", "apiVersion: v1\nkind: Namespace\nmetadata: {name: ns}\n")]);
    assert_eq!(loaded.problems.iter().map(|problem| problem.kind).collect::<Vec<_>>(), [ProblemKind::Syntax, ProblemKind::Unreadable]);
    assert!(loaded.problems.iter().all(Problem::is_unreadable));
    assert_eq!(loaded.problems[1].to_string(), "b:2:1: field `a` is given in line 1 and again in line 2: keep one");
    assert_eq!(loaded.objects.len(), 1);
    assert!(Problem::unreadable("x", "no such file").is_unreadable());
}

#[test]
fn problems_keep_the_order_of_sources_and_lines() {
    let gateway = "---\napiVersion: example.org/v1\nkind: Gateway\nmetadata: {name: NAME}\nspec: {bad: 1}\n";
    let first = [&gateway.replace("NAME", "z"), "---\na: [\n", &gateway.replace("NAME", "a")].concat();
    let loaded = read(&[("2", &first), ("1", "x: [\n")]);
    let places: Vec<(String, usize)> = loaded.problems.iter().map(|problem| (problem.file.clone(), problem.line)).collect();
    assert_eq!(places.iter().map(|(file, _)| file.as_str()).collect::<Vec<_>>(), ["2", "2", "2", "1"]);
    assert!(places[0].1 < places[1].1 && places[1].1 < places[2].1);
}

#[test]
fn secrets_are_sealed_and_never_repeated() {
    let text = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  annotations: {kubectl.kubernetes.io/last-applied-configuration: hunter2, keep: me}\ndata: {a: aHVudGVyMg==}\nstringData: {b: hunter2}\n";
    let loaded = read(&[("f", text)]);
    let secret = &loaded.objects.secrets[0].object;
    assert_eq!(secret.expose().data.as_ref().map(|data| data["b"].0.clone()), Some(b"hunter2".to_vec()));
    assert_eq!(secret.expose().string_data, None);
    let shown = format!("{loaded:?}");
    assert!(shown.contains("keys: [\"a\", \"b\"]") && !shown.contains("hunter2") && !shown.contains("104, 117"), "{shown}");
    assert!(!format!("{:?}", secret.expose().metadata).contains("hunter2"));
    for text in ["data: {a: 'hunter2!'}", "data: hunter2", "stringData: {a: [hunter2]}"] {
        let loaded = read(&[("f", &format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\n{text}\n"))]);
        assert_eq!(loaded.problems[0].kind, ProblemKind::Type);
        assert!(!format!("{loaded:?}").contains("hunter2"));
        assert!(texts(&loaded)[0].starts_with("f:4: Secret default/s: "), "{:?}", texts(&loaded));
    }
    let source = Source { name: "f".into(), text: text.into() };
    assert!(!format!("{source:?}").contains("hunter2"));
}

#[test]
fn thousands_of_objects_are_checked_quickly() {
    let started = std::time::Instant::now();
    let text: String = (0..3000)
        .map(|number| format!("---\napiVersion: example.org/v1\nkind: Gateway\nmetadata: {{name: g{number}}}\nspec: {{mode: auto}}\n"))
        .collect();
    let loaded = read(&[("f", &text)]);
    assert_eq!((loaded.objects.len(), loaded.problems.len()), (3000, 0));
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}
