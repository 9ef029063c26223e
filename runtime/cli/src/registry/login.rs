//! Where credentials are looked for at a command line.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use weir_host::oci::{
    Credentials, CredentialsError, Reference,
    login::{Helpers, Login as File},
};

use crate::exit::Failure;

/// Where credentials are looked for when no file is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// Where Docker and podman keep them.
    Docker,
    /// Nowhere.
    Nowhere,
}

/// A docker config, if there is one.
pub(super) struct Login(Option<File>);

impl Login {
    pub(super) fn find(named: Option<&Path>, lookup: Lookup) -> Result<Self, Failure> {
        // Whoever runs the command may run his own programs.
        let read = |path: &Path, named| {
            File::read(path, named, Helpers::All).map(Some).map_err(|error| Failure::usage(format!("docker config {error}")))
        };
        if let Some(path) = named.filter(|path| !path.as_os_str().is_empty()) {
            return read(path, true).map(Self);
        }
        match lookup {
            Lookup::Nowhere => Ok(Self(None)),
            Lookup::Docker => {
                let found = places(|name| std::env::var_os(name)).into_iter().find(|path| path.is_file());
                found.map_or(Ok(None), |path| read(&path, false)).map(Self)
            }
        }
    }

    pub(super) fn of(&self, reference: &Reference) -> Result<Credentials, Failure> {
        let Some(file) = &self.0 else { return Ok(Credentials::Anonymous) };
        file.of(reference).map(Option::unwrap_or_default).map_err(|error| Failure::usage(error.to_string()))
    }

    /// What a mirror is shown, as the puller asks for it.
    pub(super) fn of_mirror(&self, mirror: &Reference) -> Result<Credentials, CredentialsError> {
        let nobody = || CredentialsError::NoEntry { place: mirror.place(), keys: "nothing".to_owned() };
        self.0.as_ref().ok_or_else(nobody)?.of_mirror(mirror)
    }
}

/// Docker's file, else podman's. Whoever moves Docker's means no other.
fn places(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let given = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(dir) = given("DOCKER_CONFIG") {
        return vec![dir.join("config.json")];
    }
    let docker = given("HOME").map(|home| home.join(".docker/config.json"));
    let podman = given("XDG_RUNTIME_DIR").map(|dir| dir.join("containers/auth.json"));
    docker.into_iter().chain(podman).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_looked_for_where_tools_leave_them() {
        let found = |pairs: &[(&str, &str)]| {
            places(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value)))
                .iter()
                .map(|path| path.display().to_string())
                .collect::<Vec<_>>()
        };
        let home = [("HOME", "/home/a"), ("XDG_RUNTIME_DIR", "/run/user/1")];
        assert_eq!(found(&home), ["/home/a/.docker/config.json", "/run/user/1/containers/auth.json"]);
        assert_eq!(found(&[home[0], ("DOCKER_CONFIG", "/d")]), ["/d/config.json"]);
        assert_eq!(found(&[home[0], ("DOCKER_CONFIG", "")]), ["/home/a/.docker/config.json"]);
        assert!(found(&[]).is_empty());
    }
}
