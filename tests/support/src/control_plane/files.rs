//! What the components read: users, keys, kubeconfigs, the audit policy. Everything secret is readable by the owner only.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::User;

/// One line per request that has ended; a watch ends late. Blocking mode, so that a request's line is there before its answer.
const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
";

/// Who has all rights. The components have a user each, so that the audit log tells their requests from those of a test.
pub(super) const ADMIN: &str = "admin";
pub(super) const CONTROLLER_MANAGER: &str = "kube-controller-manager";
pub(super) const SCHEDULER: &str = "kube-scheduler";
pub(super) const KWOK: &str = "kwok";
const MASTERS: [&str; 4] = [ADMIN, CONTROLLER_MANAGER, SCHEDULER, KWOK];

/// Where things are in a run directory.
#[derive(Debug)]
pub(super) struct Files {
    dir: PathBuf,
    kubeconfigs: Vec<(String, PathBuf)>,
    admin_token: String,
}

impl Files {
    /// Writes everything that must be there before the first component starts.
    pub(super) fn write(dir: &Path, url: &str, users: &[User]) -> Result<Self> {
        let mut files = Self { dir: dir.to_owned(), kubeconfigs: Vec::new(), admin_token: token()? };
        for part in ["logs", "kubeconfigs"] {
            fs::create_dir_all(dir.join(part))?;
        }
        let mut tokens = String::new();
        for name in MASTERS {
            let path = if name == ADMIN { dir.join("kubeconfig") } else { dir.join("kubeconfigs").join(name) };
            let token = if name == ADMIN { files.admin_token.clone() } else { token()? };
            files.add(name, &["system:masters".to_owned()], path, &token, url, &mut tokens)?;
        }
        for (index, user) in users.iter().enumerate() {
            if files.kubeconfigs.iter().any(|(name, _)| *name == user.name) {
                bail!("there are two users named {}; a name of a user is given once, and not one of {MASTERS:?}", user.name);
            }
            let path = dir.join("kubeconfigs").join(format!("{index}-{}", file_name(&user.name)));
            files.add(&user.name, &user.groups, path, &token()?, url, &mut tokens)?;
        }
        private(&files.tokens(), &tokens)?;
        fs::write(files.audit_policy(), AUDIT_POLICY)?;
        let key = rcgen::KeyPair::generate().context("cannot make a key for service account tokens")?;
        private(&files.account_key(), &key.serialize_pem())?;
        fs::write(files.account_public_key(), key.public_key_pem())?;
        Ok(files)
    }

    fn add(&mut self, name: &str, groups: &[String], path: PathBuf, token: &str, url: &str, tokens: &mut String) -> Result<()> {
        let fields = [token, name, name, &groups.join(",")];
        tokens.push_str(&fields.map(csv_field).join(","));
        tokens.push('\n');
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "weir", "cluster": { "server": url, "certificate-authority": self.certificate() } }],
            "users": [{ "name": name, "user": { "token": token } }],
            "contexts": [{ "name": "weir", "context": { "cluster": "weir", "user": name } }],
            "current-context": "weir",
        });
        private(&path, &format!("{kubeconfig:#}\n"))?;
        self.kubeconfigs.push((name.to_owned(), path));
        Ok(())
    }

    /// The kubeconfig of a user.
    pub(super) fn kubeconfig(&self, user: &str) -> Result<&Path> {
        match self.kubeconfigs.iter().find(|(name, _)| name == user) {
            Some((_, path)) => Ok(path),
            None => {
                let known = self.kubeconfigs.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
                bail!("no user {user} was given when this control plane started; there are: {known}")
            }
        }
    }

    pub(super) fn admin_token(&self) -> &str {
        &self.admin_token
    }

    pub(super) fn log(&self, component: &str) -> PathBuf {
        self.dir.join("logs").join(format!("{component}.log"))
    }

    pub(super) fn etcd_data(&self) -> PathBuf {
        self.dir.join("etcd")
    }

    pub(super) fn certs(&self) -> PathBuf {
        self.dir.join("certs")
    }

    /// Self-signed, written by the API server when it starts for the first time; followed by the authority that signed it.
    pub(super) fn certificate(&self) -> PathBuf {
        self.certs().join("apiserver.crt")
    }

    pub(super) fn tokens(&self) -> PathBuf {
        self.dir.join("tokens.csv")
    }

    pub(super) fn account_key(&self) -> PathBuf {
        self.dir.join("sa.key")
    }

    pub(super) fn account_public_key(&self) -> PathBuf {
        self.dir.join("sa.pub")
    }

    pub(super) fn audit_policy(&self) -> PathBuf {
        self.dir.join("audit-policy.yaml")
    }

    pub(super) fn audit_log(&self) -> PathBuf {
        self.dir.join("audit.log")
    }
}

/// 128 bits nobody on this machine can guess.
fn token() -> Result<String> {
    let mut bytes = [0_u8; 16];
    fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)).context("cannot read /dev/urandom")?;
    Ok(hex::encode(bytes))
}

fn private(path: &Path, text: &str) -> Result<()> {
    let write = || OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?.write_all(text.as_bytes());
    write().with_context(|| format!("cannot write {}", path.display()))
}

fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// A user's name without what a path cannot have.
fn file_name(user: &str) -> String {
    user.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_user_gets_a_token_its_groups_and_a_kubeconfig() {
        let dir = tempfile::tempdir().unwrap();
        let name = "system:serviceaccount:weir-system:weir";
        let user = User { name: name.to_owned(), groups: vec!["a".to_owned(), "b".to_owned()] };
        let files = Files::write(dir.path(), "https://127.0.0.1:1", std::slice::from_ref(&user)).unwrap();

        let tokens = fs::read_to_string(files.tokens()).unwrap();
        let line = tokens.lines().last().unwrap();
        assert!(line.ends_with(&format!(",{name},{name},\"a,b\"")), "{line}");
        let path = files.kubeconfig(name).unwrap();
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        let kubeconfig: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        assert_eq!(kubeconfig["users"][0]["user"]["token"].as_str(), line.split(',').next());
        assert_eq!(kubeconfig["clusters"][0]["cluster"]["server"], "https://127.0.0.1:1");

        let error = files.kubeconfig("nobody").unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
        let error = Files::write(dir.path(), "", &[user.clone(), user]).unwrap_err().to_string();
        assert!(error.contains("two users"), "{error}");
    }

    #[test]
    fn fields_with_separators_are_quoted() {
        assert_eq!(csv_field("a"), "a");
        assert_eq!(csv_field("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
