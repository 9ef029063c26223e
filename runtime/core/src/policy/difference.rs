//! How the answer of a shadow differs from the one in force, in names of fields. No value of an answer is in it: some come from what the owner
//! of an object wrote, and nobody can tell which of those is a secret.

use serde_json::Value;

use super::{PolicyError, Slot, limits};

/// Fields that are named; the others are counted.
const MOST: usize = 8;

/// What differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// Both answer, and these fields are not the same.
    Fields {
        /// The first of them, such as `env[KONG_ROLE].value`.
        paths: Vec<String>,
        /// How many others.
        more: usize,
    },
    /// It answers, where the policy in force refuses or gives no answer.
    Answers,
    /// It refuses with this code, where the policy in force does not.
    Refuses(String),
    /// It gives no answer: the name of a [`PolicyError`].
    Fails(&'static str),
}

/// Reason of a condition, of an event, and label of a metric; the gravest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grade {
    /// It says something else.
    Differs,
    /// It refuses.
    Refuses,
    /// It gives no answer.
    Fails,
}

impl Grade {
    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Differs => "Differs",
            Self::Refuses => "Refuses",
            Self::Fails => "Fails",
        }
    }
}

impl Difference {
    /// How grave it is.
    #[must_use]
    pub fn grade(&self) -> Grade {
        match self {
            Self::Fields { paths: _, more: _ } | Self::Answers => Grade::Differs,
            Self::Refuses(_) => Grade::Refuses,
            Self::Fails(_) => Grade::Fails,
        }
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fields { paths, more: 0 } => write!(f, "it says something else about {}", paths.join(", ")),
            Self::Fields { paths, more } => write!(f, "it says something else about {} and {more} more fields", paths.join(", ")),
            Self::Answers => f.write_str("it answers, where the policy in force does not"),
            Self::Refuses(code) => write!(f, "it refuses ({code}), where the policy in force does not"),
            Self::Fails(reason) => write!(f, "it gives no answer ({reason})"),
        }
    }
}

/// Compares what a shadow said with what the policy in force said to the same question; none where they agree. Two refusals agree, whatever
/// their words.
pub fn between<S: Slot>(
    input: &S::Input,
    shadow: &Result<S::Answer, PolicyError>,
    in_force: &Result<S::Answer, PolicyError>,
) -> Option<Difference> {
    match (shadow, in_force) {
        (Ok(new), Ok(now)) if new == now => None,
        (Ok(new), Ok(now)) => Some(fields(&S::document(input, new), &S::document(input, now))),
        (Err(PolicyError::Refused(_)), Err(PolicyError::Refused(_))) => None,
        (Ok(_), Err(_)) => Some(Difference::Answers),
        (Err(PolicyError::Refused(refusal)), _) => Some(Difference::Refuses(limits::cut(&refusal.code))),
        (Err(error), _) => Some(Difference::Fails(error.reason())),
    }
}

fn fields(new: &Value, now: &Value) -> Difference {
    let mut found = Found::default();
    found.walk("", new, now);
    Difference::Fields { more: found.count.saturating_sub(found.paths.len()), paths: found.paths }
}

#[derive(Default)]
struct Found {
    paths: Vec<String>,
    count: usize,
}

impl Found {
    fn add(&mut self, path: &str) {
        self.count = self.count.saturating_add(1);
        if self.paths.len() < MOST {
            self.paths.push(path.to_owned());
        }
    }

    /// As deep as the answers of a slot are.
    fn walk(&mut self, path: &str, new: &Value, now: &Value) {
        match (new, now) {
            (new, now) if new == now => {}
            (Value::Object(new), Value::Object(now)) => {
                let keys = new.keys().chain(now.keys().filter(|key| !new.contains_key(*key)));
                for key in keys {
                    let key_path = if path.is_empty() { limits::cut(key) } else { format!("{path}.{}", limits::cut(key)) };
                    self.one(&key_path, new.get(key), now.get(key));
                }
            }
            (Value::Array(new), Value::Array(now)) => self.list(path, new, now),
            (_, _) => self.add(path),
        }
    }

    fn one(&mut self, path: &str, new: Option<&Value>, now: Option<&Value>) {
        match (new, now) {
            (Some(new), Some(now)) => self.walk(path, new, now),
            (Some(_), None) | (None, Some(_)) => self.add(path),
            (None, None) => {}
        }
    }

    /// Elements with a name are compared by it; where all are the same, their order is what differs.
    fn list(&mut self, path: &str, new: &[Value], now: &[Value]) {
        let before = self.count;
        match (names(new), names(now)) {
            (Some(new_names), Some(now_names)) => {
                let find = |names: &[&str], values: &[Value], name: &str| {
                    names.iter().position(|n| *n == name).and_then(|place| values.get(place)).cloned()
                };
                let others = now_names.iter().filter(|name| !new_names.contains(name));
                for name in new_names.iter().chain(others) {
                    let (left, right) = (find(&new_names, new, name), find(&now_names, now, name));
                    self.one(&format!("{path}[{}]", limits::cut(name)), left.as_ref(), right.as_ref());
                }
            }
            (_, _) => {
                for index in 0..new.len().max(now.len()) {
                    self.one(&format!("{path}[{index}]"), new.get(index), now.get(index));
                }
            }
        }
        if self.count == before {
            self.add(path);
        }
    }
}

/// What tells the elements of a list apart; none where something has no name, or two have the same.
fn names(values: &[Value]) -> Option<Vec<&str>> {
    let name = |value: &Value| {
        let key = ["name", "mountPath", "target"].into_iter().find(|key| value.get(key).is_some_and(Value::is_string))?;
        Some(key)
    };
    let names: Vec<&str> = values.iter().map(|value| value.get(name(value)?)?.as_str()).collect::<Option<_>>()?;
    let unique: std::collections::BTreeSet<&str> = names.iter().copied().collect();
    (unique.len() == names.len()).then_some(names)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::{
            ConflictResolution, Context, KonnectEnv, Refusal,
            conflict_resolution::{self, Claim, ClaimValue, Conflict, Origin, Resolution, SubjectKind, Verdict},
            konnect_env,
        },
        *,
    };

    fn paths(new: &Value, now: &Value) -> String {
        fields(new, now).to_string()
    }

    #[test]
    fn a_difference_is_named_by_its_field_and_never_by_a_value() {
        let now = json!({"env": [{"name": "A", "value": "s3cret"}, {"name": "B", "value": "2"}], "mounts": [{"mountPath": "/a", "volume": "v"}], "path": null});
        for (new, expected) in [
            (json!({"env": [{"name": "A", "value": "other"}, {"name": "B", "value": "2"}]}), "env[A].value, mounts, path"),
            (
                json!({"env": [{"name": "B", "value": "2"}], "mounts": [{"mountPath": "/b", "volume": "v"}], "path": "/x"}),
                "env[A], mounts[/b], mounts[/a], path",
            ),
            (
                json!({"env": [{"name": "B", "value": "2"}, {"name": "A", "value": "s3cret"}], "mounts": [{"mountPath": "/a", "volume": "v"}], "path": null}),
                "env",
            ),
        ] {
            let text = paths(&new, &now);
            assert_eq!(text, format!("it says something else about {expected}"));
            assert!(!text.contains("s3cret") && !text.contains("other"));
        }
    }

    #[test]
    fn elements_without_a_name_are_told_by_their_place() {
        assert_eq!(paths(&json!({"a": [1, 2, 3]}), &json!({"a": [1, 3]})), "it says something else about a[1], a[2]");
        let twice = json!([{"name": "x", "v": 1}, {"name": "x", "v": 2}]);
        assert_eq!(paths(&json!({"a": twice}), &json!({"a": [{"name": "x", "v": 1}]})), "it says something else about a[1]");
    }

    #[test]
    fn a_few_fields_are_named_and_the_others_counted() {
        let many = |value: &str| json!({"env": (0..100).map(|n| json!({"name": format!("V{n}"), "value": value})).collect::<Vec<_>>()});
        let Difference::Fields { paths, more } = fields(&many("a"), &many("b")) else { panic!("both answer") };
        assert_eq!((paths.len(), more), (MOST, 100 - MOST));
        let long = json!({"x".repeat(10_000): 1});
        assert!(self::paths(&long, &json!({})).len() < 200);
    }

    fn answer(extra: &[(&str, &str)]) -> Result<konnect_env::Answer, PolicyError> {
        let env = extra.iter().map(|(name, value)| super::super::EnvVar { name: (*name).into(), value: (*value).into() }).collect();
        Ok(konnect_env::Answer { env, volumes: vec![], mounts: vec![], readiness_path: None, findings: vec![] })
    }

    fn input() -> konnect_env::Input {
        konnect_env::Input {
            context: Context::default(),
            control_plane_id: "id".into(),
            cluster_type: konnect_env::ClusterType::ControlPlane,
            endpoints: konnect_env::Endpoints { control_plane: "c".into(), telemetry: "t".into() },
            region: None,
            certificate: konnect_env::Certificate { secret_name: "s".into(), mount_path: "/m".into() },
            data_plane_labels: Default::default(),
            image: "kong".into(),
        }
    }

    #[test]
    fn every_pair_of_ends_is_told() {
        let refused = |code: &str| Err(PolicyError::Refused(Refusal { code: code.into(), message: "s3cret".into() }));
        let trapped = || Err(PolicyError::Trap("s3cret".into()));
        let same = [(answer(&[("A", "1")]), answer(&[("A", "1")])), (refused("No"), refused("Never"))];
        for (shadow, in_force) in same {
            assert_eq!(between::<KonnectEnv>(&input(), &shadow, &in_force), None);
        }
        for (shadow, in_force, grade, expected) in [
            (answer(&[("A", "2")]), answer(&[("A", "1")]), Grade::Differs, "it says something else about env[A].value"),
            (answer(&[]), refused("No"), Grade::Differs, "it answers, where the policy in force does not"),
            (answer(&[]), trapped(), Grade::Differs, "it answers, where the policy in force does not"),
            (refused("No"), answer(&[]), Grade::Refuses, "it refuses (No), where the policy in force does not"),
            (refused("No"), trapped(), Grade::Refuses, "it refuses (No), where the policy in force does not"),
            (trapped(), answer(&[]), Grade::Fails, "it gives no answer (Trap)"),
            (trapped(), trapped(), Grade::Fails, "it gives no answer (Trap)"),
        ] {
            let found = between::<KonnectEnv>(&input(), &shadow, &in_force).unwrap();
            assert_eq!((found.grade(), found.to_string().as_str()), (grade, expected));
        }
        assert!(Grade::Differs < Grade::Refuses && Grade::Refuses < Grade::Fails);
    }

    #[test]
    fn a_verdict_is_named_by_what_it_is_about() {
        let claim = |text: &str| Claim { who: "w".into(), since: None, origin: Origin::User, value: ClaimValue::Text(text.into()) };
        let conflict = |subject: &str| Conflict {
            kind: SubjectKind::EnvVar,
            subject: subject.into(),
            claims: vec![claim("s3cret"), claim("s3cret too")],
        };
        let input = conflict_resolution::Input { context: Context::default(), conflicts: vec![conflict("A"), conflict("B")] };
        let answer = |verdict: Verdict| {
            let keep = Resolution { verdict: Verdict::Keep(0), findings: vec![] };
            Ok(conflict_resolution::Answer { resolutions: vec![keep, Resolution { verdict, findings: vec![] }] })
        };
        for (new, expected) in [
            (Verdict::Keep(1), "conflicts[env-var/B].verdict.keep"),
            (Verdict::Merge("s3cret".into()), "conflicts[env-var/B].verdict.merge, conflicts[env-var/B].verdict.keep"),
        ] {
            let found = between::<ConflictResolution>(&input, &answer(new), &answer(Verdict::Keep(0))).unwrap().to_string();
            assert_eq!(found, format!("it says something else about {expected}"));
        }
    }
}
