//! Signatures of a plan's artifacts: looked for where `--verification-file` wants some, in the registry of what `spec.image` names.

use weir_host::oci::{MAX_TRUST_ROOT, Reference, TrustRoot, VerifyError, verification_file};

use crate::{
    args,
    exit::Failure,
    registry::{self, Registry},
};

/// Whose signatures artifacts need. Nobody's without a file.
#[derive(Debug, Default)]
pub(super) struct Verification {
    list: verification_file::File,
    root: Option<TrustRoot>,
}

/// Why an artifact is not taken.
pub(super) struct Unverified {
    pub(super) message: String,
    pub(super) transient: bool,
}

impl Verification {
    /// Reads what the flags name.
    ///
    /// # Errors
    /// A file that cannot be used.
    pub(super) fn new(args: &args::Plan) -> Result<Self, Failure> {
        let given = |path: &Option<std::path::PathBuf>| path.clone().filter(|path| !path.as_os_str().is_empty());
        let root = given(&args.trust_root).map(|path| {
            let json = registry::read("--trust-root", &path, MAX_TRUST_ROOT as u64)?;
            TrustRoot::parse(&json).map_err(|error| Failure::usage(format!("--trust-root {}: {error}", path.display())))
        });
        let root = root.transpose()?;
        let Some(path) = given(&args.verification_file) else { return Ok(Self { root, ..Self::default() }) };
        let wrong = |problem: String| Failure::usage(format!("--verification-file {problem}"));
        let list = verification_file::read(&path).map_err(|error| wrong(error.to_string()))?;
        if list.wants_identities() && root.is_none() {
            let problem =
                "it asks for keyless signatures, and nothing says whose certificates count: name a trusted_root.json with --trust-root";
            return Err(wrong(format!("{}: {problem}", path.display())));
        }
        Ok(Self { list, root })
    }

    /// Digest of the signatures that an image needs; none where it needs none.
    pub(super) fn wanted(&self, reference: &Reference) -> Option<String> {
        self.list.digest(reference)
    }

    /// Who signed an artifact with one of these digests; empty where nobody has to.
    ///
    /// # Errors
    /// That it is not signed as it has to be, or that nobody can tell.
    pub(super) fn signers(
        &self,
        registry: Option<&Registry>,
        reference: &Reference,
        digests: &[String],
    ) -> Result<Vec<String>, Unverified> {
        let Some(requirement) = self.list.requirement(reference) else { return Ok(Vec::new()) };
        let failed = |message: String, transient| Unverified { message: format!("the verification list: {message}"), transient };
        let Some(registry) = registry else {
            return Err(failed(format!("{reference} has to be signed, and signatures are in its registry: look there with --pull"), false));
        };
        let credentials = registry.credentials(reference).map_err(|failure| failed(failure.message, false))?;
        let digests: Vec<&str> = digests.iter().map(String::as_str).collect();
        let requirements = std::slice::from_ref(requirement);
        let verified = registry.wait(registry.puller().verify(reference, &credentials, &digests, requirements, self.root.as_ref()));
        verified.map(|verified| verified.signers).map_err(|error: VerifyError| failed(error.to_string(), error.transient()))
    }
}
