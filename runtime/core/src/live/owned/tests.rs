use super::*;
use serde_json::json;

/// A Deployment whose template is partly ours, partly kubectl's and a webhook's, and partly defaults that nobody owns.
fn deployment(ours: Value) -> Deployment {
    let others = [
        json!({"f:spec": {"f:template": {"f:metadata": {"f:annotations": {".": {}, "f:kubectl.kubernetes.io/restartedAt": {}}}}}}),
        json!({"f:spec": {"f:template": {"f:spec": {
            "f:containers": {"k:{\"name\":\"mesh\"}": {".": {}, "f:name": {}, "f:image": {}}},
            "f:volumes": {"k:{\"name\":\"scratch\"}": {"f:emptyDir": {"f:sizeLimit": {}}}},
        }}}}),
    ];
    serde_json::from_value(json!({
        "metadata": {"name": "d", "managedFields": [
            {"manager": "weir", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": ours},
            {"manager": "weir", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}},
            {"manager": "kubectl-rollout", "operation": "Update", "fieldsV1": others[0]},
            {"manager": "mesh", "operation": "Update", "fieldsV1": others[1]},
        ]},
        "spec": {"selector": {}, "template": {
            "metadata": {"labels": {"app": "gw"}, "annotations": {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}},
            "spec": {
                "dnsPolicy": "ClusterFirst",
                "nodeSelector": {"disk": "ssd"},
                "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}],
                "containers": [
                    {"name": "mesh", "image": "mesh:1"},
                    {"name": "proxy", "image": "kong:3.9", "imagePullPolicy": "IfNotPresent", "args": ["a", "b"],
                     "env": [{"name": "B", "value": "1"}, {"name": "INJECTED", "value": "x"},
                             {"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}}],
                     "ports": [{"containerPort": 53, "protocol": "TCP", "name": "t"}, {"containerPort": 53, "protocol": "UDP", "name": "u"}],
                     "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}, {"name": "token", "mountPath": "/token"}],
                     "resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "100m"}}},
                ],
                "volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "token", "emptyDir": {}}],
            },
        }},
    }))
    .unwrap()
}

fn ours() -> Value {
    json!({"f:spec": {"f:replicas": {}, "f:template": {
        "f:metadata": {"f:labels": {"f:app": {}}, "f:annotations": {".": {}}},
        "f:spec": {
            "f:nodeSelector": {},
            "f:tolerations": {},
            "f:containers": {"k:{\"name\":\"proxy\"}": {
                ".": {}, "f:name": {}, "f:image": {}, "f:args": {},
                "f:env": {"k:{\"name\":\"A\"}": {".": {}, "f:name": {}, "f:valueFrom": {"f:fieldRef": {}}}, "k:{\"name\":\"B\"}": {".": {}, "f:name": {}, "f:value": {}}},
                "f:ports": {"k:{\"containerPort\":53,\"protocol\":\"UDP\"}": {".": {}, "f:containerPort": {}, "f:name": {}, "f:protocol": {}}},
                "f:volumeMounts": {"k:{\"mountPath\":\"/scratch\"}": {".": {}, "f:mountPath": {}, "f:name": {}}},
                "f:resources": {"f:limits": {"f:cpu": {}}},
            }},
            "f:volumes": {"k:{\"name\":\"scratch\"}": {".": {}, "f:name": {}, "f:emptyDir": {}}},
        },
    }}})
}

#[test]
fn only_what_we_applied_is_taken() {
    let template = serde_json::to_value(template(&deployment(ours())).unwrap()).unwrap();
    let wanted = json!({
        "metadata": {"labels": {"app": "gw"}, "annotations": {}},
        "spec": {
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}],
            "containers": [{
                "name": "proxy", "image": "kong:3.9", "args": ["a", "b"],
                "env": [{"name": "B", "value": "1"}, {"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}}],
                "ports": [{"containerPort": 53, "protocol": "UDP", "name": "u"}],
                "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
                "resources": {"limits": {"cpu": "2"}},
            }],
            "volumes": [{"name": "scratch", "emptyDir": {}}],
        },
    });
    assert_eq!(template, wanted);
}

#[test]
fn sets_are_taken_by_value() {
    let live = json!({"finalizers": ["a", "b"], "kept": 1});
    let owned = extract(&live, &json!({"f:finalizers": {".": {}, "v:\"b\"": {}, "v:\"gone\"": {}}}), &[]);
    assert_eq!(owned, Some(json!({"finalizers": ["b"]})));
}

#[test]
fn an_element_that_is_gone_is_not_brought_back() {
    let owned = extract(&json!([{"name": "a"}]), &json!({"k:{\"name\":\"b\"}": {".": {}, "f:name": {}}}), &[]);
    assert_eq!(owned, Some(json!([])));
}

#[test]
fn what_is_no_record_of_ours_is_no_answer() {
    for malformed in [
        json!({}),
        json!({"f:spec": {}}),
        json!({"f:spec": {"f:template": 3}}),
        json!({"f:spec": {"f:template": {"spec": {}}}}),
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"i:0": {}}}}}}),
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{name": {}}}}}}),
        json!({"f:spec": {"f:template": {"f:spec": {"f:dnsPolicy": {"f:more": {}}}}}}),
    ] {
        assert_eq!(template(&deployment(malformed.clone())), None, "{malformed}");
    }
    let mut without = deployment(ours());
    without.metadata.managed_fields = None;
    assert_eq!(template(&without), None);
}

#[test]
fn what_an_undone_rollout_brought_back_is_ours() {
    let mut live = deployment(json!({"f:spec": {"f:template": {"f:spec": {"f:nodeSelector": {}}}}}));
    assert!(!is_undone(&live));
    let undo = json!({"manager": "kubectl", "operation": "Update", "fieldsV1": {
        "f:metadata": {"f:annotations": {"f:weir.dev/template-hash": {}}},
        "f:spec": {"f:template": {"f:spec": {"f:volumes": {"k:{\"name\":\"token\"}": {".": {}, "f:name": {}, "f:emptyDir": {}}}}}},
    }});
    let entries = live.metadata.managed_fields.as_mut().unwrap();
    entries.push(serde_json::from_value(undo).unwrap());
    assert!(is_undone(&live));
    let owned = serde_json::to_value(template(&live).unwrap()).unwrap();
    let wanted = json!({"containers": [], "nodeSelector": {"disk": "ssd"}, "volumes": [{"name": "token", "emptyDir": {}}]});
    assert_eq!(owned["spec"], wanted, "ours and theirs, and nobody else's");
    // An apply of somebody else is a claim of their own, and a status is no template.
    let entries = live.metadata.managed_fields.as_mut().unwrap();
    entries.last_mut().unwrap().operation = Some("Apply".into());
    assert!(!is_undone(&live));
    let entries = live.metadata.managed_fields.as_mut().unwrap();
    entries.last_mut().unwrap().operation = Some("Update".into());
    entries.last_mut().unwrap().subresource = Some("scale".into());
    assert!(!is_undone(&live));
}
