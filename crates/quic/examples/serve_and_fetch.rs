//! Serves and fetches a file over QUIC, with the stack `noq` and an algorithm of Bentpipe at both ends.
//!
//! ```text
//! cargo run --package bentpipe-quic --example serve_and_fetch                        # 4 MB of zeros with hybla, bbr3 and zenith
//! cargo run --package bentpipe-quic --example serve_and_fetch -- FILE cubic vegas    # a file, with other algorithms
//! ```
//!
//! The two ends use UDP sockets on the loopback interface, so the speed is that of this machine.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use bentpipe_cc::Algorithm;
use bentpipe_cc::packets::Settings;
use bentpipe_quic::Factory;
use noq::rustls::RootCertStore;
use noq::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use noq::{ClientConfig, Endpoint, ServerConfig, TransportConfig};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Most bytes that the client accepts.
const MOST: usize = 1 << 30;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let mut words = std::env::args().skip(1);
    let data = words.next().map_or_else(|| Ok(vec![0; 4_000_000]), std::fs::read)?;
    let names: Vec<String> = words.collect();
    let names = if names.is_empty() { ["hybla", "bbr3", "zenith"].map(String::from).to_vec() } else { names };
    for name in names {
        let begin = Instant::now();
        let (bytes, ran) = transfer(&name, data.clone()).await?;
        let seconds = begin.elapsed().as_secs_f64();
        println!("{ran}: {bytes} bytes in {seconds:.3} s, {:.1} Mbit/s", bytes as f64 * 8e-6 / seconds);
    }
    Ok(())
}

/// Makes the transport of one end. A factory serves one connection if the program asks it for the running algorithm.
fn transport(name: &str) -> Outcome<(Arc<TransportConfig>, Factory)> {
    let algorithm = Algorithm::from_name(name).ok_or_else(|| format!("there is no algorithm `{name}`"))?;
    let factory = Factory::new(algorithm, Settings::default())?;
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(factory.clone()));
    Ok((Arc::new(transport), factory))
}

/// Sends `data` from a server to a client. Returns the bytes received, and the algorithm of the server.
async fn transfer(name: &str, data: Vec<u8>) -> Outcome<(usize, &'static str)> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate = CertificateDer::from(made.cert);
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut server = ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
    let (of_server, factory) = transport(name)?;
    server.transport_config(of_server);
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = Endpoint::server(server, loopback)?;
    let address = server.local_addr()?;
    let serving = tokio::spawn(serve(server, data));

    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(transport(name)?.0);
    let client = Endpoint::client(loopback)?;
    let connection = client.connect_with(config, address, "localhost")?.await?;
    let mut stream = connection.accept_uni().await?;
    let received = stream.read_to_end(MOST).await?;
    connection.close(0_u32.into(), b"done");
    serving.await??;
    Ok((received.len(), factory.running().ok_or("the server had no connection")?))
}

/// Sends `data` to the first client, and waits until it has them.
async fn serve(endpoint: Endpoint, data: Vec<u8>) -> Outcome<()> {
    let connection = endpoint.accept().await.ok_or("the endpoint is closed")?.await?;
    let mut stream = connection.open_uni().await?;
    stream.write_all(&data).await?;
    stream.finish()?;
    stream.stopped().await?;
    Ok(())
}
