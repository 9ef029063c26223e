//! Whether what came of a pass or a question is what was expected. Every miss names the field.

use serde_json::Value;
use weir_core::{
    live,
    plan::Outcome,
    policy::{Finding, SlotName},
};

use crate::{
    calls::Call,
    exit::Exit,
    suite::{Ending, Expect, ExpectCondition, ExpectObject},
};

/// Longest value in a message, characters.
const LONGEST: usize = 400;
/// Fields of one object that are named.
const FIELDS: usize = 12;

impl From<Outcome> for Ending {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Answered => Self::Accepted,
            Outcome::Refused => Self::Refused,
            Outcome::Deadline => Self::Deadline,
            Outcome::Memory => Self::Memory,
            Outcome::Trap => Self::Trap,
            Outcome::Unavailable => Self::Unavailable,
            Outcome::BadOutput => Self::BadOutput,
            Outcome::Incompatible => Self::Incompatible,
        }
    }
}

/// Judges a pass by its report as JSON.
pub(crate) fn pass(expect: &Expect, exit: Exit, output: &Value, calls: &[Call]) -> Vec<String> {
    let mut misses = Misses(Vec::new());
    misses.ending(expect, exit, output);
    let objects = list(output, "objects");
    for wanted in &expect.objects {
        misses.object(wanted, objects);
    }
    for wanted in &expect.none {
        for found in objects.iter().filter(|object| is(object, &wanted.kind, wanted.name.as_deref())) {
            misses.add(format!("{} is written, and must not be", label(found)));
        }
    }
    for wanted in &expect.conditions {
        misses.condition(wanted, list(output, "statuses"));
    }
    misses.findings(expect, list(output, "findings"));
    let said = format!("{} {}", list_text(output, "findings"), list_text(output, "statuses")).replace("\\\"", "\"");
    misses.messages(&expect.messages, &said);
    misses.targets("deletions", &expect.deletions, output);
    misses.targets("takeovers", &expect.takeovers, output);
    let reasons = texts(list(output, "events"), "reason");
    for reason in expect.events.iter().filter(|reason| !reasons.contains(&reason.as_str())) {
        misses.add(format!("no event {reason}; there are {reasons:?}"));
    }
    misses.env(expect, objects);
    misses.logs(expect, calls);
    for (set, field) in [(expect.answer.is_some(), "answer"), (!expect.lacks.is_empty(), "lacks"), (expect.code.is_some(), "code")] {
        if set {
            misses.add(format!("expect.{field} is for questions: name the slot, or write expect.objects"));
        }
    }
    misses.0
}

/// Judges a question.
pub(crate) fn question(expect: &Expect, call: &Call) -> Vec<String> {
    let mut misses = Misses(Vec::new());
    let (wanted, found) = (expect.outcome.unwrap_or(Ending::Accepted), Ending::from(call.outcome));
    if wanted != found {
        let said = call.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
        misses.add(format!("outcome: expected {wanted:?}, found {found:?}{said}"));
    }
    let none = Value::Null;
    let answer = call.answer.as_ref().unwrap_or(&none);
    if let Some(wanted) = &expect.answer {
        misses.differences("answer", answer, wanted);
    }
    for path in &expect.lacks {
        if let Some(found) = answer.pointer(path) {
            misses.add(format!("answer: {path} is there: {}", cut(found)));
        }
    }
    if let Some(code) = expect.code.as_ref().filter(|code| call.code.as_ref() != Some(code)) {
        misses.add(format!("code: expected {code:?}, found {:?}", call.code.as_deref().unwrap_or("none")));
    }
    misses.findings(expect, list(answer, "findings"));
    let said = format!("{} {answer}", call.message.as_deref().unwrap_or_default()).replace("\\\"", "\"");
    misses.messages(&expect.messages, &said);
    misses.logs(expect, std::slice::from_ref(call));
    for (set, field) in [
        (!expect.objects.is_empty(), "objects"),
        (!expect.none.is_empty(), "none"),
        (!expect.conditions.is_empty(), "conditions"),
        (!expect.events.is_empty(), "events"),
        (!expect.env.is_empty(), "env"),
        (!expect.deletions.is_empty(), "deletions"),
        (!expect.takeovers.is_empty(), "takeovers"),
    ] {
        if set {
            misses.add(format!("expect.{field} is for manifests; of a question there is only an answer"));
        }
    }
    misses.0
}

/// Judges settings that were refused, or were not.
pub(crate) fn settings(expect: &Expect, refused: Option<(SlotName, &[Finding])>) -> Vec<String> {
    match (&expect.settings_refused, refused) {
        (None, None) => Vec::new(),
        (Some(_), None) => vec!["the settings are accepted, and must not be".into()],
        (None, Some((slot, findings))) => vec![format!("the policy of {slot} refuses its settings: {}", said(findings))],
        (Some(texts), Some((_, findings))) => {
            let said = said(findings);
            let missing = texts.iter().filter(|text| !said.contains(text.as_str()));
            missing.map(|text| format!("settings: nothing says {text:?}: {said}")).collect()
        }
    }
}

fn said(findings: &[Finding]) -> String {
    findings.iter().map(|f| format!("{} {}", f.path, f.message)).collect::<Vec<_>>().join("; ")
}

struct Misses(Vec<String>);

impl Misses {
    fn add(&mut self, miss: String) {
        self.0.push(miss);
    }

    fn ending(&mut self, expect: &Expect, exit: Exit, output: &Value) {
        let outcomes =
            || list(output, "policies").iter().filter_map(|used| serde_json::from_value::<Outcome>(used.get("outcome")?.clone()).ok());
        let worst = outcomes().map(Ending::from).max().unwrap_or(Ending::Accepted);
        // Without a word about the end everything has to go well.
        let (ending, number) = match (expect.outcome, expect.exit) {
            (None, None) => (Some(Ending::Accepted), Some(0)),
            said => said,
        };
        if let Some(wanted) = ending.filter(|wanted| *wanted != worst) {
            self.add(format!("outcome: expected {wanted:?}, found {worst:?}{}", why(output)));
        }
        if let Some(wanted) = number.filter(|wanted| *wanted != exit.number()) {
            self.add(format!("exit: expected {wanted}, found {}{}", exit.number(), why(output)));
        }
    }

    fn object(&mut self, wanted: &ExpectObject, objects: &[Value]) {
        let named = wanted.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        let found: Vec<&Value> = objects.iter().filter(|object| is(object, &wanted.kind, wanted.name.as_deref())).collect();
        if let Some(count) = wanted.count {
            let have = found.iter().filter(|object| wanted.has.is_null() || live::covers(object, &wanted.has)).count();
            if have != count {
                self.add(format!("{}{named}: expected {count} such object(s), found {have} of {} of the kind", wanted.kind, found.len()));
            }
            return;
        }
        let Some(first) = found.first() else {
            let written: Vec<String> = objects.iter().map(label).collect();
            return self.add(format!("{}{named} is not written; written are {written:?}", wanted.kind));
        };
        let label = label(first);
        if !wanted.has.is_null() {
            self.differences(&label, first, &wanted.has);
        }
        for path in &wanted.lacks {
            if let Some(found) = first.pointer(path) {
                self.add(format!("{label}: {path} is there: {}", cut(found)));
            }
        }
    }

    /// Each differing field by itself.
    fn differences(&mut self, of: &str, found: &Value, wanted: &Value) {
        let all = live::missing(found, wanted);
        for miss in all.iter().take(FIELDS) {
            let path = if miss.path.is_empty() { String::new() } else { format!("{}: ", miss.path) };
            let found = miss.found.as_ref().map_or_else(|| "nothing".to_owned(), cut);
            self.add(format!("{of}: {path}expected {}, found {found}", cut(&miss.wanted)));
        }
        if let Some(more) = all.len().checked_sub(FIELDS).filter(|more| *more > 0) {
            self.add(format!("{of}: {more} more fields differ"));
        }
    }

    fn condition(&mut self, wanted: &ExpectCondition, statuses: &[Value]) {
        let of = |name: &String| statuses.iter().find(|status| status.pointer("/metadata/name").and_then(Value::as_str) == Some(name));
        let status = wanted.object.as_ref().map_or_else(|| statuses.first(), of);
        let Some(status) = status else {
            return self.add(format!("condition {}: no object {:?} has a status", wanted.type_, wanted.object.as_deref().unwrap_or("")));
        };
        let label = label(status);
        let conditions = status.pointer("/status/conditions").and_then(Value::as_array);
        let Some(found) = conditions.into_iter().flatten().find(|c| text(c, "type") == wanted.type_) else {
            if wanted.status != "Absent" {
                self.add(format!("{label}: condition {}: expected {}, found nothing", wanted.type_, wanted.status));
            }
            return;
        };
        let mut miss = |field: &str, wanted_text: &str| {
            self.0.push(format!("{label}: condition {}: {field}: expected {wanted_text:?}, found {:?}", wanted.type_, text(found, field)));
        };
        if text(found, "status") != wanted.status {
            miss("status", &wanted.status);
        }
        if let Some(reason) = wanted.reason.as_ref().filter(|reason| text(found, "reason") != **reason) {
            miss("reason", reason);
        }
        if let Some(message) = wanted.message.as_ref().filter(|message| !text(found, "message").contains(message.as_str())) {
            miss("message", message);
        }
    }

    fn findings(&mut self, expect: &Expect, findings: &[Value]) {
        let codes = texts(findings, "code");
        for code in expect.findings.iter().filter(|code| !codes.contains(&code.as_str())) {
            self.add(format!("no finding {code}; there are {codes:?}"));
        }
        for code in expect.no_findings.iter().filter(|code| codes.contains(&code.as_str())) {
            self.add(format!("there is a finding {code}, and must not be"));
        }
    }

    fn messages(&mut self, wanted: &[String], said: &str) {
        for message in wanted.iter().filter(|message| !said.contains(message.as_str())) {
            self.add(format!("nothing says {message:?}: {}", shorten(said)));
        }
    }

    fn targets(&mut self, field: &str, wanted: &[String], output: &Value) {
        let found: Vec<String> =
            list(output, field).iter().map(|target| format!("{} {}", text(target, "kind"), text(target, "name"))).collect();
        if found != *wanted {
            self.add(format!("{field}: expected {wanted:?}, found {found:?}"));
        }
    }

    fn env(&mut self, expect: &Expect, objects: &[Value]) {
        if expect.env.is_empty() {
            return;
        }
        let deployment = objects.iter().find(|object| is(object, "Deployment", None));
        let containers = deployment.and_then(|d| d.pointer("/spec/template/spec/containers")).and_then(Value::as_array);
        let Some(proxy) = containers.and_then(|all| all.iter().find(|container| text(container, "name") == "proxy")) else {
            return self.add("env: no Deployment with a proxy container is written".into());
        };
        for (name, wanted) in &expect.env {
            let found: Vec<&Value> = list(proxy, "env").iter().filter(|variable| text(variable, "name") == *name).collect();
            match (wanted, found.as_slice()) {
                (None, []) => {}
                (Some(value), [one]) if text(one, "value") == *value && one.get("value").is_some() => {}
                (None, [one, ..]) => self.add(format!("env {name}: expected nothing, found {}", cut(one))),
                (Some(value), []) => self.add(format!("env {name}: expected {value:?}, found nothing")),
                (Some(value), [one]) => self.add(format!("env {name}: expected {value:?}, found {}", cut(one.get("value").unwrap_or(one)))),
                (Some(_), [_, ..]) => self.add(format!("env {name} is there {} times", found.len())),
            }
        }
    }

    fn logs(&mut self, expect: &Expect, calls: &[Call]) {
        for wanted in &expect.logs {
            let mut lines = calls.iter().flat_map(|call| &call.usage.lines);
            if !lines.any(|line| line.text.contains(wanted.as_str())) {
                self.add(format!("no log line has {wanted:?}"));
            }
        }
    }
}

/// What findings and conditions say, for somebody who did not expect it.
fn why(output: &Value) -> String {
    let messages = texts(list(output, "findings"), "message");
    let said: Vec<String> = messages.iter().take(3).map(|message| shorten(message)).collect();
    if said.is_empty() { String::new() } else { format!(": {}", said.join("; ")) }
}

fn is(object: &Value, kind: &str, name: Option<&str>) -> bool {
    text(object, "kind") == kind && name.is_none_or(|name| object.pointer("/metadata/name").and_then(Value::as_str) == Some(name))
}

/// `Kind namespace/name`.
pub(crate) fn label(object: &Value) -> String {
    let meta = |field: &str| object.pointer(&format!("/metadata/{field}")).and_then(Value::as_str).unwrap_or_default();
    format!("{} {}/{}", text(object, "kind"), meta("namespace"), meta("name"))
}

fn list<'a>(of: &'a Value, field: &str) -> &'a [Value] {
    of.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn list_text(of: &Value, field: &str) -> String {
    of.get(field).map(ToString::to_string).unwrap_or_default()
}

fn text<'a>(of: &'a Value, field: &str) -> &'a str {
    of.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn texts<'a>(of: &'a [Value], field: &str) -> Vec<&'a str> {
    of.iter().filter_map(|one| one.get(field)?.as_str()).collect()
}

fn cut(value: &Value) -> String {
    shorten(&value.to_string())
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn expect(value: Value) -> Expect {
        serde_json::from_value(value).unwrap()
    }

    fn output() -> Value {
        json!({
            "objects": [
                {"kind": "Deployment", "metadata": {"namespace": "a", "name": "d"}, "spec": {"replicas": 2, "template": {"spec": {"containers": [
                    {"name": "proxy", "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {}}]}]}}}},
                {"kind": "Service", "metadata": {"namespace": "a", "name": "s"}},
                {"kind": "Service", "metadata": {"namespace": "a", "name": "t"}},
            ],
            "statuses": [{"kind": "DataPlane", "metadata": {"namespace": "a", "name": "g"}, "status": {"conditions": [
                {"type": "Ready", "status": "False", "reason": "Waiting", "message": "it waits for pods"}]}}],
            "events": [{"reason": "Created"}],
            "findings": [{"code": "Odd", "message": "an \"odd\" thing"}],
            "policies": [{"outcome": "Answered"}, {"outcome": "Refused"}],
            "deletions": [{"kind": "Secret", "name": "old"}],
        })
    }

    #[test]
    fn what_is_expected_is_no_miss() {
        let good = json!({
            "outcome": "refused", "exit": 1,
            "objects": [{"kind": "Deployment", "has": {"spec": {"replicas": 2}}, "lacks": ["/spec/paused"]}, {"kind": "Service", "count": 2}],
            "none": ["Secret", {"kind": "Service", "name": "u"}],
            "conditions": [{"type": "Ready", "status": "False", "reason": "Waiting", "message": "pods"}, {"type": "Held", "status": "Absent"}],
            "findings": ["Odd"], "noFindings": ["Even"], "messages": ["an \"odd\" thing", "waits"], "events": ["Created"],
            "env": {"A": "1", "C": null}, "deletions": ["Secret old"],
        });
        assert_eq!(pass(&expect(good), Exit::Held, &output(), &[]), Vec::<String>::new());
    }

    #[test]
    fn every_miss_names_what_differs() {
        for (wanted, said) in [
            (json!({}), "outcome: expected Accepted, found Refused: an \"odd\" thing"),
            (json!({"exit": 0}), "exit: expected 0, found 1"),
            (
                json!({"objects": [{"kind": "Deployment", "has": {"spec": {"replicas": 3}}}]}),
                "Deployment a/d: spec.replicas: expected 3, found 2",
            ),
            (json!({"objects": [{"kind": "Deployment", "lacks": ["/spec/replicas"]}]}), "Deployment a/d: /spec/replicas is there: 2"),
            (json!({"objects": [{"kind": "Job"}]}), "Job is not written; written are"),
            (json!({"objects": [{"kind": "Service", "count": 1}]}), "Service: expected 1 such object(s), found 2"),
            (json!({"none": [{"kind": "Service", "name": "s"}]}), "Service a/s is written, and must not be"),
            (
                json!({"conditions": [{"type": "Ready", "status": "True"}]}),
                "DataPlane a/g: condition Ready: status: expected \"True\", found \"False\"",
            ),
            (
                json!({"conditions": [{"type": "Ready", "status": "False", "message": "x"}]}),
                "message: expected \"x\", found \"it waits for pods\"",
            ),
            (json!({"conditions": [{"type": "New", "status": "True"}]}), "condition New: expected True, found nothing"),
            (json!({"findings": ["None"]}), "no finding None; there are [\"Odd\"]"),
            (json!({"noFindings": ["Odd"]}), "there is a finding Odd"),
            (json!({"messages": ["nobody"]}), "nothing says \"nobody\""),
            (json!({"events": ["Gone"]}), "no event Gone"),
            (json!({"deletions": []}), "deletions: expected [], found [\"Secret old\"]"),
            (json!({"env": {"A": "2"}}), "env A: expected \"2\", found \"1\""),
            (json!({"env": {"B": ""}}), "env B: expected \"\", found"),
            (json!({"env": {"A": null}}), "env A: expected nothing, found"),
            (json!({"logs": ["x"]}), "no log line has \"x\""),
            (json!({"answer": {}}), "expect.answer is for questions"),
        ] {
            let mut of = expect(wanted.clone());
            if wanted != json!({}) && wanted.get("exit").is_none() {
                of.exit = Some(1);
            }
            if wanted.get("deletions").is_none() {
                of.deletions = vec!["Secret old".into()];
            }
            let misses = pass(&of, Exit::Held, &output(), &[]);
            assert!(misses.iter().any(|miss| miss.contains(said)), "{wanted}: {misses:?}");
        }
    }
}
