//! What build.rs embeds.

include!(concat!(env!("OUT_DIR"), "/files.rs"));
