//! Credential helpers: programs named `docker-credential-NAME` that a docker config names.

use std::{
    io::{Read, Write},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::oci::{Credentials, Secret};
use serde::Deserialize;

/// Largest answer, bytes.
const MAX_ANSWER: u64 = 64 << 10;
/// Longest wait: some ask a person.
const MAX_WAIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(10);
/// How the helpers of Docker's library say that they have nothing.
const NOTHING: &str = "credentials not found";
/// The user name of an identity token.
const TOKEN: &str = "<token>";

/// Why a helper gives nothing. What it printed may hold a secret and is told only where it is an error of its own.
#[derive(Debug)]
pub(super) struct Problem {
    program: String,
    what: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the credential helper {} {}", self.program, self.what)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    #[serde(default)]
    username: String,
    #[serde(default)]
    secret: String,
}

/// Asks helper `name` for the credentials of `server`; `None` where it has none.
pub(super) fn get(name: &str, server: &str) -> Result<Option<Credentials>, Problem> {
    let harmless = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    // A name with a slash would be a path, and Docker has none.
    if !name.chars().all(harmless) || name.starts_with(['.', '-']) {
        return Err(Problem { program: format!("{name:?}"), what: "has a name that is none; remove it from the config".to_owned() });
    }
    ask(&format!("docker-credential-{name}"), server)
}

fn ask(program: &str, server: &str) -> Result<Option<Credentials>, Problem> {
    let problem = |what: String| Problem { program: program.to_owned(), what };
    let mut child = Command::new(program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| problem(format!("cannot be run: {error}; install it, or log in again without it")))?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that reads nothing says what it says.
        let _ = stdin.write_all(server.as_bytes());
    }
    let stdout = child.stdout.take();
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        stdout.map(|stdout| stdout.take(MAX_ANSWER).read_to_end(&mut text)).transpose().map(|_| text)
    });
    let succeeded = end(&mut child).map_err(|what| problem(what.to_owned()))?;
    let text = reader.join().ok().and_then(Result::ok).unwrap_or_default();
    if !succeeded {
        let said: String = String::from_utf8_lossy(&text).chars().filter(|c| !c.is_control()).take(200).collect();
        return if said.contains(NOTHING) { Ok(None) } else { Err(problem(format!("fails: {said}"))) };
    }
    let answer: Answer =
        serde_json::from_slice(&text).map_err(|_| problem("does not answer with JSON of a user name and a secret".into()))?;
    Ok(match answer {
        Answer { secret, .. } if secret.is_empty() => None,
        Answer { username, secret } if username == TOKEN => Some(Credentials::IdentityToken { token: Secret::new(secret) }),
        Answer { username, secret } => Some(Credentials::Basic { username, password: Secret::new(secret) }),
    })
}

/// Waits for it, and says whether it succeeded.
fn end(child: &mut Child) -> Result<bool, &'static str> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.success()),
            Ok(None) if start.elapsed() < MAX_WAIT => thread::sleep(PAUSE),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err("does not end within a minute");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a helper of these lines gives.
    fn helper(lines: &str) -> Result<Option<Credentials>, String> {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("docker-credential-test");
        std::fs::write(&path, format!("#!/bin/sh\n{lines}\n")).expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).expect("permissions");
        // Another thread that starts a program may hold the new file open for a moment.
        for _ in 0..100 {
            match ask(&path.display().to_string(), "ghcr.io") {
                Err(problem) if problem.what.contains("busy") => thread::sleep(PAUSE),
                done => return done.map_err(|problem| problem.to_string()),
            }
        }
        Err("busy".into())
    }

    #[test]
    fn a_helper_is_told_the_server_and_answers_once() {
        let lines = r#"[ "$1" = get ] && read -r server; printf '{"ServerURL":"x","Username":"u","Secret":"of %s"}' "$server""#;
        let password = Secret::new("of ghcr.io");
        assert_eq!(helper(lines), Ok(Some(Credentials::Basic { username: "u".into(), password })));
        let lines = r#"printf '{"Username":"<token>","Secret":"t"}'"#;
        assert_eq!(helper(lines), Ok(Some(Credentials::IdentityToken { token: Secret::new("t") })));
    }

    #[test]
    fn nothing_is_no_problem() {
        assert_eq!(helper("echo 'credentials not found in native keychain'; exit 1"), Ok(None));
        assert_eq!(helper(r#"echo '{"Username":"","Secret":""}'"#), Ok(None));
    }

    #[test]
    fn a_helper_that_fails_is_named() {
        let error = helper("echo 'the store is locked'; exit 1").unwrap_err();
        assert!(error.contains("docker-credential-test fails: the store is locked"), "{error}");
        let error = helper("echo secret").unwrap_err();
        assert!(error.contains("does not answer with JSON") && !error.contains("secret\""), "{error}");
        let error = ask("docker-credential-there-is-none", "x").unwrap_err().to_string();
        assert!(error.contains("cannot be run"), "{error}");
        for name in ["../evil", "a b", "-x"] {
            assert!(get(name, "x").is_err_and(|problem| problem.to_string().contains("remove it")), "{name}");
        }
    }
}
