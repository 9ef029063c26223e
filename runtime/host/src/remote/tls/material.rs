//! The certificates in force and, for a while after a change, the former ones.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use rustls::{
    ClientConfig,
    client::Resumption,
    pki_types::{CertificateDer, ServerName, UnixTime},
    version::TLS13,
};

use super::{
    failure::Failure,
    verifier::{self, Verifier},
};
use crate::remote::{ClientIdentity, Reason, ServerTrust};

/// Trust that is in force, or was until a moment.
pub(super) struct Dated<T> {
    pub(super) what: Arc<T>,
    pub(super) until: Option<Instant>,
}

/// Of what is shared; `T` itself need not be cloned.
impl<T> Clone for Dated<T> {
    fn clone(&self) -> Self {
        Self { what: Arc::clone(&self.what), until: self.until }
    }
}

impl<T> Dated<T> {
    pub(super) fn is_good(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// Identities and trust, the ones in force first.
#[derive(Clone)]
pub(in crate::remote) struct Material {
    names: Arc<[ServerName<'static>]>,
    unusable: Option<String>,
    identities: Vec<Dated<ClientIdentity>>,
    trusts: Vec<Dated<ServerTrust>>,
}

impl Material {
    /// The new ones, with `former` good until the moment beside it.
    pub(in crate::remote) fn new(
        names: &[String],
        identity: Arc<ClientIdentity>,
        trust: Arc<ServerTrust>,
        former: Option<(&Self, Instant)>,
        most: usize,
    ) -> Self {
        let parsed: Result<Vec<_>, _> = names.iter().map(|name| ServerName::try_from(name.clone()).map_err(|_| name.clone())).collect();
        let (names, unusable) = match parsed {
            Ok(names) if names.is_empty() => (Vec::new(), Some("no server name is given".to_owned())),
            Ok(names) => (names, None),
            Err(name) => (Vec::new(), Some(format!("{name:?} is no server name"))),
        };
        let mut identities = vec![Dated { what: identity, until: None }];
        let mut trusts = vec![Dated { what: trust, until: None }];
        if let Some((former, until)) = former {
            add(&mut identities, &former.identities, until, most, ClientIdentity::digest);
            add(&mut trusts, &former.trusts, until, most, ServerTrust::digest);
        }
        Self { names: names.into(), unusable, identities, trusts }
    }

    /// How many identities may be tried.
    pub(in crate::remote) fn identities(&self, now: Instant) -> usize {
        self.identities.iter().filter(|identity| identity.is_good(now)).count()
    }

    /// The configuration with the identity of this rank, and the name to send.
    pub(in crate::remote) fn config(&self, rank: usize, now: Instant) -> Result<(Arc<ClientConfig>, ServerName<'static>), Failure> {
        let refuse = |message: String| Failure::new(Reason::TlsFailed, message);
        if let Some(problem) = &self.unusable {
            return Err(refuse(problem.clone()));
        }
        let name = self.names.first().cloned().ok_or_else(|| refuse("no server name is given".into()))?;
        let mut good = self.identities.iter().filter(|identity| identity.is_good(now));
        let identity = good.nth(rank).ok_or_else(|| refuse("no client certificate".into()))?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = Verifier::new(Arc::clone(&self.names), self.trusts.clone(), &provider);
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| refuse(error.to_string()))?
            // "Dangerous" is what rustls calls a verifier that is not its own; ours adds pins to it and takes nothing away.
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_auth_cert(identity.what.chain.clone(), identity.what.key.clone_key())
            .map_err(|_| refuse("the client certificate and its key cannot be used".into()))?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        // A resumed session shows no certificate again.
        config.resumption = Resumption::disabled();
        Ok((Arc::new(config), name))
    }

    /// Whether a leaf is only good because the former trust still is.
    pub(in crate::remote) fn is_former(&self, chain: &[CertificateDer<'_>]) -> bool {
        let Some((leaf, intermediates)) = chain.split_first() else { return false };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let in_force = self.trusts.first().map(|dated| Arc::clone(&dated.what));
        in_force.is_some_and(|trust| verifier::judge(&trust, &self.names, leaf, intermediates, UnixTime::since_unix_epoch(now)).is_err())
    }
}

/// Adds what is good of the former ones, shortening their time to `until`.
fn add<T>(all: &mut Vec<Dated<T>>, former: &[Dated<T>], until: Instant, most: usize, digest: impl Fn(&T) -> [u8; 32]) {
    let now = Instant::now();
    for dated in former.iter().filter(|dated| dated.is_good(now)) {
        if all.len() > most || all.iter().any(|known| digest(&known.what) == digest(&dated.what)) {
            continue;
        }
        let until = dated.until.map_or(until, |earlier| earlier.min(until));
        all.push(Dated { what: Arc::clone(&dated.what), until: Some(until) });
    }
}
