//! Throughput and CPU cost of one connection of this stack, to or from the kernel through a TUN device.
//!
//! ```text
//! unshare --map-root-user --net cargo run --profile dist --package bentpipe-host --example throughput -- send 4
//! ```
//!
//! The arguments are `send` or `receive`, as seen by this stack, and gigabytes. Wall-clock time depends on the load of the
//! machine; CPU time of the stack's thread is nearly independent of it.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use bentpipe_base::Duration;
use bentpipe_cc::Algorithm;
use bentpipe_host::{DeviceConfig, Driver, Id, Interest, Limits};
use bentpipe_tcp::{Config, State};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

const PORT: u16 = 6001;
const PIECE: usize = 1 << 20;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let sends = match arguments.next().as_deref() {
        Some("send") => true,
        Some("receive") => false,
        _ => panic!("found no direction, accepted: send or receive, and gigabytes"),
    };
    let bytes = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1.0) * 1e9;
    let networks = vec!["10.105.0.2/30".parse().expect("that is a network")];
    let device = DeviceConfig { name: None, networks, mtu: 1500 };
    let driver = Driver::new(&device, Limits::default()).unwrap_or_else(|why| panic!("{why}"));
    measure(driver, sends, bytes as u64);
}

fn config() -> Config {
    let cc = Algorithm::from_name("cubic").expect("it is registered");
    // A larger buffer than the kernel's window only causes cache misses.
    Config::default().with(|config| {
        config.sender.cc = cc;
        config.sender.send_buffer = 4 << 20;
    })
}

fn measure(mut driver: Driver, sends: bool, bytes: u64) {
    let kernel = thread::spawn(move || if sends { swallow() } else { spout(bytes) });
    let id = if sends { open(&mut driver) } else { accept(&mut driver) };
    let begin = Instant::now();
    let before = processor_time();
    let mut moved = 0;
    while moved < bytes {
        moved += if sends { write(&mut driver, id, bytes - moved) } else { read(&mut driver, id) };
        driver.turn(Duration::from_millis(100), Interest::default()).expect("the device stays");
    }
    driver.stack.close(driver.now(), id);
    let over = |driver: &Driver| {
        driver.stack.connection(id).is_none_or(|c| matches!(c.state(), State::TimeWait | State::Closed))
    };
    while !over(&driver) {
        driver.turn(Duration::from_millis(100), Interest::default()).expect("the device stays");
    }
    driver.flush();
    let (wall, cpu) = (begin.elapsed().as_secs_f64(), processor_time() - before);
    let gigabits = bytes as f64 * 8e-9;
    println!(
        "{gigabits:.1} Gbit in {wall:.2} s: {:.2} Gbit/s; {cpu:.2} s of processor time: {:.2} Gbit for each second of it",
        gigabits / wall,
        gigabits / cpu
    );
    kernel.join().expect("the kernel's end is happy");
}

/// Returns user plus system time of this thread in seconds.
fn processor_time() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("every thread has one");
    (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6
}

fn open(driver: &mut Driver) -> Id {
    let remote: SocketAddr = format!("10.105.0.1:{PORT}").parse().expect("that is an address");
    thread::sleep(std::time::Duration::from_millis(200));
    driver.stack.connect(driver.now(), remote, config()).expect("there is room")
}

fn accept(driver: &mut Driver) -> Id {
    driver.stack.listen(PORT, Arc::new(config()));
    loop {
        if let Some(id) = driver.stack.accept(PORT) {
            return id;
        }
        driver.turn(Duration::from_millis(10), Interest::default()).expect("the device stays");
    }
}

fn write(driver: &mut Driver, id: Id, left: u64) -> u64 {
    static ZEROS: [u8; PIECE] = [0; PIECE];
    driver.stack.write(driver.now(), id, &ZEROS[..left.min(PIECE as u64) as usize]) as u64
}

fn read(driver: &mut Driver, id: Id) -> u64 {
    driver.stack.discard(driver.now(), id)
}

/// Receives at the kernel's end.
fn swallow() {
    let listener = TcpListener::bind(("0.0.0.0", PORT)).expect("the port is free");
    let (mut stream, _) = listener.accept().expect("somebody comes");
    let mut piece = vec![0; PIECE];
    while stream.read(&mut piece).expect("the stream is whole") > 0 {}
}

/// Sends at the kernel's end.
fn spout(bytes: u64) {
    let mut stream = loop {
        match TcpStream::connect(("10.105.0.2", PORT)) {
            Ok(stream) => break stream,
            Err(_) => thread::sleep(std::time::Duration::from_millis(50)),
        }
    };
    let piece = vec![0; PIECE];
    let mut left = bytes;
    while left > 0 {
        let len = left.min(PIECE as u64) as usize;
        stream.write_all(&piece[..len]).expect("somebody reads");
        left -= len as u64;
    }
    stream.shutdown(Shutdown::Write).expect("it is open");
    let _ = stream.read(&mut [0]);
}
