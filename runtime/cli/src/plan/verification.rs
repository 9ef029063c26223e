//! Signatures of a plan's artifacts: looked for where `--verification-file` wants some, in the registry of what `spec.image` names.

#[cfg(test)]
mod tests;

use std::rc::Rc;

use weir_harness::pass::{Untaken, Verify};
use weir_host::oci::{MAX_TRUST_ROOT, Reference, TrustRoot, VerifyError, verification_file};

use crate::{
    args,
    exit::Failure,
    registry::{self, Registry},
};

/// Whose signatures artifacts need. Nobody's without a file.
pub(super) struct Verification {
    list: verification_file::File,
    root: Option<TrustRoot>,
    /// Where signatures are looked for.
    registry: Option<Rc<Registry>>,
}

impl Verification {
    /// Reads what the flags name.
    ///
    /// # Errors
    /// A file that cannot be used.
    pub(super) fn new(args: &args::Plan, registry: Option<Rc<Registry>>) -> Result<Self, Failure> {
        let root = args::named(args.trust_root.as_ref()).map(|path| {
            let json = registry::read("--trust-root", path, MAX_TRUST_ROOT as u64)?;
            TrustRoot::parse(&json).map_err(|error| Failure::usage(format!("--trust-root {}: {error}", path.display())))
        });
        let root = root.transpose()?;
        let Some(path) = args::named(args.verification_file.as_ref()) else {
            return Ok(Self { list: verification_file::File::default(), root, registry });
        };
        let wrong = |problem: String| Failure::usage(format!("--verification-file {problem}"));
        let list = verification_file::read(path).map_err(|error| wrong(error.to_string()))?;
        if list.wants_identities() && root.is_none() {
            let problem =
                "it asks for keyless signatures, and nothing says whose certificates count: name a trusted_root.json with --trust-root";
            return Err(wrong(format!("{}: {problem}", path.display())));
        }
        Ok(Self { list, root, registry })
    }
}

impl Verify for Verification {
    fn wanted(&self, reference: &Reference) -> Option<String> {
        self.list.digest(reference)
    }

    fn signers(&self, reference: &Reference, digests: &[String]) -> Result<Vec<String>, Untaken> {
        let Some(requirement) = self.list.requirement(reference) else { return Ok(Vec::new()) };
        let failed = |message: String, transient| Untaken { message: format!("the verification list: {message}"), transient };
        let Some(registry) = &self.registry else {
            return Err(failed(format!("{reference} has to be signed, and signatures are in its registry: look there with --pull"), false));
        };
        let credentials = registry.credentials(reference).map_err(|failure| failed(failure.message, false))?;
        let digests: Vec<&str> = digests.iter().map(String::as_str).collect();
        let requirements = std::slice::from_ref(requirement);
        let verified = registry.wait(registry.puller().verify(reference, &credentials, &digests, requirements, self.root.as_ref()));
        verified.map(|verified| verified.signers).map_err(|error: VerifyError| failed(error.to_string(), error.transient()))
    }
}
