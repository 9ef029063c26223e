//! The API server's checks of custom resources, without an API server.
//!
//! Everything that does not depend on the object is compiled once: thousands of objects are checked with it.

use std::collections::BTreeMap;

use jsonschema::{PatternOptions, Validator};
use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition, apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::core::cel::{self, CompiledSchema};
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::{
    defaults, explain,
    path::FieldPath,
    problem::{Problem, ProblemKind, SourceRef},
    strict,
};

/// A CRD that cannot be used. Never the fault of a manifest.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// A served version has no schema.
    #[error("CRD {crd} version {version} has no openAPIV3Schema")]
    Missing {
        /// Name of the CRD.
        crd: String,
        /// The version.
        version: String,
    },
    /// The schema does not compile.
    #[error("CRD {crd} version {version}: {reason}")]
    Invalid {
        /// Name of the CRD.
        crd: String,
        /// The version.
        version: String,
        /// The first thing that is wrong with it.
        reason: String,
    },
}

/// One thing wrong with one object; where it stands in a file is added by whoever knows the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The class.
    pub kind: ProblemKind,
    /// The field as text, e.g. `spec.deployment.replicas`. Empty for the object as a whole.
    pub field: String,
    /// The field as path; `None` if only the text is known (rules name fields in text).
    pub path: Option<FieldPath>,
    /// What is wrong and what to do.
    pub message: String,
}

/// One version of one kind, compiled.
#[derive(Debug)]
pub struct Schema {
    api_version: String,
    kind: String,
    namespaced: bool,
    openapi: Value,
    strict: Value,
    validator: Validator,
    rules: CompiledSchema,
}

/// All kinds whose schemas are known, by group, version and kind.
#[derive(Debug, Default)]
pub struct Schemas(BTreeMap<(String, String), Schema>);

impl Schemas {
    /// Compiles the served versions of all CRDs.
    ///
    /// # Errors
    /// If a schema, a pattern or a rule does not compile.
    pub fn new<'a>(crds: impl IntoIterator<Item = &'a CustomResourceDefinition>) -> Result<Self, SchemaError> {
        let metadata = object_meta();
        let mut schemas = BTreeMap::new();
        for crd in crds {
            let name = crd.metadata.name.clone().unwrap_or_default();
            for version in crd.spec.versions.iter().filter(|version| version.served) {
                let invalid = |reason: String| SchemaError::Invalid { crd: name.clone(), version: version.name.clone(), reason };
                let openapi = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
                let Some(openapi) = openapi else {
                    return Err(SchemaError::Missing { crd: name.clone(), version: version.name.clone() });
                };
                let openapi = serde_json::to_value(openapi).map_err(|error| invalid(error.to_string()))?;
                let api_version = format!("{}/{}", crd.spec.group, version.name);
                let kind = crd.spec.names.kind.clone();
                let namespaced = crd.spec.scope == "Namespaced";
                let schema = Schema::new(api_version, kind, namespaced, openapi, &metadata).map_err(invalid)?;
                schemas.insert((schema.api_version.clone(), schema.kind.clone()), schema);
            }
        }
        Ok(Self(schemas))
    }

    /// The schema of a kind; `api_version` is `group/version` as manifests write it.
    #[must_use]
    pub fn get(&self, api_version: &str, kind: &str) -> Option<&Schema> {
        self.0.get(&(api_version.to_owned(), kind.to_owned()))
    }

    /// The known `group/version`s of a kind in the group of `api_version`.
    pub fn versions<'a>(&'a self, api_version: &'a str, kind: &'a str) -> impl Iterator<Item = &'a str> {
        let group = group(api_version);
        self.0
            .values()
            .filter(move |schema| schema.kind == kind && group == self::group(&schema.api_version))
            .map(|schema| schema.api_version.as_str())
    }

    /// Evaluates the rules that compare an object with its older self. Empty if the update is allowed or the kind is
    /// not known. Both objects are defaulted first, as the API server does.
    #[must_use]
    pub fn check_update(&self, old: &Value, new: &Value, source: &SourceRef) -> Vec<Problem> {
        let text = |name: &str| new.get(name).and_then(Value::as_str).unwrap_or_default();
        let Some(schema) = self.get(text("apiVersion"), text("kind")) else { return Vec::new() };
        let (mut old, mut new) = (old.clone(), new.clone());
        schema.default(&mut old);
        schema.default(&mut new);
        let object = super::identity::label(&new);
        let problem = |finding: Finding| Problem {
            kind: finding.kind,
            file: source.file.clone(),
            line: source.line,
            column: 1,
            object: object.clone(),
            field: Some(finding.field).filter(|field| !field.is_empty()),
            message: finding.message,
        };
        schema.rules(&new, Some(&old)).into_iter().map(problem).collect()
    }
}

impl Schema {
    fn new(api_version: String, kind: String, namespaced: bool, mut openapi: Value, metadata: &Value) -> Result<Self, String> {
        let root = openapi.as_object_mut().ok_or("the schema is not an object")?;
        let properties = root.entry("properties").or_insert_with(|| json!({}));
        let properties = properties.as_object_mut().ok_or("`properties` is not an object")?;
        for name in ["apiVersion", "kind"] {
            properties.entry(name).or_insert_with(|| json!({ "type": "string" }));
        }
        properties.insert("metadata".into(), metadata.clone());
        defaults::complete(&mut openapi);
        let rules = cel::compile_schema(&openapi);
        if let Some(error) = first_error(&rules) {
            return Err(error);
        }
        let strict = strict::strict(&openapi);
        // Patterns of Kubernetes are Go's: linear time, no look-around.
        let validator = jsonschema::draft202012::options()
            .with_pattern_options(PatternOptions::regex())
            .should_validate_formats(true)
            .build(&strict)
            .map_err(|error| error.to_string())?;
        Ok(Self { api_version, kind, namespaced, openapi, strict, validator, rules })
    }

    /// Whether objects of this kind live in namespaces.
    #[must_use]
    pub fn is_namespaced(&self) -> bool {
        self.namespaced
    }

    /// Removes nulls where null is not allowed and fills in default values, as the API server does before it
    /// validates.
    pub fn default(&self, value: &mut Value) {
        defaults::apply(&self.openapi, value);
    }

    /// Checks a defaulted object against the schema; unknown fields are errors.
    #[must_use]
    pub fn validate(&self, value: &Value) -> Vec<Finding> {
        explain::findings(self.validator.iter_errors(value), &self.strict)
    }

    /// Evaluates the validation rules: those for creation without `old`, those for updates as well with it. Call it
    /// for objects that fit the schema; rules are written for those. Lists are compared element by element.
    #[must_use]
    pub fn rules(&self, value: &Value, old: Option<&Value>) -> Vec<Finding> {
        let errors = match cel::validate_compiled(&self.rules, value, old) {
            Ok(()) => return Vec::new(),
            Err(errors) => errors.into_vec(),
        };
        let finding = |error: cel::ValidationError| Finding {
            kind: ProblemKind::Rule,
            field: error.field_path.trim_start_matches('.').to_owned(),
            path: None,
            message: error.message,
        };
        errors.into_iter().map(finding).collect()
    }
}

fn group(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or("", |(group, _)| group)
}

/// The schema of `metadata`, which CRDs leave to the API server.
fn object_meta() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().subschema_for::<ObjectMeta>().to_value()
}

/// The first rule below a schema that does not compile.
fn first_error(schema: &CompiledSchema) -> Option<String> {
    if let Some(error) = schema.compilation_errors().first() {
        return Some(error.to_string());
    }
    let single = schema.items.iter().chain(&schema.additional_properties).map(AsRef::as_ref);
    let branches = schema.all_of.iter().chain(&schema.one_of).chain(&schema.any_of);
    schema.properties.values().chain(single).chain(branches).find_map(first_error)
}
