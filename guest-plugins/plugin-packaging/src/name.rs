//! What plugins are called: by an annotation, by their folder or by the object.

use std::collections::BTreeMap;

use weir_policy_sdk::{Finding, Refusal, Severity, finding, plugin_packaging::Input, refuse};

use crate::{about, layout::Folder, settings::Settings};

/// Annotation of the installation, or else of the artifact, that names its only plugin.
pub const NAME_ANNOTATION: &str = "weir.dev/plugin-name";

/// Longest name that the host takes, bytes.
const MAX_NAME: usize = 120;
/// Words that mean something else than a plugin in `KONG_PLUGINS`.
const RESERVED: [&str; 2] = ["bundled", "off"];

/// Where a name comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Installation,
    Artifact,
    Folder,
    Object,
}

impl Source {
    fn words(self) -> &'static str {
        match self {
            Self::Installation => "annotation weir.dev/plugin-name of the installation",
            Self::Artifact => "annotation weir.dev/plugin-name of the artifact",
            Self::Folder => "the plugin's folder",
            Self::Object => "the installation's name",
        }
    }

    /// How to get another name.
    fn cure(self, only: bool) -> &'static str {
        match self {
            Self::Installation => "change the annotation",
            // With several plugins no annotation can help.
            Self::Folder if !only => "rename the folder",
            Self::Artifact | Self::Folder | Self::Object => "set annotation weir.dev/plugin-name on the installation",
        }
    }
}

/// Whether a text has the form of a name or of the beginning of one.
pub(crate) fn is_well_formed(name: &str) -> bool {
    name.len() <= MAX_NAME
        && name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// The folders by the names of their plugins.
pub(crate) fn all<'a>(
    input: &'a Input,
    folders: &'a [Folder<'a>],
    settings: &Settings,
) -> Result<BTreeMap<&'a str, &'a Folder<'a>>, Refusal> {
    let annotated = annotation(input);
    if let Some((name, source)) = annotated
        && folders.len() > 1
    {
        let names = about::list(folders.iter().map(|folder| folder.path));
        let message = format!(
            "{} says {}, but the artifact has {} plugins: {names}. Remove the annotation, so that each is named by its folder, or ship one plugin",
            source.words(),
            about::short(name),
            folders.len(),
        );
        return Err(refuse("AmbiguousName", message));
    }
    let only = folders.len() == 1;
    let mut named: BTreeMap<&str, &Folder<'_>> = BTreeMap::new();
    for folder in folders {
        let (name, source) = annotated.unwrap_or_else(|| own(input, folder));
        check(name, source, only, settings)?;
        if let Some(other) = named.get(name) {
            let both = [other.path, folder.path].map(about::short);
            return Err(refuse("DuplicatePlugin", format!("folders {} are both plugin {name}: rename one of them", both.join(" and "))));
        }
        named.insert(name, folder);
    }
    Ok(named)
}

/// The name that somebody wrote for the whole artifact; who installs it knows better than who made it.
fn annotation(input: &Input) -> Option<(&str, Source)> {
    written(&input.context.object.annotations, Source::Installation).or_else(|| written(&input.annotations, Source::Artifact))
}

fn written(annotations: &[(String, String)], source: Source) -> Option<(&str, Source)> {
    annotations.iter().find(|(key, _)| key == NAME_ANNOTATION).map(|(_, name)| (name.as_str(), source))
}

/// The name that a plugin has by itself.
fn own<'a>(input: &'a Input, folder: &Folder<'a>) -> (&'a str, Source) {
    match folder.path.rsplit('/').next() {
        Some("") | None => (&input.context.object.name, Source::Object),
        Some(name) => (name, Source::Folder),
    }
}

fn check(name: &str, source: Source, only: bool, settings: &Settings) -> Result<(), Refusal> {
    let cure = source.cure(only);
    let what = format!("plugin name {:?}, from {},", about::short(name), source.words());
    if RESERVED.contains(&name) {
        return Err(refuse("InvalidName", format!("{what} means something else in KONG_PLUGINS; {cure} to choose another name")));
    }
    if !is_well_formed(name) {
        let rule = format!("is not 1 to {MAX_NAME} letters, digits, `_` and `-`, a letter or digit first");
        return Err(refuse("InvalidName", format!("{what} {rule}; {cure} to choose another name")));
    }
    let rules = &settings.name_prefix;
    if let Some(prefix) = rules.forbid.iter().find(|prefix| name.starts_with(prefix.as_str())) {
        let message = format!("{what} begins with {prefix}, which the settings of this policy forbid; {cure} to choose another name");
        return Err(refuse("NameNotAllowed", message));
    }
    if !rules.require.is_empty() && !rules.require.iter().any(|prefix| name.starts_with(prefix.as_str())) {
        let prefixes = about::list(rules.require.iter().map(String::as_str));
        let message =
            format!("{what} does not begin with {prefixes}, as the settings of this policy require; {cure} to choose such a name");
        return Err(refuse("NameNotAllowed", message));
    }
    Ok(())
}

/// What to say about plugins that take the place of bundled ones.
pub(crate) fn bundled<'a>(input: &Input, names: impl Iterator<Item = &'a str>, settings: &Settings) -> Result<Vec<Finding>, Refusal> {
    let mut findings = Vec::new();
    for name in names.filter(|name| input.bundled.iter().any(|bundled| bundled == name)) {
        if !settings.allow_bundled_names {
            let message = format!(
                "plugin {name} has the name of a plugin that Kong bundles, which the settings of this policy forbid; choose another name, \
                 or set allowBundledNames to true to replace Kong's"
            );
            return Err(refuse("BundledName", message));
        }
        let message = format!("plugin {name} replaces the one that Kong bundles; choose another name unless that is meant");
        findings.push(finding(Severity::Warning, "ShadowsBundledPlugin", format!("plugins.{name}"), message));
    }
    Ok(findings)
}
