//! The programs of a control plane: from `KUBEBUILDER_ASSETS`, from a cache, or built from Go modules with pinned versions. Programs
//! that push to registries are built in the same way, or come with Debian.

mod cache;
mod debian;
mod go;
mod module;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

pub use debian::{DOCKER_REGISTRY, Debian, HTPASSWD, NGINX, SKOPEO, UMOCI, ZSTD, not_installed};

use cache::Cache;
use module::{CNPG_PLUGIN, COSIGN, CRANE, ETCD, HELM, KUBECONFORM, KUBERNETES, KWOK, Module, ORAS, STAGES};

/// What says progress: one line at a time, without a line end.
pub type Progress<'a> = dyn FnMut(&str) + 'a;

/// Where every program is.
#[derive(Debug, Clone)]
pub struct Binaries {
    /// The store of the API server.
    pub etcd: PathBuf,
    /// The API server.
    pub kube_apiserver: PathBuf,
    /// Deployments to ReplicaSets to Pods, garbage collection, autoscaling.
    pub kube_controller_manager: PathBuf,
    /// Pods to nodes.
    pub kube_scheduler: PathBuf,
    /// Plays the kubelets.
    pub kwok: PathBuf,
    /// How KWOK's nodes and pods live: ready at once, with lease heartbeats.
    pub kwok_stages: PathBuf,
}

/// Finds the programs; builds those that are nowhere yet, which takes minutes once per machine and version.
pub fn ensure(progress: &mut Progress<'_>) -> Result<Binaries> {
    let assets = Assets::from_env()?;
    let cache = Cache::open()?;
    for module in assets.missing() {
        cache.ensure(module, progress)?;
    }
    let path = |module: &Module, file: &str| assets.find(file).unwrap_or_else(|| cache.dir(module).join(file));
    Ok(Binaries {
        etcd: path(&ETCD, "etcd"),
        kube_apiserver: path(&KUBERNETES, "kube-apiserver"),
        kube_controller_manager: path(&KUBERNETES, "kube-controller-manager"),
        kube_scheduler: path(&KUBERNETES, "kube-scheduler"),
        kwok: path(&KWOK, "kwok"),
        kwok_stages: path(&KWOK, STAGES),
    })
}

/// Why this machine cannot have a control plane, in one line; `None` if it can. For tests, which skip then. Builds nothing.
pub fn missing() -> Option<String> {
    let check = || -> Result<()> {
        let (assets, cache) = (Assets::from_env()?, Cache::open()?);
        let to_build = assets.missing().find(|module| !cache.has(module));
        to_build.map_or(Ok(()), go::check)
    };
    check().err().map(|error| format!("{error:#}"))
}

/// Where `oras` is, which pushes bare files; built if it is nowhere yet.
pub fn oras(progress: &mut Progress<'_>) -> Result<PathBuf> {
    tool(&ORAS, "oras", progress)
}

/// Where `crane` is, which appends layers and makes indexes; built if it is nowhere yet.
pub fn crane(progress: &mut Progress<'_>) -> Result<PathBuf> {
    tool(&CRANE, "crane", progress)
}

/// Where `cosign` is, which signs; built if it is nowhere yet.
pub fn cosign(progress: &mut Progress<'_>) -> Result<PathBuf> {
    tool(&COSIGN, "cosign", progress)
}

/// Where `helm` is, which installs the chart; built if it is nowhere yet.
pub fn helm(progress: &mut Progress<'_>) -> Result<PathBuf> {
    tool(&HELM, "helm", progress)
}

/// Where `kubeconform` is, which compares manifests with schemas; built if it is nowhere yet.
pub fn kubeconform(progress: &mut Progress<'_>) -> Result<PathBuf> {
    tool(&KUBECONFORM, "kubeconform", progress)
}

/// Where the remote plugin of CloudNativePG's own server stack is; built if it is nowhere yet.
pub fn cnpg_plugin(progress: &mut Progress<'_>) -> Result<PathBuf> {
    tool(&CNPG_PLUGIN, "cnpg-plugin", progress)
}

fn tool(module: &Module, file: &str, progress: &mut Progress<'_>) -> Result<PathBuf> {
    let cache = Cache::open()?;
    cache.ensure(module, progress)?;
    Ok(cache.dir(module).join(file))
}

/// Why this machine cannot have `oras` and `crane`, in one line; `None` if it can. Builds nothing.
pub fn missing_tools() -> Option<String> {
    missing_of(&[&ORAS, &CRANE])
}

/// Why this machine cannot have `cosign`, in one line; `None` if it can. Builds nothing.
pub fn missing_cosign() -> Option<String> {
    missing_of(&[&COSIGN])
}

/// Why this machine cannot have `helm` and `kubeconform`, in one line; `None` if it can. Builds nothing.
pub fn missing_chart_tools() -> Option<String> {
    missing_of(&[&HELM, &KUBECONFORM])
}

/// Why this machine cannot have the plugin of CloudNativePG's server stack, in one line; `None` if it can. Builds nothing.
pub fn missing_cnpg_plugin() -> Option<String> {
    missing_of(&[&CNPG_PLUGIN])
}

fn missing_of(modules: &[&Module]) -> Option<String> {
    let check = || -> Result<()> {
        let cache = Cache::open()?;
        let to_build = modules.iter().find(|module| !cache.has(module));
        to_build.map_or(Ok(()), |module| go::check(module))
    };
    check().err().map(|error| format!("{error:#}"))
}

/// The directory that other Kubernetes projects use for such programs, if it is named.
struct Assets(Option<PathBuf>);

impl Assets {
    fn from_env() -> Result<Self> {
        Self::new(std::env::var_os("KUBEBUILDER_ASSETS").filter(|dir| !dir.is_empty()).map(PathBuf::from))
    }

    /// A directory without the two programs that everybody expects there is a mistake, and a long build would hide it.
    fn new(dir: Option<PathBuf>) -> Result<Self> {
        let assets = Self(dir);
        if let Some(dir) = &assets.0 {
            for file in ["kube-apiserver", "etcd"] {
                if assets.find(file).is_none() {
                    bail!("KUBEBUILDER_ASSETS names {}, which has no {file}; unset it or name another directory", dir.display());
                }
            }
        }
        Ok(assets)
    }

    fn find(&self, file: &str) -> Option<PathBuf> {
        self.0.as_deref().map(|dir: &Path| dir.join(file)).filter(|path| path.is_file())
    }

    /// Modules of which at least one product is not there.
    fn missing(&self) -> impl Iterator<Item = &'static Module> + '_ {
        [&ETCD, &KUBERNETES, &KWOK].into_iter().filter(|module| module.products().any(|file| self.find(file).is_none()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(assets: &Assets) -> Vec<&'static str> {
        assets.missing().map(|module| module.name).collect()
    }

    #[test]
    fn without_assets_everything_is_built() {
        assert_eq!(names(&Assets::new(None).unwrap()), ["etcd", "kubernetes", "kwok"]);
    }

    #[test]
    fn what_assets_have_is_not_built() {
        let dir = tempfile::tempdir().unwrap();
        let error = Assets::new(Some(dir.path().to_owned())).err().unwrap().to_string();
        assert!(error.contains("has no kube-apiserver"), "{error}");
        for file in ["kube-apiserver", "etcd"] {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        let assets = Assets::new(Some(dir.path().to_owned())).unwrap();
        assert_eq!(names(&assets), ["kubernetes", "kwok"]);
        assert_eq!(assets.find("etcd"), Some(dir.path().join("etcd")));
        for file in ["kube-controller-manager", "kube-scheduler"] {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        assert_eq!(names(&assets), ["kwok"]);
    }
}
