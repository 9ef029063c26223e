//! How much of an artifact is taken. Every number is checked against what the registry declares, and again against what it sends.

/// Caps for one artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// One manifest or index, bytes.
    pub manifest_bytes: u64,
    /// Entries of an index.
    pub index_entries: usize,
    /// Layers of an image.
    pub layers: usize,
    /// One layer as the registry sends it, bytes.
    pub layer_bytes: u64,
    /// All layers as the registry sends them, bytes.
    pub download_bytes: u64,
    /// The content of all files of all layers, bytes, whether or not a later layer removes them.
    pub unpacked_bytes: u64,
    /// One file, bytes.
    pub file_bytes: u64,
    /// Files, directories and removals of all layers.
    pub files: usize,
    /// One path, bytes.
    pub path_bytes: usize,
    /// Parts of one path.
    pub path_depth: usize,
    /// How far back zstd may refer, bytes.
    pub zstd_window: u64,
}

impl Limits {
    /// For a Kong plugin: some Lua files.
    pub const PLUGIN: Self = Self {
        manifest_bytes: 4 << 20,
        index_entries: 32,
        layers: 64,
        layer_bytes: 8 << 20,
        download_bytes: 8 << 20,
        unpacked_bytes: 8 << 20,
        file_bytes: 1 << 20,
        files: 512,
        path_bytes: 512,
        path_depth: 16,
        zstd_window: 8 << 20,
    };

    /// What archives around a component have beside it, bytes: headers, a licence, a read-me.
    const BESIDE: u64 = 1 << 20;

    /// For a Wasm component of at most `most` bytes.
    pub(super) fn component(most: u64) -> Self {
        let packed = most.saturating_add(Self::BESIDE);
        Self { layer_bytes: packed, download_bytes: packed, unpacked_bytes: packed, file_bytes: most, ..Self::PLUGIN }
    }

    /// For the manifest of an artifact of which only one layer is fetched: how large the others are does not matter.
    pub(super) fn one_layer(self) -> Self {
        Self { layer_bytes: u64::MAX, download_bytes: u64::MAX, ..self }
    }

    /// What one decompressed layer may have with its headers and padding, bytes. It bounds long names too, which a tar archive
    /// carries outside of its files.
    pub(super) fn stream_bytes(&self) -> u64 {
        const HEADERS: u64 = 2 << 10;
        const PADDING: u64 = 1 << 20;
        let headers = u64::try_from(self.files).unwrap_or(u64::MAX).saturating_mul(HEADERS);
        self.unpacked_bytes.saturating_add(headers).saturating_add(PADDING)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::PLUGIN
    }
}
