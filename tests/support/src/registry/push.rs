//! Third-party tools, told where the registry is and whom to trust.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::Registry;
use crate::binaries::{self, SKOPEO};

/// Which manifest skopeo writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Docker's, version 2 schema 2.
    V2s2,
    /// That of the Open Container Initiative.
    Oci,
}

impl Registry {
    /// `skopeo copy` from anything it can name (see [`Image::source`](super::Image::source)) to an image of this registry; `more` goes
    /// before both.
    pub fn skopeo_copy(&self, source: &str, repository: &str, tag: &str, format: Option<Format>, more: &[&str]) -> Result<()> {
        let mut skopeo = Command::new(SKOPEO.find()?);
        skopeo.args(["--insecure-policy", "copy", "--quiet"]).args(self.skopeo_flags("dest-"));
        if let Some(format) = format {
            skopeo.args(["--format", if format == Format::Oci { "oci" } else { "v2s2" }]);
        }
        run(skopeo.args(more).arg(source).arg(format!("docker://{}", self.reference(repository, tag)))).map(drop)
    }

    /// The manifest as skopeo gets it, byte for byte; over TLS too.
    pub fn skopeo_manifest(&self, repository: &str, tag: &str) -> Result<String> {
        let mut skopeo = Command::new(SKOPEO.find()?);
        skopeo.args(["--insecure-policy", "inspect", "--raw"]).args(self.skopeo_flags(""));
        run(skopeo.arg(format!("docker://{}", self.reference(repository, tag))))
    }

    fn skopeo_flags(&self, prefix: &str) -> Vec<String> {
        let mut flags = match self.ca_pem() {
            Some(_) => vec![format!("--{prefix}cert-dir"), self.clients.path().join("certs").display().to_string()],
            None => vec![format!("--{prefix}tls-verify=false")],
        };
        if let Some(credentials) = self.credentials() {
            flags.extend([format!("--{prefix}creds"), format!("{}:{}", credentials.user, credentials.password)]);
        }
        flags
    }

    /// `oras push` of files below `dir`. `files` are `name` or `name:media/type`; a directory is packed. Returns the digest.
    pub fn oras_push(&self, repository: &str, tag: &str, artifact_type: Option<&str>, dir: &Path, files: &[&str]) -> Result<String> {
        let reference = self.reference(repository, tag);
        let mut args = vec!["push", "--format", "go-template={{.digest}}", &reference];
        args.extend(artifact_type.iter().flat_map(|kind| ["--artifact-type", kind]));
        args.extend(files);
        Ok(self.oras(dir, &args)?.trim().to_owned())
    }

    /// `oras` with any arguments, the first of which is its command; what it wrote to its standard output.
    pub fn oras(&self, dir: &Path, args: &[&str]) -> Result<String> {
        let (command, rest) = args.split_first().context("oras needs a command")?;
        let mut oras = Command::new(binaries::oras(&mut |line| say(line))?);
        oras.current_dir(dir).arg(command).arg("--registry-config").arg(self.clients.path().join("config.json"));
        match self.ca_pem() {
            Some(_) => oras.arg("--ca-file").arg(self.clients.path().join("certs/ca.crt")),
            None => oras.arg("--plain-http"),
        };
        run(oras.args(rest))
    }

    /// `crane append`: a new image of layer files (tar, compressed or not), on top of `base` if there is one. Returns its name with
    /// the digest.
    pub fn crane_append(&self, repository: &str, tag: &str, base: Option<&str>, layers: &[&Path]) -> Result<String> {
        let reference = self.reference(repository, tag);
        let mut args = vec!["append".to_owned(), "-t".to_owned(), reference];
        args.extend(base.iter().flat_map(|base| ["-b".to_owned(), (*base).to_owned()]));
        args.extend(layers.iter().flat_map(|layer| ["-f".to_owned(), layer.display().to_string()]));
        Ok(self.crane(&args.iter().map(String::as_str).collect::<Vec<_>>())?.trim().to_owned())
    }

    /// `crane index append`: an index of images that are there already. Returns its name with the digest.
    pub fn crane_index(&self, repository: &str, tag: &str, images: &[&str]) -> Result<String> {
        let reference = self.reference(repository, tag);
        let mut args = vec!["index", "append", "-t", &reference];
        args.extend(images.iter().flat_map(|image| ["-m", image]));
        Ok(self.crane(&args)?.trim().to_owned())
    }

    /// `crane` with any arguments; what it wrote to its standard output.
    pub fn crane(&self, args: &[&str]) -> Result<String> {
        let mut crane = Command::new(binaries::crane(&mut |line| say(line))?);
        crane.env("DOCKER_CONFIG", self.clients.path());
        match self.ca_pem() {
            Some(_) => crane.env("SSL_CERT_FILE", self.clients.path().join("certs/ca.crt")),
            None => crane.arg("--insecure"),
        };
        run(crane.args(args))
    }
}

/// A build takes long enough that silence would look like a hang.
pub(super) fn say(line: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{line}\n").as_bytes());
}

/// Runs a tool to its end; what it wrote to its standard output, or an error with what it wrote to the other one.
pub(super) fn run(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        let args: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy()).collect();
        bail!("{program} {} failed ({}): {}", args.join(" "), output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
