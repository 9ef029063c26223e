use serde_json::{Value, json};
use weir_api::reconcile_policy::{Mode, PolicySlot, ReconcilePolicy};

use super::{Entry, ObjectKind, Selection, Subject, select};
use crate::policy::{Pairs, SlotName};

const OPERATOR: &str = "weir-system";
const SLOT: SlotName = SlotName::KonnectEnv;

/// A policy of the operator's namespace or of `team`, of an hour of one day.
fn entry(namespace: &str, name: &str, priority: i32, hour: Option<i64>) -> Entry {
    let spec = json!({"slot": "KonnectEnv", "source": {"builtin": {}}, "priority": priority});
    let mut entry = Entry::new(&policy(namespace, name, &spec), true).unwrap();
    entry.created = hour.map(|hour| jiff::Timestamp::from_second(1_767_225_600 + 3600 * hour).unwrap());
    entry
}

fn policy(namespace: &str, name: &str, spec: &Value) -> ReconcilePolicy {
    let policy = json!({
        "apiVersion": "weir.dev/v1alpha1", "kind": "ReconcilePolicy",
        "metadata": {"namespace": namespace, "name": name, "uid": format!("uid-{namespace}-{name}")}, "spec": spec,
    });
    serde_json::from_value(policy).unwrap()
}

fn pairs(pairs: &[(&str, &str)]) -> Pairs {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Asks about a DataPlane without labels in namespace `team`.
fn about_team(entries: &[Entry], tenants: bool) -> Selection<'_> {
    let none = Pairs::new();
    let subject = Subject { kind: ObjectKind::DataPlane, namespace: "team", name: "edge", labels: &none, namespace_labels: &none };
    select(entries, SLOT, &subject, OPERATOR, tenants)
}

fn name(entry: &Entry) -> String {
    format!("{}/{}", entry.key.0, entry.key.1)
}

/// The selection by names: winner, losers with their reasons, ambiguous ones, shadows.
fn said(selection: &Selection<'_>) -> (Option<String>, Vec<String>, Vec<String>, Vec<String>) {
    let losers = selection.losers.iter().map(|(entry, reason)| format!("{}: {reason}", name(entry)));
    let names = |entries: &[&Entry]| entries.iter().map(|e| name(e)).collect();
    (selection.winner.map(name), losers.collect(), names(&selection.ambiguous), names(&selection.shadows))
}

fn winner(entries: &[Entry]) -> String {
    about_team(entries, true).winner.map(name).unwrap_or_default()
}

/// What the losers are told.
fn reasons(entries: &[Entry]) -> Vec<String> {
    said(&about_team(entries, true)).1
}

#[test]
fn the_operators_policies_serve_every_namespace_and_others_their_own() {
    for (namespace, tenants, serves) in [
        (OPERATOR, true, true),
        (OPERATOR, false, true),
        ("team", true, true),
        ("team", false, false),
        ("another", true, false),
        ("another", false, false),
    ] {
        let entries = [entry(namespace, "a", 0, None)];
        let selection = about_team(&entries, tenants);
        assert_eq!(selection.winner.is_some(), serves, "{namespace} {tenants}");
        let told = said(&selection).1;
        if namespace == "team" && !tenants {
            assert_eq!(told, ["team/a: the built-in policy answers: policies outside of the operator's namespace are not allowed here"]);
        } else {
            assert_eq!(told, [] as [&str; 0]);
        }
    }
}

#[test]
fn nobody_is_selected_where_nobody_is() {
    assert_eq!(about_team(&[], true), Selection::default());
}

#[test]
fn targets_select_by_both_labels() {
    let spec = |targets: Value| json!({"slot": "KonnectEnv", "source": {"builtin": {}}, "targets": targets});
    let (prod, edge) = (json!({"matchLabels": {"stage": "prod"}}), json!({"matchLabels": {"tier": "edge"}}));
    for (targets, namespace, object, serves) in [
        (json!({}), pairs(&[]), pairs(&[]), true),
        (json!({"namespaceSelector": prod}), pairs(&[("stage", "prod")]), pairs(&[]), true),
        (json!({"namespaceSelector": prod}), pairs(&[("stage", "dev")]), pairs(&[("stage", "prod")]), false),
        (json!({"selector": edge}), pairs(&[]), pairs(&[("tier", "edge")]), true),
        (json!({"selector": edge}), pairs(&[("tier", "edge")]), pairs(&[]), false),
        (json!({"namespaceSelector": prod, "selector": edge}), pairs(&[("stage", "prod")]), pairs(&[]), false),
        (json!({"namespaceSelector": prod, "selector": edge}), pairs(&[("stage", "prod")]), pairs(&[("tier", "edge")]), true),
    ] {
        for from in [OPERATOR, "team"] {
            let entries = [Entry::new(&policy(from, "a", &spec(targets.clone())), true).unwrap()];
            let subject =
                Subject { kind: ObjectKind::DataPlane, namespace: "team", name: "edge", labels: &object, namespace_labels: &namespace };
            let selection = select(&entries, SLOT, &subject, OPERATOR, true);
            assert_eq!(selection.winner.is_some(), serves, "{from} {targets} {namespace:?} {object:?}");
            assert!(selection.losers.is_empty(), "who is not for the object loses nothing");
        }
    }
}

#[test]
fn each_slot_is_asked_about_its_kind() {
    let none = Pairs::new();
    for (slot, kind, asked) in [
        (PolicySlot::KonnectEnv, ObjectKind::DataPlane, true),
        (PolicySlot::KonnectEnv, ObjectKind::PluginInstallation, false),
        (PolicySlot::ConflictResolution, ObjectKind::DataPlane, true),
        (PolicySlot::ConflictResolution, ObjectKind::PluginInstallation, true),
        (PolicySlot::PluginPackaging, ObjectKind::DataPlane, false),
        (PolicySlot::PluginPackaging, ObjectKind::PluginInstallation, true),
        (PolicySlot::ObjectHook, ObjectKind::DataPlane, true),
        (PolicySlot::ObjectHook, ObjectKind::PluginInstallation, false),
    ] {
        let entries = [Entry::new(&policy(OPERATOR, "a", &json!({"slot": slot, "source": {"builtin": {}}})), true).unwrap()];
        let subject = Subject { kind, namespace: "team", name: "x", labels: &none, namespace_labels: &none };
        for of in SlotName::ALL {
            let selection = select(&entries, of, &subject, OPERATOR, true);
            let answers = selection.winner.is_some() || !selection.chain.is_empty();
            assert_eq!(answers, asked && of == SlotName::of(slot), "{slot:?} {kind:?} {of}");
        }
    }
}

#[test]
fn hooks_are_a_chain_in_the_order_of_their_names() {
    let hook = |namespace: &str, name: &str, more: Value| {
        let mut spec = json!({"slot": "ObjectHook", "source": {"builtin": {}}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Entry::new(&policy(namespace, name, &spec), true).unwrap()
    };
    let none = Pairs::new();
    let subject = Subject { kind: ObjectKind::DataPlane, namespace: "team", name: "x", labels: &none, namespace_labels: &none };
    let chain = |entries: &[Entry]| {
        let selection = select(entries, SlotName::ObjectHook, &subject, OPERATOR, true);
        assert_eq!((selection.winner, selection.ambiguous.len()), (None, 0));
        let names: Vec<String> = selection.chain.iter().map(|e| format!("{}/{}", e.key.0, e.key.1)).collect();
        let losers: Vec<String> = selection.losers.iter().map(|(e, reason)| format!("{}: {reason}", e.key.1)).collect();
        (names, losers)
    };
    let open = json!({"allowOverride": true});
    let mut entries =
        vec![hook(OPERATOR, "c", json!({"allowOverride": true, "priority": 9})), hook("team", "b", json!({})), hook(OPERATOR, "a", open)];
    let expected = vec![format!("{OPERATOR}/a"), "team/b".into(), format!("{OPERATOR}/c")];
    for entries in orders(&entries) {
        assert_eq!(chain(&entries), (expected.clone(), vec![]), "priority does not matter");
    }
    entries.push(hook(OPERATOR, "d", json!({})));
    let (names, losers) = chain(&entries);
    assert_eq!(names, [format!("{OPERATOR}/a"), format!("{OPERATOR}/c"), format!("{OPERATOR}/d")]);
    assert_eq!(losers, ["b: a hook of the operator's namespace does not say allowOverride"]);
    let many: Vec<Entry> = (0..20).map(|n| hook(OPERATOR, &format!("h{n:02}"), json!({}))).collect();
    let (names, losers) = chain(&many);
    assert_eq!((names.len(), losers.len()), (16, 4));
    assert_eq!(losers[0], "h16: 16 hooks whose names come first are asked already");
}

#[test]
fn priority_then_age_then_name() {
    let old = || entry(OPERATOR, "z-old", 0, Some(1));
    let young = || entry(OPERATOR, "a-young", 0, Some(2));
    let high = || entry(OPERATOR, "high", 5, Some(3));
    let unborn = || entry(OPERATOR, "a-unborn", 0, None);
    let answers = |who: &str| format!("ReconcilePolicy {OPERATOR}/{who} answers:");
    for (entries, expected, told) in [
        (vec![old(), high()], "high", format!("z-old: {} its priority 5 is higher than 0", answers("high"))),
        (vec![young(), old()], "z-old", format!("a-young: {} both have priority 0, and it is older", answers("z-old"))),
        (vec![unborn(), old()], "z-old", format!("a-unborn: {} both have priority 0, and it is older", answers("z-old"))),
        (
            vec![entry(OPERATOR, "b", 0, Some(1)), entry(OPERATOR, "a", 0, Some(1))],
            "a",
            format!("b: {} both have priority 0 and are equally old, and its name comes first", answers("a")),
        ),
        (
            vec![entry(OPERATOR, "low", -1, Some(1)), young()],
            "a-young",
            format!("low: {} its priority 0 is higher than -1", answers("a-young")),
        ),
    ] {
        assert_eq!((winner(&entries), reasons(&entries)), (format!("{OPERATOR}/{expected}"), vec![format!("{OPERATOR}/{told}")]));
    }
}

#[test]
fn tenants_compete_only_where_the_operators_best_lets_them() {
    let open = |priority| Entry { allow_override: true, ..entry(OPERATOR, "open", priority, Some(1)) };
    let closed = |priority| entry(OPERATOR, "closed", priority, Some(1));
    let tenant = |priority| entry("team", "own", priority, Some(2));
    for (entries, expected) in [
        (vec![closed(0), tenant(100)], "weir-system/closed"),
        (vec![open(0), tenant(1)], "team/own"),
        (vec![open(0), tenant(0)], "weir-system/open"),
        (vec![open(2), tenant(1)], "weir-system/open"),
        // The best one of the operator's has the word.
        (vec![open(5), closed(0), tenant(10)], "team/own"),
        (vec![open(0), closed(5), tenant(10)], "weir-system/closed"),
        // A word of a tenant about itself is none.
        (vec![closed(0), Entry { allow_override: true, ..tenant(100) }], "weir-system/closed"),
    ] {
        assert_eq!(winner(&entries), expected, "{:?}", entries.iter().map(name).collect::<Vec<_>>());
    }
    let entries = [closed(0), tenant(100)];
    let told = "ReconcilePolicy weir-system/closed answers: it is of the operator's namespace and does not say allowOverride";
    assert_eq!(reasons(&entries), [format!("team/own: {told}")]);
    assert_eq!(about_team(&entries, true).ambiguous, [] as [&Entry; 0]);
}

#[test]
fn ties_in_priority_are_ambiguous() {
    let open = |name, hour| Entry { allow_override: true, ..entry(OPERATOR, name, 3, Some(hour)) };
    for (entries, expected) in [
        (vec![entry(OPERATOR, "a", 3, Some(1)), entry(OPERATOR, "b", 2, Some(2)), entry(OPERATOR, "c", 2, Some(3))], vec![]),
        (vec![entry(OPERATOR, "a", 3, Some(2)), entry(OPERATOR, "b", 3, Some(1))], vec!["weir-system/b", "weir-system/a"]),
        (vec![open("a", 2), entry("team", "b", 3, Some(1))], vec!["team/b", "weir-system/a"]),
        // Nothing had to be decided between these.
        (vec![entry(OPERATOR, "a", 3, Some(2)), entry("team", "b", 3, Some(1))], vec![]),
    ] {
        let tied: Vec<String> = about_team(&entries, true).ambiguous.into_iter().map(name).collect();
        assert_eq!(tied, expected);
    }
}

#[test]
fn who_was_never_active_takes_nobodys_place() {
    let entries = [Entry { usable: false, ..entry(OPERATOR, "new", 9, Some(2)) }, entry("team", "old", 0, Some(1))];
    assert_eq!(winner(&entries), "team/old");
    assert_eq!(reasons(&entries), ["weir-system/new: ReconcilePolicy team/old answers: no revision of this one was ever active"]);
    assert_eq!(about_team(&entries[..1], true).winner, None);
}

#[test]
fn shadows_are_beside_the_selection_and_two_at_most() {
    let shadow = |namespace, name, priority| Entry { mode: Mode::Shadow, ..entry(namespace, name, priority, Some(1)) };
    let entries = [shadow("team", "t", 9), shadow(OPERATOR, "a", 1), shadow(OPERATOR, "b", 2), entry(OPERATOR, "real", 0, Some(2))];
    let (winner, losers, ambiguous, shadows) = said(&about_team(&entries, true));
    assert_eq!((winner.as_deref(), ambiguous.len()), (Some("weir-system/real"), 0));
    assert_eq!(shadows, ["weir-system/b", "weir-system/a"]);
    assert_eq!(losers, ["team/t: ReconcilePolicy weir-system/real answers: 2 other shadows are asked beside it already"]);
    let alone = about_team(&entries[..1], true);
    assert_eq!((alone.winner, alone.shadows.len()), (None, 1));
    assert_eq!(about_team(&entries[..1], false).shadows.len(), 0);
}

#[test]
fn a_policy_that_can_never_answer_says_which_field() {
    let new = |spec: Value| Entry::new(&policy("team", "a", &spec), true).unwrap_err();
    let expression = json!({"matchExpressions": [{"key": "a", "operator": "Is", "values": ["b"]}]});
    for field in ["namespaceSelector", "selector"] {
        let error = new(json!({"slot": "KonnectEnv", "source": {"builtin": {}}, "targets": {field: expression}}));
        let expected = format!("spec.targets.{field}.matchExpressions[0].operator: \"Is\" is no operator");
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
}

/// All orders of these.
fn orders(entries: &[Entry]) -> Vec<Vec<Entry>> {
    if entries.len() < 2 {
        return vec![entries.to_vec()];
    }
    let mut all = Vec::new();
    for index in 0..entries.len() {
        let mut rest = entries.to_vec();
        let first = rest.remove(index);
        all.extend(orders(&rest).into_iter().map(|mut order| {
            order.insert(0, first.clone());
            order
        }));
    }
    all
}

/// Every sort of policy there is: place, priority, age, word, mode, and whether it was ever active.
fn every_sort() -> Vec<Entry> {
    let mut all = Vec::new();
    for (namespace, allow_override) in [(OPERATOR, false), (OPERATOR, true), ("team", false)] {
        for (priority, hour) in [(0, Some(1)), (0, Some(2)), (1, Some(1)), (1, None)] {
            let entry = Entry { allow_override, ..entry(namespace, &format!("p{}", all.len()), priority, hour) };
            all.push(entry);
        }
        let last = all.last().unwrap().clone();
        all.push(Entry { mode: Mode::Shadow, key: (namespace.into(), format!("p{}", all.len())), ..last.clone() });
        all.push(Entry { usable: false, key: (namespace.into(), format!("p{}", all.len())), ..last });
    }
    all
}

/// Every three of every sort, in every order: the order never matters, and what is selected is right.
#[test]
fn the_order_of_entries_never_matters() {
    let all = every_sort();
    for (i, a) in all.iter().enumerate() {
        for (j, b) in all.iter().enumerate().skip(i + 1) {
            for c in all.iter().skip(j + 1) {
                let entries = [a.clone(), b.clone(), c.clone()];
                for tenants in [true, false] {
                    let expected = about_team(&entries, tenants);
                    holds(&entries, &expected, tenants);
                    for order in orders(&entries) {
                        assert_eq!(said(&about_team(&order, tenants)), said(&expected), "{order:?}");
                    }
                }
            }
        }
    }
}

fn holds(entries: &[Entry], selection: &Selection<'_>, tenants: bool) {
    let told = selection.winner.iter().count() + selection.losers.len() + selection.shadows.len();
    assert_eq!(told, entries.len(), "everybody hears once: {entries:?}");
    assert!(selection.shadows.iter().all(|e| e.mode == Mode::Shadow && e.usable));
    let can = |e: &&Entry| e.mode == Mode::Enforce && e.usable && (tenants || e.key.0 == OPERATOR);
    let Some(winner) = selection.winner else {
        assert_eq!(entries.iter().filter(can).count(), 0, "{entries:?}");
        return;
    };
    assert!(can(&winner));
    let best = entries.iter().filter(can).filter(|e| e.key.0 == OPERATOR).map(|e| e.priority).max();
    let beats = |e: &Entry| e.priority > winner.priority && (e.key.0 == OPERATOR || winner.key.0 != OPERATOR || winner.allow_override);
    assert!(!entries.iter().filter(can).any(beats), "{entries:?}");
    assert!(winner.key.0 == OPERATOR || best.is_none_or(|best| best <= winner.priority), "{entries:?}");
}
