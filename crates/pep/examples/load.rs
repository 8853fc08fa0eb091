//! Loads a proxy: the programs on both sides of `scripts/measure-pep`. Not part of the proxy.
//!
//! ```text
//! load serve ADDRESS:PORT             answers each connection with a byte; echoes what comes after it
//! load open ADDRESS:PORT N S          N connections a second for S seconds, each until its byte has come
//! load idle ADDRESS:PORT N S FROM...  opens N connections from these addresses and keeps them for S seconds
//! load echo ADDRESS:PORT N            N times a byte there and back over one connection
//! ```
//!
//! Each prints one line of JSON.

use std::env::args;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use slab::Slab;
use socket2::{Domain, SockRef, Socket, Type};

/// Threads that open connections.
const OPENERS: u64 = 8;
const PATIENCE: Duration = Duration::from_secs(10);
const LISTENER: u64 = u64::MAX;

fn main() -> io::Result<()> {
    let words: Vec<String> = args().skip(1).collect();
    let number = |at: usize| words[at].parse::<u64>().expect("a number");
    let address: SocketAddr = words[1].parse().expect("an address and a port");
    match words[0].as_str() {
        "serve" => serve(address),
        "open" => open(address, number(2), number(3)),
        "idle" => {
            let from: Vec<IpAddr> = words[4..].iter().map(|word| word.parse().expect("an address")).collect();
            idle(address, (number(2), Duration::from_secs(number(3))), &from)
        }
        "echo" => echo(address, number(2)),
        other => panic!("serve, open, idle or echo, not {other}"),
    }
}

/// One thread for all connections.
fn serve(address: SocketAddr) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(16_384)?;
    let listener: TcpListener = socket.into();
    listener.set_nonblocking(true)?;
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let mut streams: Slab<TcpStream> = Slab::new();
    let mut events = Vec::with_capacity(1024);
    loop {
        events.clear();
        match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            let token = event.data.u64();
            if token != LISTENER {
                let key = token as usize;
                if streams.get_mut(key).is_some_and(|stream| !answer(stream)) {
                    streams.remove(key);
                }
                continue;
            }
            while let Ok((mut stream, _)) = listener.accept() {
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                if stream.write_all(b"x").is_ok() {
                    let entry = streams.vacant_entry();
                    epoll::add(&epoll, &stream, EventData::new_u64(entry.key() as u64), EventFlags::IN)?;
                    entry.insert(stream);
                }
            }
        }
    }
}

/// Sends back the received bytes; returns false if the connection is over.
fn answer(stream: &mut TcpStream) -> bool {
    let mut bytes = [0; 64];
    match stream.read(&mut bytes) {
        Ok(0) => false,
        Ok(length) => stream.write_all(&bytes[..length]).is_ok(),
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}

/// Opens a connection and waits for its first byte.
fn visit(address: SocketAddr, from: Option<IpAddr>) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    if let Some(from) = from {
        socket.bind(&SocketAddr::new(from, 0).into())?;
    }
    socket.connect_timeout(&address.into(), PATIENCE)?;
    let mut stream: TcpStream = socket.into();
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    stream.read_exact(&mut [0])?;
    Ok(stream)
}

/// Returns a percentile in milliseconds, given in thousandths.
fn percentile(sorted: &[Duration], thousandths: usize) -> f64 {
    sorted.get(sorted.len() * thousandths / 1000).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
}

fn open(address: SocketAddr, rate_per_s: u64, seconds: u64) -> io::Result<()> {
    let each = rate_per_s * seconds / OPENERS;
    let begin = Instant::now();
    let work = move |number: u64| {
        let (mut took, mut failed) = (Vec::new(), Vec::new());
        for visit_number in 0..each {
            let due = Duration::from_secs_f64((visit_number * OPENERS + number) as f64 / rate_per_s as f64);
            thread::sleep(due.saturating_sub(begin.elapsed()));
            let began = Instant::now();
            match visit(address, None) {
                Ok(stream) => {
                    took.push(began.elapsed());
                    // A RST: no port has to rest for a minute.
                    let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
                }
                Err(error) => failed.push(error.to_string()),
            }
        }
        (took, failed)
    };
    let threads: Vec<_> = (0..OPENERS).map(|number| thread::spawn(move || work(number))).collect();
    let (mut took, mut failed) = (Vec::new(), Vec::new());
    for thread in threads {
        let (more_took, more_failed) = thread.join().expect("a thread that does not panic");
        took.extend(more_took);
        failed.extend(more_failed);
    }
    took.sort_unstable();
    let elapsed_s = begin.elapsed().as_secs_f64();
    let (rate, half, most) = (took.len() as f64 / elapsed_s, percentile(&took, 500), percentile(&took, 990));
    let why = failed.first().map_or("", String::as_str);
    println!(
        "{{\"opened\":{},\"failed\":{},\"why\":\"{why}\",\"per_s\":{rate:.0},\"p50_ms\":{half:.3},\"p99_ms\":{most:.3}}}",
        took.len(),
        failed.len()
    );
    Ok(())
}

fn idle(address: SocketAddr, (count, last): (u64, Duration), from: &[IpAddr]) -> io::Result<()> {
    let mut streams = Vec::new();
    for number in 0..count {
        streams.push(visit(address, Some(from[number as usize % from.len()]))?);
    }
    println!("{{\"opened\":{}}}", streams.len());
    thread::sleep(last);
    Ok(())
}

fn echo(address: SocketAddr, count: u64) -> io::Result<()> {
    let mut stream = visit(address, None)?;
    let mut took = Vec::new();
    for _ in 0..count {
        let began = Instant::now();
        stream.write_all(b"?")?;
        stream.read_exact(&mut [0])?;
        took.push(began.elapsed());
    }
    took.sort_unstable();
    println!(
        "{{\"p50_us\":{:.1},\"p99_us\":{:.1}}}",
        percentile(&took, 500) * 1e3,
        percentile(&took, 990) * 1e3
    );
    Ok(())
}
