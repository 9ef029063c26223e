//! A valid component that exports `example:other/thing` and nothing that Weir knows.

#[allow(missing_docs, unsafe_code, unreachable_pub, clippy::all, reason = "generated code")]
mod bindings {
    wit_bindgen::generate!({ path: "wit", world: "example:other/other", generate_all });
}

struct Other;

impl bindings::exports::example::other::thing::Guest for Other {
    fn greet(name: String) -> String {
        format!("hello {name}")
    }
}

#[cfg(target_arch = "wasm32")]
#[allow(unsafe_code, reason = "generated code")]
const _: () = {
    bindings::export!(Other with_types_in bindings);
};
