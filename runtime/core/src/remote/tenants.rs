//! Whose policies may use a plugin (semantics "Remote plugins").

use std::collections::BTreeSet;

use weir_api::names;

/// Namespaces, beside the operator's own, whose policies may use a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Tenants {
    /// None.
    #[default]
    None,
    /// Every one.
    All,
    /// These.
    Only(BTreeSet<String>),
}

/// Most namespaces in one annotation.
const MOST: usize = 256;

impl Tenants {
    /// Reads annotation `weir.dev/plugin-tenants`: `*`, or namespaces joined by commas.
    ///
    /// # Errors
    /// The first part that is no namespace; then nobody is let in.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).take(MOST + 1).collect();
        if parts.len() > MOST {
            return Err(format!("more than {MOST} namespaces: use * and let RBAC say who may create policies"));
        }
        match parts.as_slice() {
            [] => Ok(Self::None),
            ["*"] => Ok(Self::All),
            parts => match parts.iter().find(|part| !names::is_dns_label(part)) {
                Some(wrong) => {
                    Err(format!("{:?} is no namespace: write * or namespaces joined by commas", crate::policy::limits::cut(wrong)))
                }
                None => Ok(Self::Only(parts.iter().map(|part| (*part).to_owned()).collect())),
            },
        }
    }

    /// Whether policies of a namespace may use the plugin.
    #[must_use]
    pub fn allow(&self, namespace: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Only(those) => those.contains(namespace),
        }
    }
}
