//! TLS to plugins: 1.3 only, HTTP/2, both sides with certificates. No proxy, no system roots, no resumption.

mod failure;
mod material;
mod verifier;

pub(super) use self::{
    failure::{Failure, io as io_failure},
    material::Material,
};
