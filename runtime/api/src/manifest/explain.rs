//! Turns a validator's errors into sentences that say what to do.

use std::collections::BTreeSet;

use jsonschema::{
    ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
    paths::{Location, LocationSegment},
};
use serde_json::Value;

use super::{
    nearest,
    path::{FieldPath, Segment},
    problem::ProblemKind,
    schema::Finding,
};

/// Longest piece of a value that is repeated in a message.
const EXCERPT: usize = 60;

/// One finding for each thing wrong; a value of the wrong type is not also reported for what its type implies.
pub(super) fn findings<'a>(errors: impl Iterator<Item = ValidationError<'a>>, schema: &Value) -> Vec<Finding> {
    let (mut wrong_types, mut findings) = (BTreeSet::new(), Vec::new());
    for error in errors {
        let path = field_path(error.instance_path());
        let wrong_type = matches!(error.kind(), Kind::Type { .. });
        if wrong_type {
            wrong_types.insert(path.clone());
        }
        findings.extend(explain(&error, &path, schema).into_iter().map(|(at, message)| (path.clone(), wrong_type, finding(at, message))));
    }
    let keep = |(path, wrong_type, finding): (FieldPath, bool, Finding)| (wrong_type || !wrong_types.contains(&path)).then_some(finding);
    findings.into_iter().filter_map(keep).collect()
}

fn finding(path: FieldPath, message: String) -> Finding {
    Finding { kind: ProblemKind::Schema, field: path.to_string(), path: Some(path), message }
}

fn field_path(location: &Location) -> FieldPath {
    let segment = |segment| match segment {
        LocationSegment::Property(name) => Segment::Key(name.into_owned()),
        LocationSegment::Index(index) => Segment::Index(index),
    };
    location.iter().map(segment).collect()
}

fn explain(error: &ValidationError<'_>, path: &FieldPath, schema: &Value) -> Vec<(FieldPath, String)> {
    let here = |message: String| vec![(path.clone(), message)];
    let found = error.instance();
    match error.kind() {
        Kind::AdditionalProperties { unexpected } => {
            let known = siblings(error.schema_path(), schema);
            unexpected.iter().map(|name| (path.key(name), unknown_field(name, &known))).collect()
        }
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            vec![(path.key(name), format!("`{name}` is missing: add it"))]
        }
        Kind::Type { kind } => here(wrong_type(kind, found)),
        Kind::Enum { options } => {
            let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
            let allowed: Vec<String> = options.iter().filter(|option| !option.is_null()).map(plain).collect();
            let hint = found.as_str().and_then(|text| nearest::nearest(text, allowed.iter().map(String::as_str)));
            let hint = hint.map(|hint| format!(" (did you mean `{hint}`?)")).unwrap_or_default();
            here(format!("`{}` is not allowed: use one of {}{hint}", excerpt(found), allowed.join(", ")))
        }
        Kind::Constant { expected_value } => here(format!("must be `{}`", plain(expected_value))),
        Kind::Pattern { pattern } => here(format!("`{}` does not match the pattern {pattern}", excerpt(found))),
        Kind::Format { format } => here(match format.as_str() {
            "date-time" => format!("`{}` is no time: write it like 2026-01-31T12:00:00Z", excerpt(found)),
            other => format!("`{}` is not of the format {other}", excerpt(found)),
        }),
        Kind::Minimum { limit } => here(format!("{} is too small: at least {} is needed", excerpt(found), number(limit))),
        Kind::Maximum { limit } => here(format!("{} is too large: at most {} is allowed", excerpt(found), number(limit))),
        Kind::ExclusiveMinimum { limit } => here(format!("{} is too small: more than {} is needed", excerpt(found), number(limit))),
        Kind::ExclusiveMaximum { limit } => here(format!("{} is too large: less than {} is allowed", excerpt(found), number(limit))),
        Kind::MinLength { limit: 1 } => here("must not be empty".to_owned()),
        Kind::MinLength { limit } => here(format!("too short: at least {limit} characters are needed")),
        Kind::MaxLength { limit } => here(format!("too long: at most {limit} characters are allowed")),
        Kind::MinItems { limit } => here(format!("too few elements: at least {limit} needed")),
        Kind::MaxItems { limit } => here(format!("too many elements: at most {limit} allowed")),
        Kind::MinProperties { limit } => here(format!("too few fields: at least {limit} needed")),
        Kind::MaxProperties { limit } => here(format!("too many fields: at most {limit} allowed")),
        Kind::MultipleOf { multiple_of } => here(format!("must be a multiple of {multiple_of}")),
        Kind::UniqueItems => here("has the same element twice: remove one".to_owned()),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => here(alternatives(context, path, schema)),
        Kind::OneOfMultipleValid { .. } => here("fits several forms that exclude each other: keep one of them".to_owned()),
        Kind::Not { schema: excluded } => here(excluded_form(excluded)),
        // Keywords that CRDs do not have; the validator's own words are as good as ours.
        Kind::AdditionalItems { .. }
        | Kind::BacktrackLimitExceeded { .. }
        | Kind::RegexEngineFailure { .. }
        | Kind::Contains
        | Kind::ContentEncoding { .. }
        | Kind::ContentMediaType { .. }
        | Kind::Custom { .. }
        | Kind::FalseSchema
        | Kind::FromUtf8 { .. }
        | Kind::PropertyNames { .. }
        | Kind::UnevaluatedItems { .. }
        | Kind::UnevaluatedProperties { .. }
        | Kind::Referencing(_) => here(error.to_string()),
    }
}

/// Names that are allowed where an unknown one was found.
fn siblings(schema_path: &Location, schema: &Value) -> Vec<String> {
    let node = schema_path.as_str().rsplit_once('/').and_then(|(parent, _)| schema.pointer(parent));
    let properties = node.and_then(|node| node.get("properties")).and_then(Value::as_object);
    properties.map(|properties| properties.keys().cloned().collect()).unwrap_or_default()
}

fn unknown_field(name: &str, known: &[String]) -> String {
    match nearest::nearest(name, known.iter().map(String::as_str)) {
        Some(hint) => format!("unknown field `{name}`: did you mean `{hint}`?"),
        None if known.is_empty() => format!("unknown field `{name}`: no fields are allowed here, remove it"),
        None if known.len() <= 8 => format!("unknown field `{name}`: remove it or use one of {}", known.join(", ")),
        None => format!("unknown field `{name}`: remove it or correct its name"),
    }
}

fn wrong_type(kind: &TypeKind, found: &Value) -> String {
    let mut expected: Vec<&str> = match kind {
        TypeKind::Single(one) => vec![type_name(one.as_str())],
        TypeKind::Multiple(several) => several.iter().map(|one| type_name(one.as_str())).collect(),
    };
    // What is usually wanted comes first.
    expected.sort_by_key(|name| *name == "null");
    let actual = type_of(found);
    let what = format!("expected {}, found {actual}", expected.join(" or "));
    let scalar = found.is_boolean() || found.is_number();
    match (scalar && expected.contains(&type_name("string")), found.is_f64()) {
        (false, _) => what,
        // `3.10` is the number 3.1: only the reader knows what was written.
        (true, true) => format!("{what}: quote it as it is written"),
        (true, false) => format!("{what}: quote it: \"{found}\""),
    }
}

/// A JSON type for people.
pub(super) fn type_of(value: &Value) -> &'static str {
    type_name(match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    })
}

fn type_name(json: &str) -> &'static str {
    match json {
        "boolean" => "a boolean",
        "integer" => "an integer",
        "number" => "a number",
        "string" => "a text",
        "array" => "a list",
        "object" => "a map",
        _ => "null",
    }
}

/// The first complaint of each form that is not met.
fn alternatives(context: &[Vec<ValidationError<'static>>], path: &FieldPath, schema: &Value) -> String {
    let first = |errors: &Vec<ValidationError<'static>>| {
        let error = errors.first()?;
        let at = field_path(error.instance_path());
        let (field, message) = explain(error, &at, schema).into_iter().next()?;
        Some(if field == *path { message } else { format!("{field}: {message}") })
    };
    let reasons: Vec<String> = context.iter().filter_map(first).collect();
    format!("fits none of the allowed forms: {}", reasons.join("; or "))
}

fn excluded_form(excluded: &Value) -> String {
    let names = excluded.get("required").and_then(Value::as_array).map(|names| names.iter().map(plain).collect::<Vec<_>>());
    match names {
        Some(names) => format!("{} must not be set together here: remove one", names.join(" and ")),
        None => format!("has a form that is not allowed: {excluded}"),
    }
}

/// CRDs keep all bounds as floats; people do not write `0.0`.
fn number(limit: &Value) -> String {
    match limit.as_f64() {
        Some(float) if limit.is_f64() => float.to_string(),
        Some(_) | None => limit.to_string(),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn excerpt(value: &Value) -> String {
    let text = plain(value);
    if text.chars().count() <= EXCERPT { text } else { text.chars().take(EXCERPT).chain("…".chars()).collect() }
}
