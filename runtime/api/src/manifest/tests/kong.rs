//! The CRDs this project ships.

use super::*;

fn read_kong(text: &str) -> Loaded {
    let schemas = Schemas::new(&crate::crds::all()).unwrap();
    load(vec![Source { name: "f".into(), text: text.to_owned() }], &schemas, "kong")
}

#[test]
fn shipped_kinds_are_typed() {
    let text = "
apiVersion: gateway-operator.konghq.com/v1beta1
kind: DataPlane
metadata: {name: gw, creationTimestamp: null}
spec:
  deployment:
    replicas: 2
    podTemplateSpec:
      metadata: {creationTimestamp: null}
      spec:
        containers:
        - name: proxy
          image: kong/kong-gateway:3.12
          resources: {requests: {cpu: 1, memory: 1Gi}}
          readinessProbe: {httpGet: {path: /status, port: 8100}}
---
apiVersion: gateway-operator.konghq.com/v1alpha1
kind: KongPluginInstallation
metadata: {name: plugin}
spec: {image: example.org/plugin:1}
";
    let loaded = read_kong(text);
    assert_eq!(loaded.problems, []);
    assert_eq!((loaded.objects.data_planes.len(), loaded.objects.plugin_installations.len(), loaded.objects.len()), (1, 1, 2));
    assert_eq!(loaded.objects.data_planes[0].object.metadata.namespace.as_deref(), Some("kong"));
}

#[test]
fn shipped_kinds_refuse_unknown_fields() {
    let text =
        "apiVersion: gateway-operator.konghq.com/v1beta1\nkind: DataPlane\nmetadata: {name: gw}\nspec:\n  deployment:\n    replica: 2\n";
    let loaded = read_kong(text);
    assert!(loaded.objects.is_empty());
    assert!(
        loaded.problems.iter().any(|problem| {
            problem
                .to_string()
                .starts_with("f:6: DataPlane kong/gw: spec.deployment.replica: unknown field `replica`: did you mean `replicas`?")
        }),
        "{:?}",
        loaded.problems
    );
}
