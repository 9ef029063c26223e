# For those who build images with a daemon. `cargo xtask image` makes the same without one, smaller and with an SBOM (docs/install.md).
#   docker build -t localhost/weir:0.1.0 .
FROM rust:1.95-bookworm AS build
WORKDIR /weir
RUN rustup target add wasm32-unknown-unknown
COPY . .
RUN cargo xtask guests && cargo build --release --locked --package weir-cli --bin weir && strip --strip-debug target/release/weir

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && mkdir -m 0777 -p /var/cache/weir
COPY --from=build /weir/target/release/weir /usr/local/bin/weir
USER 65532:65532
EXPOSE 8080 8081
ENTRYPOINT ["/usr/local/bin/weir"]
LABEL org.opencontainers.image.title=weir org.opencontainers.image.licenses=Apache-2.0
