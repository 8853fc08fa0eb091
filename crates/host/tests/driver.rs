//! A stack behind a TUN device in real time.
//!
//! Each test runs itself again in a new network namespace, where it has root privileges.

#[path = "common/namespace.rs"]
mod namespace;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

use bentpipe_base::Duration;
use bentpipe_host::{DeviceConfig, Driver, Id, Interest, Limits};
use bentpipe_tcp::{Config, State};
use namespace::inside;

const PORT: u16 = 6001;

fn driver() -> Driver {
    let networks = vec!["10.105.0.2/30".parse().expect("it is a network")];
    Driver::new(&DeviceConfig { name: None, networks, mtu: 1500 }, Limits::default())
        .expect("we are root here")
}

#[test]
fn a_stream_goes_through_the_device_and_back() {
    if !inside("a_stream_goes_through_the_device_and_back") {
        return;
    }
    let mut driver = driver();
    driver.stack.listen(PORT, Arc::new(Config::default()));
    let data: Vec<u8> = (0..1_000_000_u32).map(|i| (i.wrapping_mul(i) >> 5) as u8).collect();
    let sent = data.clone();
    let kernel = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(("10.105.0.2", PORT)).unwrap();
        let mut reader = stream.try_clone().unwrap();
        let echo = std::thread::spawn(move || {
            let mut back = Vec::new();
            reader.read_to_end(&mut back).map(|_| back)
        });
        stream.write_all(&sent).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        echo.join().unwrap().unwrap()
    });
    let (begin, mut id) = (Instant::now(), None::<Id>);
    let (mut waiting, mut buffer) = (Vec::new(), vec![0; 65_536]);
    while !kernel.is_finished() {
        assert!(begin.elapsed().as_secs() < 20, "{} bytes wait", waiting.len());
        driver.turn(Duration::from_millis(20), Interest::default()).unwrap();
        let now = driver.now();
        id = id.or_else(|| driver.stack.accept(PORT));
        let Some(id) = id else { continue };
        let len = driver.stack.read(now, id, &mut buffer);
        waiting.extend_from_slice(&buffer[..len]);
        let written = driver.stack.write(now, id, &waiting);
        waiting.drain(..written);
        let over = driver.stack.connection(id).is_some_and(|end| end.state() == State::CloseWait);
        if over && len == 0 && waiting.is_empty() {
            driver.stack.close(now, id);
        }
    }
    assert!(kernel.join().unwrap() == data);
    assert_eq!(driver.refused_packets(), 0);
}

/// The driver must not wait while the device holds packets, and acknowledgements must not wait until all are read.
#[test]
fn a_turn_takes_sixty_four_packets_and_says_whether_there_may_be_more() {
    if !inside("a_turn_takes_sixty_four_packets_and_says_whether_there_may_be_more") {
        return;
    }
    let mut driver = driver();
    while !driver.take().unwrap() {}
    let before = driver.stack.counters().ignored;
    let socket = UdpSocket::bind("10.105.0.1:0").unwrap();
    for _ in 0..100 {
        socket.send_to(b"not for TCP", "10.105.0.2:9").unwrap();
    }
    assert!(!driver.take().unwrap(), "there are more");
    assert_eq!(driver.stack.counters().ignored - before, 64);
    assert!(driver.take().unwrap(), "that was all");
    assert!(driver.stack.counters().ignored - before >= 100);
}
