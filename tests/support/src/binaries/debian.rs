//! Programs that a machine must have installed.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

/// A program, the files it cannot work without, and the Debian packages that bring them.
#[derive(Debug, Clone, Copy)]
pub struct Debian {
    name: &'static str,
    files: &'static [&'static str],
    packages: &'static str,
}

/// A registry.
pub const DOCKER_REGISTRY: Debian = Debian { name: "docker-registry", files: &[], packages: "docker-registry" };
/// Writes password files with bcrypt.
pub const HTPASSWD: Debian = Debian { name: "htpasswd", files: &[], packages: "apache2-utils" };
/// Copies images between registries, directories and archives.
pub const SKOPEO: Debian = Debian { name: "skopeo", files: &[], packages: "skopeo" };
/// Makes images in a directory.
pub const UMOCI: Debian = Debian { name: "umoci", files: &[], packages: "umoci" };
/// Compresses.
pub const ZSTD: Debian = Debian { name: "zstd", files: &[], packages: "zstd" };
/// A web server that runs Lua.
pub const NGINX: Debian = Debian {
    name: "nginx",
    files: &["/usr/lib/nginx/modules/ndk_http_module.so", "/usr/lib/nginx/modules/ngx_http_lua_module.so"],
    packages: "nginx-light libnginx-mod-http-lua",
};

impl Debian {
    /// Where it is; an error names what to install. Servers are in `sbin`, which not every user's `PATH` names.
    pub fn find(&self) -> Result<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let dirs = std::env::split_paths(&path).chain(["/usr/local/sbin", "/usr/sbin"].map(PathBuf::from));
        let found = dirs.map(|dir| dir.join(self.name)).find(|file| file.is_file());
        let lacking = self.files.iter().find(|file| !Path::new(file).is_file());
        match (found, lacking) {
            (Some(found), None) => Ok(found),
            (Some(_), Some(file)) => bail!("{} has no {file}; install the Debian packages {}", self.name, self.packages),
            (None, _) => bail!("{} is not installed; on Debian: apt-get install {}", self.name, self.packages),
        }
    }
}

/// Why this machine cannot run these, in one line; `None` if it can. For tests, which skip then.
pub fn not_installed(programs: &[Debian]) -> Option<String> {
    let lacking: Vec<String> = programs.iter().filter_map(|program| program.find().err()).map(|error| error.to_string()).collect();
    (!lacking.is_empty()).then(|| lacking.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_named_with_its_package() {
        let nothing = Debian { name: "weir-no-such-program", files: &[], packages: "nothing" };
        let broken = Debian { name: "sh", files: &["/weir/no/such/file"], packages: "dash" };
        let sound = Debian { name: "sh", files: &["/bin/sh"], packages: "dash" };
        assert_eq!(not_installed(&[sound]), None);
        let reason = not_installed(&[nothing, broken, sound]).unwrap();
        assert!(reason.contains("weir-no-such-program is not installed; on Debian: apt-get install nothing"), "{reason}");
        assert!(reason.contains("sh has no /weir/no/such/file; install the Debian packages dash"), "{reason}");
    }
}
