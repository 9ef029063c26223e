//! Provides `weir:policy/log` itself and imports nothing. Linked with a policy (`tools/compose`) it makes a component of two
//! instances with a memory each, and with adapters between them that copy strings: the host compiles code that is in neither part.

#[allow(missing_docs, unsafe_code, unreachable_pub, clippy::all, reason = "generated code")]
mod bindings {
    wit_bindgen::generate!({
        path: "../../../wit",
        inline: "package weir:hostile; world log-provider { export weir:policy/log@0.1.0; }",
        world: "weir:hostile/log-provider",
        generate_all,
    });
}

use bindings::exports::weir::policy::log::{Guest, Level};

struct LogProvider;

impl Guest for LogProvider {
    fn log(level: Level, message: String) {
        // Looked at, so that the optimiser cannot drop the argument.
        std::hint::black_box((level, message));
    }
}

#[cfg(target_arch = "wasm32")]
#[allow(unsafe_code, reason = "generated code")]
const _: () = {
    bindings::export!(LogProvider with_types_in bindings);
};
