//! Settings of registries, and checks of signatures.

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// Files that say how registries are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelValue)]
pub enum SettingsFile {
    /// Mirrors, CAs, proxies.
    Registries,
    /// Credentials.
    Auth,
    /// Whose signatures count.
    Verification,
}

impl SettingsFile {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Registries, Self::Auth, Self::Verification];

    /// The flag that names it.
    #[must_use]
    pub fn flag(self) -> &'static str {
        match self {
            Self::Registries => "--registries-file",
            Self::Auth => "--registry-auth-file",
            Self::Verification => "--verification-file",
        }
    }

    /// Code of the finding that says that it cannot be used.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Registries => "RegistriesFileUnusable",
            Self::Auth => "RegistryAuthFileUnusable",
            Self::Verification => "VerificationFileUnusable",
        }
    }
}

/// What signatures are looked for at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelValue)]
pub enum Signed {
    /// A component.
    Policy,
    /// A plugin artifact.
    Plugin,
}

/// How a check of signatures ended: the condition's reason, but for the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelValue)]
pub enum VerifyOutcome {
    /// Signed as it has to be.
    Verified,
    /// Nothing was found.
    NotSigned,
    /// By others.
    WrongSigner,
    /// What was found is no signature.
    Malformed,
    /// The registry does not answer.
    Unreachable,
    /// Nobody said whose certificates count.
    NoTrustRoot,
    /// A key that is none.
    InvalidKey,
}

impl VerifyOutcome {
    /// All outcomes.
    pub const ALL: [Self; 7] =
        [Self::Verified, Self::NotSigned, Self::WrongSigner, Self::Malformed, Self::Unreachable, Self::NoTrustRoot, Self::InvalidKey];

    /// The condition's reason.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Verified => "Signed",
            Self::NotSigned => "NotSigned",
            Self::WrongSigner => "WrongSigner",
            Self::Malformed => "Malformed",
            Self::Unreachable => "Unreachable",
            Self::NoTrustRoot => "NoTrustRoot",
            Self::InvalidKey => "InvalidKey",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfFile {
    file: SettingsFile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
enum Load {
    Loaded,
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfLoad {
    file: SettingsFile,
    outcome: Load,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCheck {
    artifact: Signed,
    outcome: VerifyOutcome,
}

/// Files of settings that are read again when they change.
#[derive(Debug, Default)]
pub struct Settings {
    valid: Family<OfFile, Gauge>,
    loads: Family<OfLoad, Counter>,
    checks: Family<OfCheck, Counter>,
}

impl Settings {
    pub(super) fn register(&self, registry: &mut Registry) {
        for file in SettingsFile::ALL {
            for outcome in [Load::Loaded, Load::Failed] {
                drop(self.loads.get_or_create(&OfLoad { file, outcome }));
            }
        }
        for artifact in [Signed::Policy, Signed::Plugin] {
            for outcome in VerifyOutcome::ALL {
                drop(self.checks.get_or_create(&OfCheck { artifact, outcome }));
            }
        }
        let valid = "Whether a file of settings can be used as it is now; otherwise what it said before is in force";
        registry.register("weir_settings_file_valid", valid, self.valid.clone());
        registry.register("weir_settings_file_loads", "Changed files of settings, by what became of them", self.loads.clone());
        registry.register("weir_verifications", "Checks of signatures, by how they ended", self.checks.clone());
    }

    /// Whether the file that is there can be used.
    pub fn is_valid(&self, file: SettingsFile, valid: bool) {
        self.valid.get_or_create(&OfFile { file }).set(i64::from(valid));
    }

    /// A changed file was read.
    pub fn loaded(&self, file: SettingsFile, good: bool) {
        let outcome = if good { Load::Loaded } else { Load::Failed };
        self.loads.get_or_create(&OfLoad { file, outcome }).inc();
    }

    pub(super) fn checked(&self, artifact: Signed, outcome: VerifyOutcome) {
        self.checks.get_or_create(&OfCheck { artifact, outcome }).inc();
    }
}
