//! Whether what was found is what was asked for.

use super::{
    Requirement, Signer, TrustRoot, Verified, VerifyError,
    certificate::{Identity, vouched},
    find::Search,
    key::Key,
    signature::Signature,
};

/// What is judged.
pub(super) struct Case<'a> {
    /// For messages.
    pub(super) artifact: &'a str,
    /// What may be signed.
    pub(super) digests: &'a [&'a str],
    /// Every key that is asked for, by its PEM.
    pub(super) keys: &'a [(&'a [u8], Key)],
    pub(super) trust: Option<&'a TrustRoot>,
}

/// A signature of the right digest, and who made it.
struct Made {
    signature: Signature,
    /// By a certificate that the trust root vouches for.
    identity: Option<Identity>,
    /// For messages: what it is, or why it is nothing.
    what: String,
}

/// Judges.
pub(super) fn judge(case: &Case<'_>, search: &Search, requirements: &[Requirement]) -> Result<Verified, VerifyError> {
    let (mut made, mut others, mut problems) = (Vec::new(), Vec::new(), search.problems.clone());
    for found in &search.found {
        match Signature::read(found) {
            Ok(signature) if signature.subjects.iter().any(|subject| case.digests.contains(&subject.as_str())) => {
                made.push(case.made(signature));
            }
            Ok(signature) => others.push(format!("{}: a signature of another artifact", signature.place)),
            Err(problem) => problems.push(problem),
        }
    }
    let mut verified = Verified::default();
    let mut wanted = Vec::new();
    for Requirement { any_of, all_of } in requirements {
        let (mut met, mut unmet) = (Vec::new(), Vec::new());
        for signer in any_of {
            if case.by(signer, &made) { met.push(signer) } else { unmet.push(signer) }
        }
        if met.is_empty() && !unmet.is_empty() {
            wanted.push((alternatives(any_of), unmet));
        }
        for signer in all_of {
            if case.by(signer, &made) { met.push(signer) } else { wanted.push((signer.to_string(), vec![signer])) }
        }
        for signer in met.iter().map(ToString::to_string) {
            if !verified.signers.contains(&signer) {
                verified.signers.push(signer);
            }
        }
    }
    if wanted.is_empty() {
        return Ok(verified);
    }
    Err(case.refused(wanted, &made, others, problems, search))
}

impl Case<'_> {
    fn made(&self, signature: Signature) -> Made {
        let place = &signature.place;
        let (identity, what) = match &signature.certificate {
            None => (None, format!("{place}: a signature by another key")),
            Some(certificate) => match (Identity::claimed(certificate), self.trust) {
                (Err(problem), _) => (None, format!("{place}: {problem}")),
                (Ok(claimed), None) => (None, format!("{place}: a certificate that names {claimed}, unchecked")),
                (Ok(claimed), Some(trust)) => match vouched(certificate, &signature, trust) {
                    Ok(()) => (Some(claimed.clone()), format!("{place}: {claimed}")),
                    Err(problem) => (None, format!("{place}: a certificate that names {claimed}, but {problem}")),
                },
            },
        };
        Made { identity, what, signature }
    }

    /// Whether `signer` made one of the signatures.
    fn by(&self, signer: &Signer, made: &[Made]) -> bool {
        match signer {
            Signer::Key { pem, .. } => {
                let key = self.keys.iter().find(|(known, _)| known == pem).map(|(_, key)| key);
                key.is_some_and(|key| made.iter().any(|made| key.signed(&made.signature.message, &made.signature.bytes)))
            }
            Signer::Identity { issuer, subject } => made.iter().any(|made| {
                let identity = made.identity.as_ref();
                identity.is_some_and(|identity| identity.issuer == *issuer && identity.subjects.contains(subject))
            }),
        }
    }

    fn refused(
        &self,
        wanted: Vec<(String, Vec<&Signer>)>,
        made: &[Made],
        others: Vec<String>,
        problems: Vec<String>,
        search: &Search,
    ) -> VerifyError {
        let artifact = self.artifact.to_owned();
        let identity = wanted.iter().flat_map(|(_, signers)| signers).find(|signer| matches!(signer, Signer::Identity { .. }));
        if let (Some(identity), None) = (identity, self.trust) {
            return VerifyError::NoTrustRoot { identity: identity.to_string() };
        }
        if made.is_empty() && others.is_empty() && problems.is_empty() {
            return VerifyError::NotSigned { artifact, looked_for: search.looked_for.clone() };
        }
        if made.is_empty() && others.is_empty() {
            return VerifyError::Malformed { artifact, problems };
        }
        let found = made.iter().map(|made| made.what.clone()).chain(others).chain(problems).collect();
        VerifyError::NotBy { artifact, wanted: wanted.into_iter().map(|(text, _)| text).collect(), found }
    }
}

fn alternatives(signers: &[Signer]) -> String {
    match signers {
        [only] => only.to_string(),
        several => format!("one of {}", several.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}
