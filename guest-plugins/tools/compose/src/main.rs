//! `compose OUT SOCKET PLUG…`: links components into one.

use std::fs;

use anyhow::{Context, Result, bail};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [out, socket, plugs @ ..] = arguments.as_slice() else { bail!("usage: compose OUT SOCKET PLUG…") };
    let read = |path: &String| fs::read(path).with_context(|| format!("cannot read {path}"));
    let plugs = plugs.iter().map(read).collect::<Result<Vec<_>>>()?;
    let composed = compose::compose(&read(socket)?, &plugs)?;
    fs::write(out, composed).with_context(|| format!("cannot write {out}"))
}
