//! The Go modules below `control-plane/`, and `cnpg-plugin/`. Their text is compiled in, so that a build needs no source tree and writes to none.

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

/// KWOK's stages, copied out of its module into one file.
pub(super) const STAGES: &str = "kwok-stages.yaml";

/// A module with pinned versions and what is built from it.
pub(super) struct Module {
    /// In messages, and the beginning of its directory in the cache.
    pub(super) name: &'static str,
    pub(super) go_mod: &'static str,
    pub(super) go_sum: &'static str,
    /// File name and Go package of each program.
    pub(super) programs: &'static [(&'static str, &'static str)],
    /// The module whose version the programs report, if they must be told.
    versioned: Option<&'static str>,
    /// A file put together from files of a module: its name, the module, and the directories in it.
    pub(super) copied: Option<Copied>,
    /// Go files of our own: name and text.
    pub(super) files: &'static [(&'static str, &'static str)],
}

/// Data that comes with a Go module.
pub(super) struct Copied {
    pub(super) file: &'static str,
    pub(super) module: &'static str,
    pub(super) dirs: &'static [&'static str],
}

pub(super) const ETCD: Module = Module {
    name: "etcd",
    go_mod: include_str!("../../control-plane/etcd/go.mod"),
    go_sum: include_str!("../../control-plane/etcd/go.sum"),
    programs: &[("etcd", "go.etcd.io/etcd/server/v3")],
    versioned: None,
    copied: None,
    files: &[],
};

pub(super) const KUBERNETES: Module = Module {
    name: "kubernetes",
    go_mod: include_str!("../../control-plane/kubernetes/go.mod"),
    go_sum: include_str!("../../control-plane/kubernetes/go.sum"),
    programs: &[
        ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
        ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
        ("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
    ],
    versioned: Some("k8s.io/kubernetes"),
    copied: None,
    files: &[],
};

pub(super) const KWOK: Module = Module {
    name: "kwok",
    go_mod: include_str!("../../control-plane/kwok/go.mod"),
    go_sum: include_str!("../../control-plane/kwok/go.sum"),
    programs: &[("kwok", "sigs.k8s.io/kwok/cmd/kwok")],
    versioned: None,
    copied: Some(Copied {
        file: STAGES,
        module: "sigs.k8s.io/kwok",
        dirs: &["kustomize/stage/node/fast", "kustomize/stage/node/heartbeat-with-lease", "kustomize/stage/pod/fast"],
    }),
    files: &[],
};

pub(super) const ORAS: Module = Module {
    name: "oras",
    go_mod: include_str!("../../control-plane/oras/go.mod"),
    go_sum: include_str!("../../control-plane/oras/go.sum"),
    programs: &[("oras", "oras.land/oras/cmd/oras")],
    versioned: None,
    copied: None,
    files: &[],
};

pub(super) const CRANE: Module = Module {
    name: "crane",
    go_mod: include_str!("../../control-plane/crane/go.mod"),
    go_sum: include_str!("../../control-plane/crane/go.sum"),
    programs: &[("crane", "github.com/google/go-containerregistry/cmd/crane")],
    versioned: None,
    copied: None,
    files: &[],
};

pub(super) const COSIGN: Module = Module {
    name: "cosign",
    go_mod: include_str!("../../control-plane/cosign/go.mod"),
    go_sum: include_str!("../../control-plane/cosign/go.sum"),
    programs: &[("cosign", "github.com/sigstore/cosign/v3/cmd/cosign")],
    versioned: None,
    copied: None,
    files: &[],
};

pub(super) const HELM: Module = Module {
    name: "helm",
    go_mod: include_str!("../../control-plane/helm/go.mod"),
    go_sum: include_str!("../../control-plane/helm/go.sum"),
    programs: &[("helm", "helm.sh/helm/v3/cmd/helm")],
    versioned: None,
    copied: None,
    files: &[],
};

pub(super) const KUBECONFORM: Module = Module {
    name: "kubeconform",
    go_mod: include_str!("../../control-plane/kubeconform/go.mod"),
    go_sum: include_str!("../../control-plane/kubeconform/go.sum"),
    programs: &[("kubeconform", "github.com/yannh/kubeconform/cmd/kubeconform")],
    versioned: None,
    copied: None,
    files: &[],
};

/// A remote plugin on the server stack that plugins of CloudNativePG are made with.
pub(super) const CNPG_PLUGIN: Module = Module {
    name: "cnpg-plugin",
    go_mod: include_str!("../../cnpg-plugin/go.mod"),
    go_sum: include_str!("../../cnpg-plugin/go.sum"),
    programs: &[("cnpg-plugin", ".")],
    versioned: None,
    copied: None,
    files: &[
        ("main.go", include_str!("../../cnpg-plugin/main.go")),
        ("answers.go", include_str!("../../cnpg-plugin/answers.go")),
        ("identity.go", include_str!("../../cnpg-plugin/identity.go")),
        ("hooks.go", include_str!("../../cnpg-plugin/hooks.go")),
    ],
};

impl Module {
    /// Every file a build leaves behind.
    pub(super) fn products(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.programs.iter().map(|(file, _)| *file).chain(self.copied.as_ref().map(|copied| copied.file))
    }

    /// Flags of the linker. Kubernetes takes its version from them, and clients such as helm refuse a server without one.
    pub(super) fn ldflags(&self) -> Result<String> {
        let mut flags = "-s -w".to_owned();
        if let Some(module) = self.versioned {
            let version = self.version_of(module).with_context(|| format!("control-plane/{}/go.mod requires no {module}", self.name))?;
            let mut parts = version.trim_start_matches('v').split('.');
            let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            for (name, value) in [("gitVersion", version), ("gitMajor", major), ("gitMinor", minor)] {
                flags.push_str(&format!(" -X k8s.io/component-base/version.{name}={value}"));
            }
        }
        Ok(flags)
    }

    /// What to do on a machine that cannot build it. Only a control plane's programs may come from elsewhere.
    pub(super) fn cure(&self) -> String {
        let install = format!("install Go {} or newer", self.go_version().unwrap_or("1"));
        match self.name {
            "oras" | "crane" | "cosign" | "helm" | "kubeconform" | "cnpg-plugin" => install,
            _ => format!("{install}, or name a directory with kube-apiserver and etcd in KUBEBUILDER_ASSETS"),
        }
    }

    /// The Go version that go.mod asks for.
    pub(super) fn go_version(&self) -> Option<&'static str> {
        self.go_mod.lines().find_map(|line| line.strip_prefix("go "))
    }

    /// The name of its directory in the cache: every change of what goes into a build is another directory.
    pub(super) fn key(&self) -> Result<String> {
        let mut hash = Sha256::new();
        for part in [self.go_mod, self.go_sum, &self.ldflags()?, &self.products().collect::<Vec<_>>().join(" ")] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        for part in self.files.iter().flat_map(|(name, text)| [name, text]) {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        let digest = hex::encode(hash.finalize());
        Ok(format!("{}-{}", self.name, digest.get(..16).unwrap_or(&digest)))
    }

    fn version_of(&self, module: &str) -> Option<&'static str> {
        self.go_mod
            .lines()
            .find_map(|line| line.trim().trim_start_matches("require ").strip_prefix(module)?.strip_prefix(' ')?.split(' ').next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubernetes_is_told_its_version() {
        let version = KUBERNETES.version_of("k8s.io/kubernetes").unwrap();
        assert!(version.starts_with("v1."), "{version}");
        let flags = KUBERNETES.ldflags().unwrap();
        assert!(flags.contains(&format!("version.gitVersion={version} ")) && flags.contains("version.gitMajor=1 "), "{flags}");
        assert_eq!(ETCD.ldflags().unwrap(), "-s -w");
    }

    #[test]
    fn keys_differ_and_go_versions_are_known() {
        let modules = [&ETCD, &KUBERNETES, &KWOK, &ORAS, &CRANE, &COSIGN, &HELM, &KUBECONFORM, &CNPG_PLUGIN];
        for module in modules {
            assert!(module.key().unwrap().starts_with(module.name));
            assert!(module.go_version().unwrap().starts_with("1."));
        }
    }
}
