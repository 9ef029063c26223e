//! What a plan would change of what is there: live, last applied by Weir, and new, as `kubectl diff` does it with three of them.

mod three_way;

use std::fmt::Write;

use serde_json::{Value, json};
use weir_api::keys;
use weir_core::dataplane::objects::deployment::TEMPLATE_HASH;

pub use self::three_way::applied;
use crate::pass::Report;

/// Annotations that are Weir's records of the rest: they change with it, and with every cluster's key.
const RECORDS: [&str; 4] = [keys::APPLIED, keys::DECISIONS, TEMPLATE_HASH, crate::record::facts::RECORDED];
/// Metadata that is the server's.
const SERVERS: [&str; 6] = ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"];
/// Lines of context.
const CONTEXT: usize = 3;

/// One object that would change.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// `Kind namespace/name`.
    pub object: String,
    /// What is there; none for an object that would be made.
    pub live: Option<Value>,
    /// What would be there; none for one that would be deleted.
    pub after: Option<Value>,
}

/// Everything that would change, in the order of the plan.
#[must_use]
pub fn changes(report: &Report, live: &[Value]) -> Vec<Change> {
    let mut all = Vec::new();
    for wanted in &report.objects {
        let before = live.iter().find(|object| same(object, wanted));
        let after = before.map_or_else(|| wanted.clone(), |before| applied(before, wanted));
        let (before, after) = (before.map(shown), shown(&after));
        if before.as_ref() != Some(&after) {
            all.push(Change { object: label(wanted), live: before, after: Some(after) });
        }
    }
    for target in &report.deletions {
        let (_, kind) = target.kind.api();
        let of = json!({"kind": kind, "metadata": {"namespace": target.namespace, "name": target.name}});
        if let Some(before) = live.iter().find(|object| same(object, &of)) {
            all.push(Change { object: label(before), live: Some(shown(before)), after: None });
        }
    }
    all
}

impl Change {
    /// A unified diff of both as YAML.
    #[must_use]
    pub fn unified(&self) -> String {
        let text = |value: &Option<Value>| value.as_ref().and_then(|value| serde_saphyr::to_string(value).ok()).unwrap_or_default();
        let (before, after) = (text(&self.live), text(&self.after));
        let name =
            |side: &Option<Value>, word: &str| if side.is_some() { format!("{word} {}", self.object) } else { "/dev/null".to_owned() };
        let diff = similar::TextDiff::from_lines(&before, &after);
        let mut out = String::new();
        let (old, new) = (name(&self.live, "live"), name(&self.after, "planned"));
        let _ = write!(out, "{}", diff.unified_diff().context_radius(CONTEXT).header(&old, &new));
        // Strangers' words do not drive a terminal.
        out.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
    }
}

fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn same(a: &Value, b: &Value) -> bool {
    ["/kind", "/metadata/namespace", "/metadata/name"].iter().all(|path| text(a, path) == text(b, path))
}

fn label(object: &Value) -> String {
    format!("{} {}/{}", text(object, "/kind"), text(object, "/metadata/namespace"), text(object, "/metadata/name"))
}

/// An object as it is shown: without what the server keeps, without our records, and no value of a Secret.
fn shown(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
        if fields.get("kind").and_then(Value::as_str) == Some("Secret") {
            for data in ["data", "stringData"] {
                if let Some(data) = fields.get_mut(data).and_then(Value::as_object_mut) {
                    data.values_mut().for_each(|value| *value = json!("***"));
                }
            }
        }
    }
    if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        SERVERS.iter().for_each(|field| drop(meta.remove(*field)));
        if let Some(annotations) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
            RECORDS.iter().for_each(|key| drop(annotations.remove(*key)));
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
        if meta.get("annotations").and_then(Value::as_object).is_some_and(serde_json::Map::is_empty) {
            meta.remove("annotations");
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(objects: Vec<Value>) -> Report {
        Report { objects, ..Report::default() }
    }

    #[test]
    fn records_of_our_own_are_no_change_and_secrets_are_not_shown() {
        let live = json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"namespace": "a", "name": "b", "uid": "1", "resourceVersion": "7",
            "annotations": {keys::APPLIED: "old"}}, "data": {"tls.key": "a2V5"}});
        let mut wanted = live.clone();
        wanted["metadata"]["annotations"][keys::APPLIED] = json!("new");
        assert_eq!(changes(&report(vec![wanted.clone()]), std::slice::from_ref(&live)), []);
        wanted["metadata"]["labels"] = json!({"x": "y"});
        let [one] = &changes(&report(vec![wanted]), &[live])[..] else { panic!("one change") };
        let diff = one.unified();
        assert!(diff.contains("--- live Secret a/b\n+++ planned Secret a/b\n") && diff.contains("+    x: \"y\"\n"), "{diff}");
        assert!(!diff.contains("a2V5"), "{diff}");
    }

    #[test]
    fn what_is_made_and_what_goes_is_shown_whole() {
        let made =
            json!({"kind": "Service", "apiVersion": "v1", "metadata": {"namespace": "a", "name": "s"}, "spec": {"type": "ClusterIP"}});
        let [one] = &changes(&report(vec![made.clone()]), &[])[..] else { panic!("one change") };
        assert!(one.unified().starts_with("--- /dev/null\n+++ planned Service a/s\n"), "{}", one.unified());
        let target = weir_core::plan::Target {
            kind: weir_core::plan::ChildKind::Service,
            namespace: "a".into(),
            name: "s".into(),
            uid: String::new(),
        };
        let gone = Report { deletions: vec![target], ..Report::default() };
        let [one] = &changes(&gone, &[made])[..] else { panic!("one change") };
        assert!(one.unified().contains("+++ /dev/null\n") && one.unified().contains("-  type: ClusterIP\n"), "{}", one.unified());
    }
}
