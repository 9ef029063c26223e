//! Building with Go.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::Progress;
use super::module::{Copied, Module};
use crate::log;

/// How long a build may be silent before it says that it still runs.
const HEARTBEAT: Duration = Duration::from_secs(20);

/// Set where disk is scarce: Go's own build cache goes with the sources once the programs are built. Kubernetes' has four GB.
const DISCARD: &str = "WEIR_DISCARD_GO_CACHE";

/// Whether Go is there and new enough for a module. Go may fetch a newer one of itself to be so.
pub(super) fn check(module: &Module) -> Result<()> {
    let source = tempfile::tempdir()?;
    write_source(module, source.path())?;
    check_in(module, source.path())
}

/// Builds everything of a module into `out`. `source` is a directory to work in; it may be thrown away afterwards.
pub(super) fn build(module: &Module, source: &Path, out: &Path, progress: &mut Progress<'_>) -> Result<()> {
    write_source(module, source)?;
    check_in(module, source)?;
    let ldflags = module.ldflags()?;
    for (file, package) in module.programs {
        progress(&format!("building {file} (minutes, the first time on a machine) …"));
        let mut go = go(source);
        go.args(["build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", &ldflags, "-o"]).arg(out.join(file)).arg(package);
        run(&mut go, file, &source.join("build.log"), progress)?;
    }
    module.copied.as_ref().map_or(Ok(()), |copied| copy(copied, source, out))
}

fn write_source(module: &Module, source: &Path) -> Result<()> {
    fs::create_dir_all(source)?;
    for (name, text) in module.files {
        fs::write(source.join(name), text)?;
    }
    fs::write(source.join("go.mod"), module.go_mod)?;
    Ok(fs::write(source.join("go.sum"), module.go_sum)?)
}

/// Settings of the user's own Go projects stay out; where modules come from (proxy, toolchain) is the user's business. Without
/// cgo a build needs no C compiler and is the same everywhere.
fn go(source: &Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(source).env("CGO_ENABLED", "0").env("GOFLAGS", "").env("GOWORK", "off").stdin(Stdio::null());
    if std::env::var_os(DISCARD).is_some() {
        command.env("GOCACHE", source.join("go-cache"));
    }
    command
}

fn check_in(module: &Module, source: &Path) -> Result<()> {
    let wanted = module.go_version().unwrap_or("1");
    let cure = module.cure();
    let answer = go(source).arg("version").output().map_err(|error| anyhow!("cannot run `go` ({error}); {cure}"))?;
    if !answer.status.success() {
        bail!("`go version` failed: {}; {cure}", String::from_utf8_lossy(&answer.stderr).trim().replace('\n', " "));
    }
    let said = String::from_utf8_lossy(&answer.stdout);
    match said.split_whitespace().nth(2) {
        Some(version) if at_least(version.trim_start_matches("go"), wanted) => Ok(()),
        Some(version) => bail!("{version} is too old to build {}; {cure}", module.name),
        None => bail!("`go version` says {:?}, which is no version; {cure}", said.trim()),
    }
}

/// Compares numbers between dots. What is not a number, as in `1.27rc1` or a development build, ends the comparison in favour of
/// the Go that is there: it will say itself what it lacks.
fn at_least(version: &str, wanted: &str) -> bool {
    for (have, want) in version.split('.').zip(wanted.split('.')) {
        match (have.parse::<u32>(), want.parse::<u32>()) {
            (Ok(have), Ok(want)) if have == want => {}
            (Ok(have), Ok(want)) => return have > want,
            (Err(_), _) | (_, Err(_)) => return true,
        }
    }
    true
}

fn run(command: &mut Command, what: &str, log: &PathBuf, progress: &mut Progress<'_>) -> Result<()> {
    let out = File::create(log)?;
    let mut child = command.stdout(out.try_clone()?).stderr(out).spawn().context("cannot run `go`")?;
    let start = Instant::now();
    let mut said = start;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if said.elapsed() >= HEARTBEAT {
            said = Instant::now();
            progress(&format!("building {what}: {} s so far", start.elapsed().as_secs()));
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    if !status.success() {
        bail!("`go build` of {what} failed ({status}):\n{}", log::last_lines(log, 20));
    }
    Ok(())
}

/// One YAML file from all of a module's directories, without what only kustomize reads.
fn copy(copied: &Copied, source: &Path, out: &Path) -> Result<()> {
    let answer =
        go(source).args(["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", copied.module]).output().context("cannot run `go list`")?;
    let dir = PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim());
    if !answer.status.success() || dir.as_os_str().is_empty() {
        bail!("`go list` cannot say where {} is: {}", copied.module, String::from_utf8_lossy(&answer.stderr).trim());
    }
    let mut documents = Vec::new();
    for part in copied.dirs {
        let part = dir.join(part);
        let entries = fs::read_dir(&part).with_context(|| format!("{} has no {}", copied.module, part.display()))?;
        let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        files.retain(|path| {
            path.extension().is_some_and(|end| end == "yaml") && path.file_name().is_some_and(|name| name != "kustomization.yaml")
        });
        files.sort();
        for file in files {
            documents.push(fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?);
        }
    }
    Ok(fs::write(out.join(copied.file), documents.join("\n---\n"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        for (have, want, enough) in [
            ("1.26.8", "1.26.0", true),
            ("1.26", "1.26.0", true),
            ("1.9.7", "1.26.0", false),
            ("1.25.9", "1.26.0", false),
            ("2.0", "1.26.0", true),
            ("1.27rc1", "1.26.0", true),
        ] {
            assert_eq!(at_least(have, want), enough, "{have} for {want}");
        }
    }
}
