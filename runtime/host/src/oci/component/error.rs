//! Why there is no component in an image, an artifact or a file.

use crate::{
    oci::{LayerError, text},
    wasm::Foreign,
};

/// Why there is no component.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nothing at all.
    #[error("the manifest has no layers; push the component as its one layer, with `wkg oci push` or `oras push`")]
    NoLayers,
    /// Nobody can say which one runs.
    #[error("several layers may be the component: {0}; push one component per artifact")]
    Several(String),
    /// Nothing that can be told from other files.
    #[error(
        "none of its layers is known to be WebAssembly: {0}; push the component alone, with type application/wasm or a title that ends in .wasm"
    )]
    NoneKnown(String),
    /// Too large.
    #[error("{place} has {}, at most {} are allowed; strip it (`wasm-tools strip`), or ask the operator to allow more", text::bytes(*.found), text::bytes(*.most))]
    Large {
        /// Layer, or file and layer.
        place: String,
        /// Bytes declared or found.
        found: u64,
        /// Bytes allowed.
        most: u64,
    },
    /// It is something else.
    #[error("{place}: {kind}")]
    Foreign {
        /// Layer, or file and layer; or the file.
        place: String,
        /// What it is.
        kind: Foreign,
    },
    /// An archive that is of no use.
    #[error("{place}: {source}")]
    Archive {
        /// Layer.
        place: String,
        /// Why.
        source: Box<LayerError>,
    },
    /// An image without Wasm.
    #[error("{place} holds no *.wasm file ({found}); build the image `FROM scratch` with `COPY policy.wasm /` as its last step")]
    NoFile {
        /// Layer.
        place: String,
        /// What it holds.
        found: String,
    },
    /// An image with too much of it.
    #[error("{place} holds several *.wasm files: {found}; leave one of them")]
    Files {
        /// Layer.
        place: String,
        /// Their names.
        found: String,
    },
}
