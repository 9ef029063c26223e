//! Which places a reference is asked for at, and with which CA: the longest prefix decides.

use std::sync::Arc;

use super::{
    Error, PullerError, Reference, Registries, Rule,
    http::Transport,
    reference::{below, prefix},
};

/// Rules are looked through for every call, and each with a CA has an HTTP client of its own.
const MAX_RULES: usize = 256;
/// All of them may be waited for, one after the other.
const MAX_MIRRORS: usize = 16;

/// [`Rule`]s, read.
pub(super) struct Rules(Vec<Read>);

struct Read {
    prefix: String,
    mirrors: Vec<String>,
    mirror_only: bool,
    /// Where the rule has a CA of its own.
    transport: Option<Transport>,
}

impl Rules {
    pub(super) fn new(registries: &Arc<Registries>) -> Result<Self, PullerError> {
        let mut rules: Vec<Read> = Vec::new();
        for rule in &registries.rules {
            let wrong = |problem: String| PullerError::Rule { prefix: rule.prefix.clone(), problem };
            if rules.len() == MAX_RULES {
                return Err(wrong(format!("it is one of more than {MAX_RULES}; leave some out")));
            }
            let read = Read::new(rule, registries)?;
            if rules.iter().any(|other| other.prefix == read.prefix) {
                return Err(wrong("there are two of them; merge them".to_owned()));
            }
            rules.push(read);
        }
        Ok(Self(rules))
    }

    /// The rule of the longest prefix.
    fn of(&self, reference: &Reference) -> Option<&Read> {
        let place = reference.place();
        self.0.iter().filter(|rule| below(&place, &rule.prefix).is_some()).max_by_key(|rule| rule.prefix.len())
    }

    /// Where to ask for `reference`, in order. Never empty.
    pub(super) fn places(&self, reference: &Reference) -> Vec<Result<Reference, Error>> {
        let Some(rule) = self.of(reference) else { return vec![Ok(reference.clone())] };
        let at = |mirror: &String| {
            let moved = reference.moved(&rule.prefix, mirror);
            moved.map_err(|source| Error::Mirror { mirror: mirror.clone(), place: reference.place(), source })
        };
        let own = (!rule.mirror_only).then(|| Ok(reference.clone()));
        rule.mirrors.iter().map(at).chain(own).collect()
    }

    /// What reaches `reference`, if not what reaches all others.
    pub(super) fn transport(&self, reference: &Reference) -> Option<&Transport> {
        self.of(reference)?.transport.as_ref()
    }
}

impl Read {
    fn new(rule: &Rule, registries: &Arc<Registries>) -> Result<Self, PullerError> {
        let wrong = |problem: String| PullerError::Rule { prefix: rule.prefix.clone(), problem };
        if rule.mirrors.len() > MAX_MIRRORS {
            return Err(wrong(format!("it has {} mirrors, at most {MAX_MIRRORS} are allowed", rule.mirrors.len())));
        }
        if rule.mirror_only && rule.mirrors.is_empty() {
            return Err(wrong("only its mirrors may be asked, and it has none; name one".to_owned()));
        }
        let transport = rule.ca.as_ref().map(|ca| Transport::new(registries.clone(), Some(ca))).transpose();
        let transport = transport.map_err(|error| match error {
            // Bundles are counted from 1, and those of all registries were read before.
            PullerError::Ca { number: 0 } => wrong("its CA holds no certificate in PEM form".to_owned()),
            other @ (PullerError::Ca { .. }
            | PullerError::Rule { .. }
            | PullerError::Proxy(_)
            | PullerError::Listed(_)
            | PullerError::UserAgent
            | PullerError::Client(_)) => other,
        })?;
        let mirror =
            |text: &String| prefix(text).map_err(|problem| wrong(format!("its mirror \"{}\": {problem}", super::text::name(text))));
        Ok(Self {
            prefix: prefix(&rule.prefix).map_err(|problem| wrong(problem.to_string()))?,
            mirrors: rule.mirrors.iter().map(mirror).collect::<Result<_, _>>()?,
            mirror_only: rule.mirror_only,
            transport,
        })
    }
}
