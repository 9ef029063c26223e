//! A stand-in for a Kong that loads custom plugins: nginx with Lua, which finds modules as Kong does and runs nothing of them but
//! what loading them runs.

mod volumes;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

pub use volumes::materialise;

use crate::binaries::{NGINX, not_installed};
use crate::http::{self, Request};
use crate::server::{Ready, Server};

const READY: Ready = Ready { target: "/ready", statuses: &[200] };

/// Kong's own default.
const DEFAULT_PATH: &str = "./?.lua;./?/init.lua;";

/// Where plugins are mounted in a container, and nowhere else on this machine than below the root.
const MOUNTS: &str = "/opt";

/// A running stand-in. Dropping it kills it.
#[derive(Debug)]
pub struct LuaProxy {
    server: Server,
}

impl LuaProxy {
    /// Why this machine cannot run one, in one line; `None` if it can.
    pub fn missing() -> Option<String> {
        not_installed(&[NGINX])
    }

    /// Starts one with the environment of a rendered container, of which `KONG_PLUGINS` and `KONG_LUA_PACKAGE_PATH` count. `/opt` in
    /// the path is `opt` below the root, see [`materialise`]; `.` is the root itself, as it is in Kong's image.
    pub fn start(env: &BTreeMap<String, String>, root: &Path) -> Result<Self> {
        let path = package_path(env.get("KONG_LUA_PACKAGE_PATH").map_or(DEFAULT_PATH, String::as_str), root)?;
        let server = Server::start("nginx", READY, &mut |dir, port| {
            std::fs::write(dir.join("nginx.conf"), config(dir, port, env, &path)?)?;
            std::fs::write(dir.join("init.lua"), include_str!("init.lua"))?;
            std::fs::write(dir.join("load.lua"), include_str!("load.lua"))?;
            let mut nginx = Command::new(NGINX.find()?);
            nginx.current_dir(root).envs(env).args(["-e", "stderr", "-p"]).arg(dir).arg("-c").arg(dir.join("nginx.conf"));
            Ok(nginx)
        })?;
        Ok(Self { server })
    }

    /// Loads every plugin that `KONG_PLUGINS` names, and nothing twice: like Kong, it keeps what it has loaded.
    ///
    /// Answers `{"plugins": {NAME: {"handler": …, "schema": …}}, "modules": {}}`. Each has `ok`, `file` if there is one, `error` if it
    /// is not ok; a handler its `PRIORITY` and `VERSION`, a schema its `name`.
    pub fn load(&self) -> Result<Value> {
        self.load_with(&[])
    }

    /// The same, and these Lua modules too, below `modules`.
    pub fn load_with(&self, modules: &[&str]) -> Result<Value> {
        if let Some(module) = modules.iter().find(|module| !module.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))) {
            bail!("{module} is not a name of a Lua module");
        }
        let query: Vec<String> = modules.iter().map(|module| format!("module={module}")).collect();
        let target = format!("/load?{}", query.join("&"));
        let answer = http::ask(&self.server.host(), &Request { method: "GET", target: &target, ..Request::default() })?;
        if answer.status != 200 {
            bail!("status {}:\n{}", answer.status, crate::log::last_lines(&self.server.log(), 20));
        }
        serde_json::from_slice(&answer.body).with_context(|| format!("not JSON: {}", answer.text()))
    }
}

/// Kong puts the default of LuaJIT after it, as `;;`.
fn package_path(path: &str, root: &Path) -> Result<String> {
    let root = root.canonicalize().with_context(|| format!("no directory {}", root.display()))?;
    let root = root.to_str().with_context(|| format!("{} is not text", root.display()))?;
    let mapped = path.split(';').map(|part| match part.strip_prefix(MOUNTS) {
        Some(rest) if rest.starts_with('/') => format!("{root}{part}"),
        _ => part.to_owned(),
    });
    let path = format!("{};;", mapped.collect::<Vec<_>>().join(";"));
    if path.contains(['\'', '\\', '\n']) {
        bail!("{path:?} cannot be written into a configuration of nginx");
    }
    Ok(path)
}

/// One process, so that killing it leaves none behind. Whatever it may write goes into its own directory.
fn config(dir: &Path, port: u16, env: &BTreeMap<String, String>, path: &str) -> Result<String> {
    let dir = dir.to_str().with_context(|| format!("{} is not text", dir.display()))?;
    if let Some(name) = env.keys().find(|name| name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')) {
        bail!("{name:?} is not a name of a variable");
    }
    let env: String = env.keys().map(|name| format!("env {name};\n")).collect();
    let temp: String =
        ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].iter().map(|kind| format!("  {kind}_temp_path {dir}/{kind};\n")).collect();
    Ok(format!(
        "load_module /usr/lib/nginx/modules/ndk_http_module.so;
load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;
daemon off;
master_process off;
pid {dir}/nginx.pid;
error_log stderr notice;
{env}events {{ worker_connections 64; }}
http {{
  access_log off;
{temp}  lua_package_path '{path}';
  init_by_lua_file {dir}/init.lua;
  server {{
    listen 127.0.0.1:{port};
    location = /ready {{ return 200; }}
    location = /load {{ content_by_lua_file {dir}/load.lua; }}
  }}
}}
"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mounts_move() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let path = package_path("/opt/?.lua;/opt/a/?.lua;/usr/share/?.lua;/optional/?.lua;./?.lua;;", dir.path()).unwrap();
        let root = root.display();
        assert_eq!(path, format!("{root}/opt/?.lua;{root}/opt/a/?.lua;/usr/share/?.lua;/optional/?.lua;./?.lua;;;;"));
        assert!(package_path("/opt/'?.lua", dir.path()).is_err());
    }
}
