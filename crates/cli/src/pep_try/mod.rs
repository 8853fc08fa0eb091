//! `bentpipe pep try`: the proxy beside no proxy, over an emulated satellite, between TCPs of the kernel.
//!
//! Each variant is an emulation of its own: the client in front of the link, and behind it a router with the proxy and, in a network
//! namespace of its own, a server. Client, router and server are this program again, with hidden commands.

mod report;

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{self, Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bentpipe_scenario::deployment::{Deployment, Interfaces, Match, Opener, Watch};
use comfy_table::Table;
use serde::{Deserialize, Serialize};

use crate::emulate;
use crate::failure::Failure;
use crate::output::{self, Kind};
use crate::pep_args::{PepTryArgs, TryPart};

/// The server, in a range for measurements of networks (RFC 2544).
const SERVER: &str = "198.19.255.2";
const ROUTER: &str = "198.19.255.1";
const PORT: u16 = 8080;
/// Name of the router's device towards the server.
const LAN: &str = "bp-lan";
const PAGES: usize = 5;
/// Emulations side by side.
const AT_A_TIME: usize = 2;
/// 50 segments of 1448 bytes.
const PAGE_BYTES: u64 = 50 * 1448;
/// Request for bytes without end.
const ENDLESS: u64 = 0;
/// What is measured without a proxy, by the congestion control of the server.
const END_TO_END: &str = "end-to-end:";
/// The loss rate that the scenario has.
const OF_SCENARIO: &str = "scenario";
/// What is measured with the proxy of a file.
const OF_FILE: &str = "file:";

/// What was measured with one variant.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    name: String,
    /// Loss rate of the link; that of the scenario if absent.
    #[serde(default)]
    loss: Option<String>,
    /// Of all downloads together, from the first SYN on.
    goodput_bps: f64,
    page_s: f64,
}

/// Measures all variants and shows them side by side.
pub fn try_out(args: &PepTryArgs) -> Result<(), Failure> {
    if let Some(part) = &args.part {
        return play(part, args).map_err(Failure::Work);
    }
    if let Some(path) = &args.proxy {
        // A mistake is told before the measurement begins.
        let name = at_hub(Deployment::load(path)?, path)?.classes.remove(0).name;
        eprintln!(
            "bentpipe: the proxy of {path} is at the hub, with its class \"{name}\" for connections from beyond the satellite"
        );
    }
    let report = output::open(args.report.as_ref(), Kind::Report)?;
    let mut variants = if args.cc.is_empty() {
        ["end-to-end:cubic", "kernel:bbr", "star", "hybla"].map(str::to_owned).to_vec()
    } else {
        args.cc.clone()
    };
    variants.extend(args.proxy.iter().map(|path| format!("{OF_FILE}{path}")));
    let losses = args.loss.iter().map(|loss| Some(loss.as_str()).filter(|loss| *loss != OF_SCENARIO));
    // A mistake is told once, and not by each measurement.
    emulate::check(&args.scenario, &losses.clone().flatten().collect::<Vec<_>>())?;
    let proxies = variants.iter().filter(|variant| !variant.starts_with(END_TO_END));
    proxies.map(|variant| configuration(variant, "uplink")).collect::<Result<Vec<_>, _>>()?;
    let worlds: Vec<(Option<&str>, &str)> =
        losses.flat_map(|loss| variants.iter().map(move |variant| (loss, variant.as_str()))).collect();
    let rows = measure_all(args, &worlds)?;
    if let Some(target) = report {
        target.write(report::render(args, &rows)?.as_bytes())?;
    }
    if args.json {
        println!(
            "{}",
            serde_json::to_string_pretty(&rows).map_err(|error| Failure::Work(error.to_string()))?
        );
    } else {
        println!("{}", table(&rows));
    }
    Ok(())
}

fn title(variant: &str) -> String {
    match (variant.strip_prefix(END_TO_END), variant.strip_prefix(OF_FILE)) {
        (Some(cc), _) => format!("no proxy, the server's {cc}"),
        (_, Some(path)) => format!("the proxy of {path}"),
        _ => format!("proxy with {variant} over the satellite"),
    }
}

fn shown(loss: Option<&str>) -> &str {
    loss.unwrap_or("of the scenario")
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);

    table.set_header(["loss of the link", "", "download Mbit/s", "times", "page of 50 segments, s"]);
    for row in rows {
        // The first of the same loss is what the others are compared with.
        let first =
            rows.iter().find(|other| other.loss == row.loss).map_or(f64::NAN, |first| first.goodput_bps);
        let ratio = row.goodput_bps / first;
        table.add_row([
            shown(row.loss.as_deref()).to_owned(),
            title(&row.name),
            format!("{:.2}", row.goodput_bps / 1e6),
            format!("{ratio:.2}"),
            format!("{:.2}", row.page_s),
        ]);
    }
    table
}

/// All emulations, some of them at a time: each waits for its link most of the time.
fn measure_all(args: &PepTryArgs, worlds: &[(Option<&str>, &str)]) -> Result<Vec<Row>, Failure> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut measured = Vec::new();
        loop {
            let (number, count) = (next.fetch_add(1, Ordering::Relaxed), worlds.len());
            let Some((loss, variant)) = worlds.get(number) else { return measured };
            eprintln!("bentpipe: {} of {count}: {}, loss {}", number + 1, title(variant), shown(*loss));
            let row = measure(args, *loss, variant);
            if row.is_err() {
                // Nothing more is begun.
                next.store(count, Ordering::Relaxed);
            }
            measured.push((number, row));
        }
    };
    let mut rows: Vec<(usize, Result<Row, Failure>)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_A_TIME).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("measuring does not panic")).collect()
    });
    rows.sort_by_key(|(number, _)| *number);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// One emulation.
fn measure(args: &PepTryArgs, loss: Option<&str>, variant: &str) -> Result<Row, Failure> {
    let own = std::env::current_exe().map_err(|error| Failure::Work(error.to_string()))?;
    let own = own.to_str().ok_or_else(|| Failure::Work("the path of this program is no text".into()))?;
    let (flows, seconds) = (args.flows, args.seconds);
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    let (program, measured) = (quoted(own), quoted(variant));
    let part = |part: &str| {
        format!("{program} pep try --part {part} --flows {flows} --seconds {seconds} --variant {measured}")
    };
    let output = Command::new(own)
        .args(["emulate", &args.scenario])
        .args(loss.iter().flat_map(|loss| ["--loss", loss]))
        .args(["--quiet", "--with-parent", "--listen", &part("router"), "--", "sh", "-c", &part("client")])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Failure::Work(error.to_string()))?;
    match output.status.code() {
        Some(0) => serde_json::from_slice(&output.stdout)
            .map(|row| Row { loss: loss.map(str::to_owned), ..row })
            .map_err(|error| Failure::Work(format!("the measurement of {variant} says nothing: {error}"))),
        Some(2) => Err(Failure::Request(format!("{variant}: the emulation was refused, see above"))),
        Some(3) => Err(Failure::Missing(format!("{variant}: something is missing, see above"))),
        _ => Err(Failure::Work(format!("{variant}: the emulation failed, see above"))),
    }
}

fn play(part: &TryPart, args: &PepTryArgs) -> Result<(), String> {
    let variant = args.variant.as_str();
    match part {
        TryPart::Client => client(args).map_err(|error| format!("client: {error}")),
        TryPart::Router => router(variant),
        TryPart::Server => server(variant).map_err(|error| format!("server: {error}")),
    }
}

fn client(args: &PepTryArgs) -> io::Result<()> {
    // The server may need a moment to be there.
    let begin = Instant::now();
    while let Err(error) = ask(1) {
        if begin.elapsed() > Duration::from_secs(20) {
            return Err(error);
        }
        thread::sleep(Duration::from_millis(200));
    }
    let mut pages = Vec::new();
    for _ in 0..PAGES {
        let begin = Instant::now();
        let received = ask(PAGE_BYTES)?;
        if received != PAGE_BYTES {
            return Err(io::Error::other(format!("{received} bytes of a page")));
        }
        pages.push(begin.elapsed().as_secs_f64());
    }
    pages.sort_by(f64::total_cmp);
    let downloads: Vec<_> = (0..args.flows)
        .map(|_| {
            let last = Duration::from_secs(args.seconds);
            thread::spawn(move || download(last))
        })
        .collect();
    let mut received = 0;
    for download in downloads {
        received += download.join().map_err(|_| io::Error::other("a download panicked"))??;
    }
    let goodput_bps = received as f64 * 8.0 / args.seconds as f64;
    let row = Row { name: args.variant.clone(), loss: None, goodput_bps, page_s: pages[PAGES / 2] };
    println!("{}", serde_json::to_string(&row)?);
    Ok(())
}

fn connect(bytes: u64) -> io::Result<TcpStream> {
    let server = SocketAddr::new(SERVER.parse().expect("an address"), PORT);
    let mut stream = TcpStream::connect_timeout(&server, Duration::from_secs(30))?;
    stream.write_all(&bytes.to_be_bytes())?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    Ok(stream)
}

/// Asks for so many bytes; how many come until the end.
fn ask(bytes: u64) -> io::Result<u64> {
    io::copy(&mut connect(bytes)?, &mut io::sink())
}

/// Bytes that come while a download lasts.
fn download(last: Duration) -> io::Result<u64> {
    let begin = Instant::now();
    let mut stream = connect(ENDLESS)?;
    let (mut buffer, mut received) = (vec![0; 1 << 16], 0);
    while begin.elapsed() < last {
        match stream.read(&mut buffer)? {
            0 => break,
            bytes => received += bytes as u64,
        }
    }
    Ok(received)
}

/// Makes the network behind the link, and proxies if the variant has a proxy.
fn router(variant: &str) -> Result<(), String> {
    let uplink = uplink().ok_or("there is no device towards the link")?;
    let mut server = start_server(variant)?;
    let pid = server.id().to_string();
    ip(&["link", "add", LAN, "type", "veth", "peer", "name", "eth0", "netns", &pid])?;
    ip(&["addr", "add", &format!("{ROUTER}/30"), "dev", LAN])?;
    ip(&["link", "set", LAN, "up"])?;
    // Held until this process ends, however it ends: the server ends with it.
    let mut input = server.stdin.take().ok_or("the server has no input")?;
    writeln!(input, "go").map_err(|error| error.to_string())?;
    if variant.starts_with(END_TO_END) {
        return server.wait().map(drop).map_err(|error| error.to_string());
    }
    let deployment = configuration(variant, &uplink).map_err(|error| error.to_string())?;
    let ended = bentpipe_pep::run("the configuration of the trial", deployment, false);
    let _ = server.kill();
    let _ = server.wait();
    ended.map_err(|error| error.to_string())
}

/// The proxy of a variant, for connections that come over the link.
fn configuration(variant: &str, uplink: &str) -> Result<Deployment, Failure> {
    if let Some(path) = variant.strip_prefix(OF_FILE) {
        let mut deployment = at_hub(Deployment::load(path)?, path)?;
        deployment.interfaces = Interfaces { clients: vec![LAN.into()], satellite: vec![uplink.into()] };
        deployment.watch = Watch { listen: None, connections: None };
        deployment.workings.drain = Default::default();
        return Ok(deployment);
    }
    let (datapath, cc) = match variant.strip_prefix("kernel:") {
        Some(cc) => ("kernel", cc),
        None => ("engine", variant),
    };
    let text = format!(
        "[interfaces]\nclients = \"{LAN}\"\nsatellite = \"{uplink}\"\n[watch]\nlisten = \"off\"\n[daemon]\ndrain = \"0 s\"\n\
         [[class]]\nmatch = {{ opened-by = \"satellite\" }}\nsatellite = {{ datapath = \"{datapath}\", cc = \"{cc}\" }}\n\
         clients = {{ cc = \"cubic\" }}\n"
    );
    Ok(Deployment::parse("the configuration of the trial", &text)?)
}

/// The part of a configuration that takes effect at the hub: its first class that splits connections from beyond the satellite, for all ports and
/// networks, because those of the trial are its own.
fn at_hub(mut deployment: Deployment, path: &str) -> Result<Deployment, Failure> {
    deployment.classes.retain(|class| class.proxy && class.matches.opener == Opener::Satellite);
    deployment.classes.truncate(1);
    match deployment.classes.first_mut() {
        Some(class) => class.matches = Match { opener: Opener::Satellite, ..Match::default() },
        None => {
            return Err(Failure::Request(format!(
                "{path}: found no class that splits connections from beyond the satellite, accepted: one with match = {{ opened-by = \
                 \"satellite\" }}; the proxy of `pep try` is at the hub, and this file is for a terminal"
            )));
        }
    }
    Ok(deployment)
}

/// The only device of this namespace that is neither loopback nor ours.
fn uplink() -> Option<String> {
    let devices = fs::read_to_string("/proc/thread-self/net/dev").ok()?;
    let names = devices.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim());
    names
        .filter(|name| !matches!(*name, "lo") && *name != LAN)
        .find(|name| name.starts_with("bentpipe"))
        .map(str::to_owned)
}

/// The server waits in its namespace until its device is there.
fn start_server(variant: &str) -> Result<Child, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new("unshare")
        .arg("--net")
        .arg(own)
        .args(["pep", "try", "--part", "server", "--variant", variant])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("unshare: {error}"))?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line).map_err(|error| error.to_string())?;
    }
    if line.trim() == "ready" { Ok(child) } else { Err("the server does not start".into()) }
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip")
        .args(arguments)
        .output()
        .map_err(|error| format!("ip: {error}; install iproute2"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}

fn server(variant: &str) -> io::Result<()> {
    println!("ready");
    io::stdin().read_line(&mut String::new())?;
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        process::exit(0)
    });
    let cc = variant.strip_prefix(END_TO_END).unwrap_or("cubic");
    let steps: [&[&str]; 3] = [
        &["addr", "add", &format!("{SERVER}/30"), "dev", "eth0"],
        &["link", "set", "eth0", "up"],
        &["route", "add", "default", "via", ROUTER],
    ];
    steps.into_iter().try_for_each(ip).map_err(io::Error::other)?;
    let listener = TcpListener::bind((SERVER, PORT))?;
    bentpipe_pep::choose_congestion_control(&listener, cc)
        .map_err(|error| io::Error::new(error.kind(), format!("the congestion control {cc}: {error}")))?;
    for stream in listener.incoming() {
        let stream = stream?;
        thread::spawn(move || serve(stream));
    }
    Ok(())
}

/// Sends as many bytes as the client asks for. A client that goes away has had enough.
fn serve(mut stream: TcpStream) -> io::Result<()> {
    let mut asked = [0; 8];
    stream.read_exact(&mut asked)?;
    let asked = u64::from_be_bytes(asked);
    let length = if asked == ENDLESS { u64::MAX } else { asked };
    io::copy(&mut io::repeat(b'x').take(length), &mut stream).map(drop)
}
