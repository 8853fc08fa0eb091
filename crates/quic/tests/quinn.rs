//! The real stack `quinn-proto` with Bentpipe's windows, over a path of constant delay in memory.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bentpipe_cc::packets::{Settings, supported};
use bentpipe_cc::{Algorithm, careful_resume};
use bentpipe_quic::quinn::{Factory, Refused, Window};
use bytes::BytesMut;
use quinn_proto::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::rustls::RootCertStore;
use quinn_proto::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event,
    ServerConfig, StreamEvent, StreamId, TransportConfig,
};

const DELAY: Duration = Duration::from_millis(300);
const RECEIVE_WINDOW: u32 = 64 << 20;

/// A datagram on the way: arrival, end, content.
type Flying = (Instant, usize, Vec<u8>);

/// A client that sends zeros to a server.
struct Pair {
    endpoints: [Endpoint; 2],
    connections: [Option<(ConnectionHandle, Connection)>; 2],
    flying: VecDeque<Flying>,
    begin: Instant,
    now: Instant,
    /// Large datagrams of the client, and the numbers of those that are lost.
    data: u64,
    lost: fn(u64) -> bool,
    stream: Option<StreamId>,
    left: usize,
    received: usize,
    is_complete: bool,
}

fn transport(factory: Arc<dyn ControllerFactory + Send + Sync>) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config.receive_window(RECEIVE_WINDOW.into()).stream_receive_window(RECEIVE_WINDOW.into());
    config.congestion_controller_factory(factory).mtu_discovery_config(None);
    Arc::new(config)
}

impl Pair {
    fn new(factory: Arc<dyn ControllerFactory + Send + Sync>, bytes: usize, lost: fn(u64) -> bool) -> Self {
        let made = rcgen::generate_simple_self_signed(["server".to_owned()]).unwrap();
        let certificate = CertificateDer::from(made.cert);
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let mut server = ServerConfig::with_single_cert(vec![certificate.clone()], key.into()).unwrap();
        server.transport_config(transport(Arc::new(CubicConfig::default())));
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let mut client = ClientConfig::with_root_certificates(Arc::new(roots)).unwrap();
        client.transport_config(transport(factory));

        let config = Arc::new(EndpointConfig::default());
        let mut endpoints =
            [None, Some(Arc::new(server))].map(|server| Endpoint::new(config.clone(), server, true, None));
        let begin = Instant::now();
        let address = "192.0.2.1:443".parse().unwrap();
        let connected = endpoints[0].connect(begin, client, address, "server").unwrap();
        let (flying, received, is_complete) = (VecDeque::new(), 0, false);
        Self {
            endpoints,
            connections: [Some(connected), None],
            flying,
            begin,
            now: begin,
            data: 0,
            lost,
            stream: None,
            left: bytes,
            received,
            is_complete,
        }
    }

    fn deliver(&mut self, end: usize, bytes: &[u8]) {
        let remote = if end == 0 { "192.0.2.1:443" } else { "192.0.2.2:50000" }.parse().unwrap();
        let mut answer = Vec::new();
        let bytes = BytesMut::from(bytes);
        let event = self.endpoints[end].handle(self.now, remote, None, None, bytes, &mut answer);
        match event {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                self.connections[end].as_mut().unwrap().1.handle_event(event);
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoints[end].accept(incoming, self.now, &mut answer, None);
                self.connections[end] = Some(accepted.unwrap_or_else(|error| panic!("{:?}", error.cause)));
            }
            Some(DatagramEvent::Response(_)) | None => {}
        }
    }

    fn settle(&mut self) {
        for (end, connection) in self.connections.iter_mut().enumerate() {
            let Some((handle, connection)) = connection else { continue };
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(answer) = self.endpoints[end].handle_event(*handle, event) {
                    connection.handle_event(answer);
                }
            }
            while let Some(event) = connection.poll() {
                match event {
                    Event::Connected if end == 0 => self.stream = connection.streams().open(Dir::Uni),
                    Event::Stream(StreamEvent::Finished { .. }) => self.is_complete = true,
                    Event::ConnectionLost { reason } => panic!("{reason}"),
                    _ => {}
                }
            }
            match self.stream {
                Some(id) if end == 0 => {
                    while self.left > 0 {
                        let zeros = vec![0; self.left.min(1 << 16)];
                        let Ok(written) = connection.send_stream(id).write(&zeros) else { break };
                        self.left -= written;
                    }
                    if self.left == 0 {
                        // Fails after the first time.
                        let _ = connection.send_stream(id).finish();
                    }
                }
                Some(id) => {
                    connection.streams().accept(Dir::Uni);
                    let mut stream = connection.recv_stream(id);
                    let Ok(mut chunks) = stream.read(true) else { continue };
                    while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                        self.received += chunk.bytes.len();
                    }
                    let _ = chunks.finalize().should_transmit();
                }
                None => {}
            }
        }
    }

    fn transmit(&mut self) {
        self.settle();
        for (end, connection) in self.connections.iter_mut().enumerate() {
            let Some((_, connection)) = connection else { continue };
            let mut buffer = Vec::new();
            while let Some(transmit) = connection.poll_transmit(self.now, 10, &mut buffer) {
                for datagram in buffer[..transmit.size].chunks(transmit.segment_size.unwrap_or(transmit.size))
                {
                    let is_data = end == 0 && self.stream.is_some() && datagram.len() > 1000;
                    self.data += u64::from(is_data);
                    if !(is_data && (self.lost)(self.data)) {
                        self.flying.push_back((self.now + DELAY, 1 - end, datagram.to_vec()));
                    }
                }
                buffer.clear();
            }
        }
        self.settle();
    }

    /// Runs until the server has everything, or until a time.
    fn run(&mut self, until: Duration) {
        let until = self.begin + until;
        self.transmit();
        while !self.is_complete {
            let arrival = self.flying.front().map(|(at, ..)| *at);
            let timers = self.connections.iter_mut().flatten().filter_map(|(_, live)| live.poll_timeout());
            let Some(next) = timers.chain(arrival).min().filter(|next| *next <= until) else { return };
            self.now = next.max(self.now);
            while self.flying.front().is_some_and(|(at, ..)| *at <= self.now) {
                let (_, end, bytes) = self.flying.pop_front().unwrap();
                self.deliver(end, &bytes);
            }
            for (_, connection) in self.connections.iter_mut().flatten() {
                connection.handle_timeout(self.now);
            }
            self.transmit();
        }
    }

    fn window(&self) -> u64 {
        self.connections[0].as_ref().unwrap().1.congestion_state().window()
    }
}

fn factory(name: &str) -> Result<Arc<Factory>, Refused> {
    Factory::new(Algorithm::from_name(name).unwrap(), Settings::default()).map(Arc::new)
}

/// Returns the window after some seconds of bulk data over an ideal path.
fn window_after(factory: Arc<dyn ControllerFactory + Send + Sync>, seconds: u64) -> u64 {
    let mut pair = Pair::new(factory, 30_000_000, |_| false);
    pair.run(Duration::from_secs(seconds));
    pair.window()
}

#[test]
fn every_window_only_algorithm_delivers_a_file_over_loss() {
    let mut served = 0;
    for entry in supported() {
        let Ok(factory) = factory(entry.name) else { continue };
        let mut pair = Pair::new(factory, 300_000, |number| number % 50 == 20);
        pair.run(Duration::from_secs(300));
        assert!(pair.is_complete && pair.received == 300_000, "{}: {}", entry.name, pair.received);
        served += 1;
    }
    assert!(served >= 10, "{served} algorithms");
    println!("{served} algorithms");
}

#[test]
fn algorithms_that_set_a_rate_are_refused_by_name() {
    for name in ["bbr", "bbr3", "hybla", "zenith"] {
        let refused = factory(name).unwrap_err();
        assert_eq!(refused, Refused::Rate { algorithm: name });
        assert!(
            refused.to_string().contains(name) && refused.to_string().contains("pacing rate"),
            "{refused}"
        );
    }
    assert!(matches!(factory("peach"), Err(Refused::Packets(_))));
    let settings =
        Settings { careful_resume: Some(careful_resume::Config::default()), ..Settings::default() };
    let refused = Factory::new(Algorithm::from_name("cubic").unwrap(), settings).unwrap_err();
    assert_eq!(refused, Refused::CarefulResume);
}

#[test]
fn the_controller_that_runs_is_the_one_that_was_named() {
    let mut pair = Pair::new(factory("vegas").unwrap(), 1000, |_| false);
    pair.run(Duration::from_secs(10));
    let running = pair.connections[0].as_ref().unwrap().1.congestion_state().clone_box().into_any();
    assert_eq!(running.downcast_ref::<Window>().unwrap().name(), "vegas");
}

#[test]
fn renos_window_doubles_in_each_round_trip_of_slow_start_as_the_stacks_own_does() {
    let (own, of_stack) = (factory("reno").unwrap(), Arc::new(NewRenoConfig::default()));
    let (own, of_stack) = (window_after(own, 4), window_after(of_stack, 4));
    assert!(own > of_stack * 9 / 10 && own < of_stack * 11 / 10, "{own} against {of_stack} bytes");
}

#[test]
fn losses_of_one_round_trip_halve_renos_window_once() {
    let mut pair = Pair::new(factory("reno").unwrap(), 30_000_000, |number| (100..110).contains(&number));
    let mut largest = 0;
    for step in 1..=84 {
        pair.run(Duration::from_millis(50 * step));
        largest = largest.max(pair.window());
    }
    let last = pair.window();
    assert!(last > largest * 45 / 100 && last < largest * 65 / 100, "{largest} and then {last} bytes");
}
