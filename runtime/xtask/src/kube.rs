//! `kube`: a Kubernetes control plane on this machine. The work is in weir-testkit, which the tests use too; it is run and not
//! linked, so that xtask needs no client of Kubernetes.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use clap::Subcommand;

use crate::process;
use crate::workspace::Workspace;

/// What to do with the control plane.
#[derive(Subcommand)]
pub(crate) enum Action {
    /// Start it: etcd, kube-apiserver, controllers, scheduler, and KWOK in place of nodes; Ctrl-C stops it
    ///
    /// The programs come from the directory that KUBEBUILDER_ASSETS names, or from the user's cache, or are built with Go: that
    /// takes minutes once. Several can run side by side in different directories.
    Up {
        #[command(flatten)]
        place: Place,
        /// Return when it is ready; it then runs until `cargo xtask kube down`
        #[arg(long)]
        detach: bool,
        /// Number of fake nodes
        #[arg(long, default_value_t = 1)]
        nodes: usize,
    },
    /// Stop it and remove its directory
    Down(Place),
    /// Print the line that points kubectl to it: eval "$(cargo xtask kube env)"
    Env(Place),
}

/// Which control plane.
#[derive(clap::Args)]
pub(crate) struct Place {
    /// Where its data, logs and kubeconfig are [default: kube in cargo's target directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Builds `weir-kube` if needed and runs it with the same words.
pub(crate) fn run(workspace: &Workspace, action: &Action) -> Result<()> {
    process::run(&mut command(workspace, action)?)
}

fn command(workspace: &Workspace, action: &Action) -> Result<Command> {
    let mut words = Vec::new();
    let place = match action {
        Action::Up { place, detach, nodes } => {
            words.extend(["up".to_owned(), format!("--nodes={nodes}")]);
            words.extend(detach.then(|| "--detach".to_owned()));
            place
        }
        Action::Down(place) => {
            words.push("down".to_owned());
            place
        }
        Action::Env(place) => {
            words.push("env".to_owned());
            place
        }
    };
    // Before cargo changes to the workspace's root.
    let dir = place.dir.as_ref().map_or_else(|| Ok(workspace.target().join("kube")), std::path::absolute)?;
    let mut cargo = process::cargo(workspace);
    cargo.args(["run", "--quiet", "--package", "weir-testkit", "--bin", "weir-kube", "--"]).args(words).arg("--dir").arg(dir);
    Ok(cargo)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(subcommand)]
        action: Action,
    }

    fn shown(words: &[&str]) -> String {
        let action = Cli::try_parse_from(words).unwrap().action;
        let command = command(&Workspace::find().unwrap(), &action).unwrap();
        process::show(&command).rsplit_once(" -- ").unwrap().1.to_owned()
    }

    #[test]
    fn the_words_are_passed_on_and_the_directory_is_absolute() {
        assert_eq!(shown(&["kube", "up", "--detach", "--nodes", "2", "--dir", "/a b"]), "up --nodes=2 --detach --dir /a b");
        assert_eq!(shown(&["kube", "down", "--dir", "/a"]), "down --dir /a");
        let here = std::env::current_dir().unwrap().join("a");
        assert_eq!(shown(&["kube", "env", "--dir", "a"]), format!("env --dir {}", here.display()));
        let target = Workspace::find().unwrap().target().join("kube");
        assert_eq!(shown(&["kube", "env"]), format!("env --dir {}", target.display()));
    }
}
