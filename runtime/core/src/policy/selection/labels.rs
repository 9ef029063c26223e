//! Label selectors, as Kubernetes matches them: all requirements have to hold, and no requirement holds for every object.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use weir_api::names;

use super::super::{Pairs, limits};

/// A selector that was read. The default one matches everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operator {
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Exists,
    DoesNotExist,
}

/// A selector that Kubernetes would refuse as well.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct Malformed {
    /// Path of the field.
    pub field: String,
    /// What is wrong and what to write.
    pub problem: String,
}

impl Selector {
    /// Reads the selector that stands at `field`. One that is left out matches everything.
    ///
    /// # Errors
    /// Names the field below `field` that is wrong.
    pub fn parse(field: &str, selector: Option<&LabelSelector>) -> Result<Self, Malformed> {
        let Some(selector) = selector else { return Ok(Self::default()) };
        let mut requirements = Vec::new();
        for (key, value) in selector.match_labels.iter().flatten() {
            let field = format!("{field}.matchLabels");
            check_key(&field, key)?;
            check_value(&field, value)?;
            requirements.push(Requirement { key: key.clone(), operator: Operator::In(BTreeSet::from([value.clone()])) });
        }
        for (index, expression) in selector.match_expressions.iter().flatten().enumerate() {
            requirements.push(requirement(&format!("{field}.matchExpressions[{index}]"), expression)?);
        }
        Ok(Self(requirements))
    }

    /// Whether an object with these labels is selected.
    #[must_use]
    pub fn matches(&self, labels: &Pairs) -> bool {
        self.0.iter().all(|requirement| {
            let value = labels.get(&requirement.key);
            match &requirement.operator {
                Operator::In(values) => value.is_some_and(|value| values.contains(value)),
                // So does an object without the label.
                Operator::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
                Operator::Exists => value.is_some(),
                Operator::DoesNotExist => value.is_none(),
            }
        })
    }
}

fn requirement(field: &str, expression: &LabelSelectorRequirement) -> Result<Requirement, Malformed> {
    check_key(&format!("{field}.key"), &expression.key)?;
    let given: BTreeSet<String> = expression.values.iter().flatten().cloned().collect();
    let some = |given: BTreeSet<String>| {
        let field = format!("{field}.values");
        if given.is_empty() {
            return Err(malformed(&field, format!("operator {} needs at least one value", expression.operator)));
        }
        given.iter().try_for_each(|value| check_value(&field, value))?;
        Ok(given)
    };
    let none = |operator| match given.is_empty() {
        true => Ok(operator),
        false => Err(malformed(&format!("{field}.values"), format!("operator {} takes no values: remove them", expression.operator))),
    };
    let operator = match expression.operator.as_str() {
        "In" => Operator::In(some(given)?),
        "NotIn" => Operator::NotIn(some(given)?),
        "Exists" => none(Operator::Exists)?,
        "DoesNotExist" => none(Operator::DoesNotExist)?,
        other => {
            let problem = format!("{:?} is no operator: write In, NotIn, Exists or DoesNotExist", limits::cut(other));
            return Err(malformed(&format!("{field}.operator"), problem));
        }
    };
    Ok(Requirement { key: expression.key.clone(), operator })
}

fn check_key(field: &str, key: &str) -> Result<(), Malformed> {
    if names::is_label_key(key) {
        return Ok(());
    }
    Err(malformed(field, format!("{:?} is no key of a label: write a name of at most 63 characters, or PREFIX/NAME", limits::cut(key))))
}

fn check_value(field: &str, value: &str) -> Result<(), Malformed> {
    if names::is_label_value(value) {
        return Ok(());
    }
    let problem = "is no value of a label: write at most 63 letters, digits, `-`, `_` and `.`, a letter or digit at both ends";
    Err(malformed(field, format!("{:?} {problem}", limits::cut(value))))
}

fn malformed(field: &str, problem: String) -> Malformed {
    Malformed { field: field.into(), problem }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parse(selector: &Value) -> Result<Selector, Malformed> {
        Selector::parse("spec.targets.selector", Some(&serde_json::from_value(selector.clone()).unwrap()))
    }

    fn labels(pairs: &[(&str, &str)]) -> Pairs {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn expression(operator: &str, values: &[&str]) -> Value {
        json!({"matchExpressions": [{"key": "tier", "operator": operator, "values": values}]})
    }

    #[test]
    fn selectors_match_as_in_kubernetes() {
        let (none, edge, core) = (labels(&[]), labels(&[("tier", "edge"), ("x", "")]), labels(&[("tier", "core")]));
        for (selector, expected) in [
            (json!({}), [true, true, true]),
            (json!({"matchLabels": {}, "matchExpressions": []}), [true, true, true]),
            (json!({"matchLabels": {"tier": "edge"}}), [false, true, false]),
            (json!({"matchLabels": {"tier": "edge", "x": ""}}), [false, true, false]),
            (json!({"matchLabels": {"tier": "edge", "x": "1"}}), [false, false, false]),
            (expression("In", &["edge"]), [false, true, false]),
            (expression("In", &["edge", "core"]), [false, true, true]),
            (expression("NotIn", &["edge"]), [true, false, true]),
            (expression("Exists", &[]), [false, true, true]),
            (expression("DoesNotExist", &[]), [true, false, false]),
            (
                json!({"matchLabels": {"tier": "edge"}, "matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}),
                [false, false, false],
            ),
        ] {
            let read = parse(&selector).unwrap();
            assert_eq!([&none, &edge, &core].map(|labels| read.matches(labels)), expected, "{selector}");
        }
        assert!(Selector::parse("f", None).unwrap().matches(&none));
    }

    #[test]
    fn what_is_wrong_names_its_field() {
        let long = "a".repeat(64);
        for (selector, field, problem) in [
            (expression("in", &["edge"]), "matchExpressions[0].operator", "\"in\" is no operator"),
            (expression("Gt", &["1"]), "matchExpressions[0].operator", "write In, NotIn, Exists or DoesNotExist"),
            (expression("", &[]), "matchExpressions[0].operator", "\"\" is no operator"),
            (expression("In", &[]), "matchExpressions[0].values", "operator In needs at least one value"),
            (expression("NotIn", &[]), "matchExpressions[0].values", "operator NotIn needs"),
            (expression("Exists", &["a"]), "matchExpressions[0].values", "operator Exists takes no values"),
            (expression("DoesNotExist", &["a"]), "matchExpressions[0].values", "operator DoesNotExist takes no values"),
            (expression("In", &["a b"]), "matchExpressions[0].values", "\"a b\" is no value of a label"),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Exists"}, {"key": "", "operator": "Exists"}]}),
                "matchExpressions[1].key",
                "is no key",
            ),
            (json!({"matchLabels": {"a/b/c": "d"}}), "matchLabels", "\"a/b/c\" is no key of a label"),
            (json!({"matchLabels": {"a": long}}), "matchLabels", "is no value of a label"),
        ] {
            let error = parse(&selector).unwrap_err();
            assert_eq!(error.field, format!("spec.targets.selector.{field}"), "{selector}");
            assert!(error.problem.contains(problem), "{selector}: {error}");
            assert_eq!(error.to_string(), format!("{}: {}", error.field, error.problem));
        }
    }
}
