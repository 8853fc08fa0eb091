//! `send` and `receive` over QUIC: the stack `noq-proto` with Bentpipe's congestion control, over a UDP socket of the kernel.

mod certificate;
mod live;
mod options;
mod qlog;
mod receive;
mod send;
mod wire;

pub use receive::receive;
pub use send::send;

use std::io;
use std::time::Duration;

use crate::failure::Failure;

/// Time for which the peers' last packets are answered before the program ends.
const FAREWELL: Duration = Duration::from_millis(300);

fn socket_failed(error: io::Error) -> Failure {
    Failure::Work(format!("the UDP socket failed: {error}"))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};
    use std::sync::Arc;

    use bentpipe_host::Interest;
    use bentpipe_quic::Control;
    use noq_proto::{ClientConfig, ServerConfig};

    use super::certificate::{self, Pin};
    use super::live::End;
    use super::wire::Wire;
    use super::*;

    /// Connects to a server of a protocol. Returns the end that the client learns of; `None` if the handshake succeeds.
    fn connect(protocol: &[u8]) -> Option<End> {
        let port = UdpSocket::bind("[::]:0").unwrap().local_addr().unwrap().port();
        let (crypto, fingerprint) = certificate::server(protocol).unwrap();
        let config = Arc::new(ServerConfig::with_crypto(Arc::new(crypto)));
        let mut server = Wire::server(port, config.clone(), 1472).unwrap();
        let remote = (Ipv4Addr::LOCALHOST, port).into();
        let mut client = Wire::client(remote, 1472).unwrap();
        let config_of_client = ClientConfig::new(Arc::new(certificate::client(Pin::new(fingerprint))));
        client.connect(config_of_client, remote, Control::StackCubic).unwrap();
        for _ in 0..1000 {
            for wire in [&mut client, &mut server] {
                wire.turn(Duration::from_millis(2), Interest::default()).unwrap();
            }
            while let Some(incoming) = server.incoming.pop_front() {
                server.accept(incoming, config.clone(), Control::StackCubic);
            }
            let live = &client.connections[0].1;
            if live.is_established || live.end.is_some() {
                return live.end.clone();
            }
        }
        panic!("the handshake has no end");
    }

    #[test]
    fn a_server_of_another_protocol_does_not_fit() {
        assert_eq!(connect(certificate::PROTOCOL), None);
        let Some(End::Unfit(why)) = connect(b"h3") else {
            panic!("the handshake succeeded, or failed otherwise")
        };
        assert!(why.contains("another protocol") && why.contains("bentpipe receive"), "{why}");
    }
}
