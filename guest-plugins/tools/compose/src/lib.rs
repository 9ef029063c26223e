//! Links components into one.

use anyhow::{Context, Result};
use wac_graph::{CompositionGraph, EncodeOptions, plug, types::Package};

/// A component that exports what `socket` exports, with the imports of `socket` that the exports of `plugs` satisfy connected to
/// instances of those. Other imports stay imports of the whole.
///
/// # Errors
/// A part is no component, or no plug fits.
pub fn compose(socket: &[u8], plugs: &[Vec<u8>]) -> Result<Vec<u8>> {
    let mut graph = CompositionGraph::new();
    let mut register = |name: &str, bytes: &[u8]| -> Result<_> {
        let package = Package::from_bytes(name, None, bytes.to_vec(), graph.types_mut()).with_context(|| format!("part {name}"))?;
        Ok(graph.register_package(package)?)
    };
    let socket = register("weir:socket", socket)?;
    let plugs = plugs.iter().enumerate().map(|(n, bytes)| register(&format!("weir:plug{n}"), bytes)).collect::<Result<Vec<_>>>()?;
    plug(&mut graph, plugs, socket)?;
    Ok(graph.encode(EncodeOptions::default())?)
}
