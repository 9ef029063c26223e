//! The plugin as a program: an example to begin with, and what tests run as a process of its own. Flags as the Go plugins have them.

use std::{fs, net::SocketAddr, path::PathBuf};

use clap::Parser;
use weir_remote_plugin::{Behavior, Config, Files, start};

/// Serves every slot and hook of the contract.
#[derive(Debug, Parser)]
struct Args {
    /// Where to listen.
    #[arg(long, default_value = "0.0.0.0:9090")]
    server_address: SocketAddr,
    /// Certificate to show.
    #[arg(long)]
    server_cert: PathBuf,
    /// Its key.
    #[arg(long)]
    server_key: PathBuf,
    /// Certificates of clients, or of their issuers.
    #[arg(long)]
    client_cert: PathBuf,
    /// Name in the metadata: the label of the Service.
    #[arg(long, default_value = "example.weir.dev")]
    name: String,
    /// Version in the metadata.
    #[arg(long, default_value = "1.0.0")]
    version_text: String,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let files = Files {
        cert: fs::read_to_string(args.server_cert)?,
        key: fs::read_to_string(args.server_key)?,
        clients: fs::read_to_string(args.client_cert)?,
    };
    let mut behavior = Behavior::good(&args.name);
    behavior.version = args.version_text;
    let server = start(Config { listen: args.server_address, files, behavior }).await?;
    println!("listening on {}", server.address());
    tokio::signal::ctrl_c().await?;
    Ok(())
}
