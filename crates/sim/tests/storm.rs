//! Random worlds, each run with real payload and all checkers: whatever happens, every byte arrives or an abort is reported.
//!
//! `BENTPIPE_STORM=5000` runs more of them, `BENTPIPE_STORM_FROM=5000` those that follow, `BENTPIPE_STORM_SLOW_MS=200` names those that take longer, `BENTPIPE_STORM_SEED=17 ... replay` runs one and shows it.

mod common;

use std::env;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bentpipe_base::{Duration, Instant, Rate, Rng, Segment};
use bentpipe_cc::packets::{PacketControl, Settings};
use bentpipe_cc::{Algorithm, REGISTRY};
use bentpipe_mac::{
    Access, AlohaConfig, CfDamaConfig, CrdsaConfig, DamaConfig, Frame, RequestStrategy, SlottedAlohaConfig,
};
use bentpipe_middlebox::{AckDecimatorConfig, MIDDLEBOXES, MiddleboxConfig, SatPepConfig, SpoofingConfig};
use bentpipe_net::{
    ArqConfig, CoDelConfig, DualPi2Config, FecConfig, FqCoDelConfig, Interpolation, Jitter,
    JitterDistribution, Limit, LinkConfig, LossConfig, LossModel, Opportunities, Outage, OutageEffect,
    Outages, PieConfig, QueueConfig, RedConfig, Reordering, Schedule,
};
use bentpipe_orbit::{Grid, Handover, Place, Shell};
use bentpipe_outcome::{LinkEvent, NodeOutcome, Observer, Passing};
use bentpipe_scenario::{
    Connect, ConstellationGroup, Esp, FlowGroup, Idle, InFlight, LinkGroup, Links, NodeKind, Opening, Orbits,
    Position, ProxyConfig, Reveals, Routing, Scenario, Side, Split, Streaming, Traffic, Transport,
};
use bentpipe_sim::{Ended, RunOptions, RunResult, run, run_observed};
use bentpipe_tcp::{
    AckCounting, AckDelay, AckPace, Config, DelayedAck, EcnMode, InitialWindow, KeepAlive, Pacing,
    ReceiveWindow, Recovery, RtoBounds, SpuriousTimeout, WindowValidation,
};
use bentpipe_trace::Event;
use bentpipe_traffic::on_off::Spacing;
use bentpipe_traffic::{adaptive, browser, fetch, on_off, voice, web};
use bentpipe_transports::dtn::{self, Convergence, RouterConfig};
use bentpipe_transports::petra::{self, RelayConfig};
use bentpipe_transports::{Options, admission, datagram, sctp, stp};
use bentpipe_weather::{Modem, SlantPath, Weather};
use common::{Dumbbell, flows, links, under_satellites};

/// No world needs this many events.
const EVENT_BUDGET: u64 = 30_000_000;

/// Shows one world, after the variable with its seed.
const REPLAY: &str = "cargo test --package bentpipe-sim --test storm -- --nocapture replay";

/// Dice with the turns of phrase that building a world needs.
struct Dice(Rng);

impl Dice {
    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low + 1)
    }

    /// Between `low` and `high`, every order of magnitude as likely as another.
    fn magnitude(&mut self, low: f64, high: f64) -> f64 {
        low * libm::exp(self.0.uniform() * libm::log(high / low))
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.0.below(n) == 0
    }

    fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.0.below(choices.len() as u64) as usize].clone()
    }

    fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_micros(self.between(low * 1000, high * 1000))
    }

    fn queue(&mut self) -> QueueConfig {
        let limit = if self.one_in(4) {
            Limit::Bytes(self.between(3_000, 60_000))
        } else {
            Limit::Packets(self.between(1, 60) as u32)
        };
        let codel = CoDelConfig { ecn: self.one_in(2), ..CoDelConfig::default() };
        match self.between(0, 11) {
            9 => QueueConfig::DropFront { limit },
            0 => QueueConfig::Threshold { limit, low_priority_threshold: self.between(0, 4) as u32 },
            1 => QueueConfig::PushOut { limit },
            2 => QueueConfig::Strict { limit },
            3 => QueueConfig::Priority { ordinary: limit, low: Limit::Packets(self.between(1, 20) as u32) },
            4 => QueueConfig::Red(RedConfig { ecn: self.one_in(2), ..RedConfig::default() }),
            5 => QueueConfig::CoDel { limit, codel },
            8 => QueueConfig::DualPi2(DualPi2Config { limit, ..DualPi2Config::default() }),
            7 => QueueConfig::Pie(PieConfig { limit, ecn: self.one_in(2), ..PieConfig::default() }),
            6 => QueueConfig::FqCoDel(FqCoDelConfig { codel, ..FqCoDelConfig::default() }),
            _ => QueueConfig::DropTail { limit },
        }
    }

    fn loss(&mut self) -> LossConfig {
        let probability = self.magnitude(1e-4, 0.15);
        let model = match self.between(0, 6) {
            0 => LossModel::Packet { probability },
            1 => LossModel::Bit { probability: probability / 8_000.0 },
            2 => LossModel::Byte { probability: probability / 1_000.0 },
            3 => LossModel::GilbertElliott {
                good_to_bad: probability / 4.0,
                bad_to_good: 0.2,
                loss_good: 0.0,
                loss_bad: self.0.uniform(),
            },
            4 => LossModel::List { numbers: (1..200).filter(|_| self.one_in(20)).collect() },
            _ => LossModel::None,
        };
        LossConfig { model, data_only: self.one_in(2), handover: None }
    }

    fn outages(&mut self) -> Outages {
        let mut up = Instant::ZERO;
        let count = if self.one_in(4) { self.between(1, 4) } else { 0 };
        let outage = |_| {
            let from = up + self.millis(100, 20_000);
            up = from + self.millis(10, 8_000);
            Outage { from, to: up }
        };
        let intervals = (0..count).map(outage).collect();
        let effect =
            self.pick(&[OutageEffect::Pause, OutageEffect::Cut, OutageEffect::CutPath, OutageEffect::Blind]);
        Outages { intervals, effect }
    }

    fn delay(&mut self) -> Schedule<Duration> {
        let delay = self.millis(1, 300);
        match self.between(0, 7) {
            0 => Schedule::Sine {
                mean: delay,
                amplitude: delay / 3,
                period: self.millis(500, 60_000),
                phase: Duration::ZERO,
            },
            1 => Schedule::Table {
                points: (0..5).map(|n| (Duration::from_millis(700) * n, self.millis(1, 300))).collect(),
                interpolation: self.pick(&[Interpolation::Step, Interpolation::Linear]),
                repeat_every: Some(Duration::from_secs(4)),
            },
            _ => Schedule::Constant(delay),
        }
    }

    fn jitter(&mut self) -> Jitter {
        let (mean, deviation) = (self.millis(1, 50), self.millis(1, 50));
        let distribution = self.pick(&[
            JitterDistribution::Normal { mean, deviation },
            JitterDistribution::LogNormal { mean, deviation },
            JitterDistribution::Pareto { mean, deviation },
            JitterDistribution::Table { delays: [mean].into() },
        ]);
        Jitter { distribution, correlation: self.pick(&[0.0, 0.5]) }
    }

    /// At least one packet every 20 ms, again and again.
    fn opportunities(&mut self) -> Opportunities {
        let mut at = 0;
        let count = self.between(1, 30);
        let times = (0..count).map(|_| {
            at += self.between(0, 20) as u32;
            at.max(1)
        });
        Opportunities::mahimahi(&times.collect::<Vec<_>>(), true)
    }

    fn link(&mut self) -> LinkConfig {
        let rate = Rate::from_bps(self.magnitude(64e3, 50e6) as u64);
        let reordering = Reordering {
            probability: self.magnitude(1e-3, 0.3),
            extra_min: Duration::ZERO,
            extra_max: self.millis(1, 100),
        };
        let arq = self.one_in(6).then_some(ArqConfig { retries: 2 });
        let k = self.0.below(20) as u32 + 1;
        let code = FecConfig { k, n: k + self.0.below(5) as u32 + 1, flush: self.millis(1, 200) };
        let fec = self.one_in(6).then_some(code);
        let opportunities = (self.one_in(6) && arq.is_none() && fec.is_none()).then(|| self.opportunities());
        LinkConfig {
            rate: opportunities.as_ref().map_or(Schedule::Constant(rate), Opportunities::rate),
            opportunities,
            delay_one_way: self.delay(),
            jitter: self.one_in(6).then(|| self.jitter()),
            queue: self.queue(),
            loss: self.loss(),
            arq,
            fec: if arq.is_none() { fec } else { None },
            outages: self.outages(),
            preserve_order: !self.one_in(4),
            reordering: self.one_in(4).then_some(reordering),
            duplicate_probability: if self.one_in(4) { self.magnitude(1e-3, 0.3) } else { 0.0 },
            corrupt_probability: 0.0,
        }
    }

    fn algorithm(&mut self) -> Algorithm {
        let entry = &REGISTRY[self.0.below(REGISTRY.len() as u64) as usize];
        Algorithm::from_name(entry.name).expect("registered")
    }

    /// Settings shared by both ends of a connection.
    fn common_tcp(&mut self) -> Config {
        Config::default().with(|config| {
            config.sender.cc = self.algorithm();
            config.mss = self.pick(&[100, 536, 960, 1448, 1460, 1460]);
            config.sender.recovery = self.pick(&[
                Recovery::Reno,
                Recovery::NewReno,
                Recovery::Sack,
                Recovery::Rack,
                Recovery::Snack,
            ]);
            config.sender.ack_counting = self.pick(&[AckCounting::Segments, AckCounting::Acks]);
            config.sender.spurious_timeout = self.pick(&[
                SpuriousTimeout::Off,
                SpuriousTimeout::FRto,
                SpuriousTimeout::Eifel,
                SpuriousTimeout::ENHANCED,
                SpuriousTimeout::AEN,
            ]);
        })
    }

    fn tcp(&mut self, common: &Config) -> Config {
        let mss = u64::from(common.mss);
        let receive_window = match self.between(0, 5) {
            0 => ReceiveWindow::Fixed(self.between(mss / 2, 3 * mss)),
            1 => ReceiveWindow::Auto {
                initial: self.between(mss, 20 * mss),
                limit: self.between(20 * mss, 1 << 20),
            },
            2 => ReceiveWindow::Fixed(self.between(65_536, 1 << 20)),
            _ => ReceiveWindow::Fixed(self.between(mss, 64 * mss)),
        };
        let delayed_ack = DelayedAck::On {
            every: self.between(1, 4) as u32,
            timer: self.millis(0, 500),
            quick: self.between(0, 16) as u32,
            after_duplicate: self.pick(&[0, 0, 1, 16]),
        };
        let floor = self.pick(&[10, 200, 1000]);
        common.clone().with(|config| {
            config.sender.prr = self.one_in(2);
            config.sender.undo = !self.one_in(4);
            config.sender.limited_transmit = self.one_in(2);
            config.sender.dup_thresh = self.pick(&[3, 3, 3, 2, 6]);
            config.receiver.dsack = !self.one_in(4);
            config.timestamps = self.one_in(2);
            config.window_scaling = !self.one_in(4);
            config.ecn = self.pick(&[EcnMode::Off, EcnMode::Classic, EcnMode::Accurate]);
            config.sender.nagle = self.one_in(3);
            config.receiver.delayed_ack = if self.one_in(2) { DelayedAck::Off } else { delayed_ack };
            config.receiver.ack_delay =
                self.pick(&[AckDelay::Auto, AckDelay::Paced(AckPace::default()), AckDelay::Counted]);
            config.sender.rto = RtoBounds {
                initial: self.millis(200, 3_000),
                floor: Duration::from_millis(floor),
                margin: Duration::from_millis(self.pick(&[0, 200])),
                ceiling: Duration::from_secs(60),
                tick: Duration::from_millis(self.pick(&[1, 10, 500])),
                each_sample: self.one_in(2),
                restart_on_sacks: self.one_in(2),
            };
            config.sender.window_validation =
                self.pick(&[WindowValidation::Off, WindowValidation::Restart, WindowValidation::Rfc7661]);
            config.sender.initial_window =
                self.pick(&[InitialWindow::Segments(1), InitialWindow::Segments(30), InitialWindow::Rfc6928]);
            config.sender.initial_ssthresh = self.one_in(3).then(|| 2.0 + self.0.uniform() * 60.0);
            config.sender.pacing = self.pacing();
            config.receiver.receive_window = receive_window;
            config.sender.send_buffer =
                if self.one_in(4) { self.between(1, 4 * mss) } else { self.between(mss, 1 << 20) };
            config.sender.max_burst = self.one_in(4).then(|| self.between(1, 6) as u32);
            config.lifetime.keep_alive = self.one_in(6).then_some(KeepAlive {
                idle: Duration::from_secs(5),
                interval: Duration::from_secs(1),
                probes: 20,
            });
            config.lifetime.user_timeout = self.one_in(10).then_some(Duration::from_secs(100));
            config.lifetime.retries = self.between(8, 15) as u32;
            config.receiver.probe_replies = !self.one_in(4);
        })
    }

    fn pacing(&mut self) -> Pacing {
        self.pick(&[Pacing::Algorithm, Pacing::Off, Pacing::WINDOW])
    }

    fn flow_group(&mut self, name: &str, traffic: Traffic) -> FlowGroup {
        let common = self.common_tcp();
        let (sender, receiver) = (self.tcp(&common), self.tcp(&common));
        let carriers = traffic.carriers();
        let others: Vec<_> = carriers.iter().copied().filter(|carrier| *carrier != Transport::Quic).collect();
        let transport = self.pick(&others);
        let options = self.options();
        // A random stream of its own, so that the other worlds stay unchanged.
        let mut apart = Self(Rng::stream(self.0.clone().bits(), "encryption"));
        let reveals = apart.pick(&[Reveals::Nothing, Reveals::Hashes(8), Reveals::Mapping]);
        let quic = carriers.contains(&Transport::Quic) && apart.one_in(5);
        let transport = if quic { Transport::Quic } else { transport };
        let (mut sender, mut options) = (sender, options);
        if transport == Transport::Quic {
            sender.mss = apart.between(1_188, 1_448) as u32;
            sender.sender.initial_window = apart.pick(&[InitialWindow::Segments(30), InitialWindow::Rfc6928]);
            let never = matches!(traffic, Traffic::File { .. }) || apart.one_in(2);
            let idle_timeout = (!never).then(|| apart.millis(1_000, 30_000));
            options.quic = datagram::Options { resumes: apart.one_in(2), idle_timeout };
        }
        let runs = PacketControl::new(&sender.sender.cc, &Settings::default()).is_ok();
        let encrypts = apart.one_in(6) && transport == Transport::Tcp;
        let group = FlowGroup {
            options,
            esp: encrypts.then_some(Esp { reveals, overhead_bytes: 56 }),
            plain_receiver: apart.one_in(6),
            receiver: Arc::new(receiver),
            start: self.millis(0, 3_000),
            transport,
            stagger: self.millis(0, 2_000),
            header_bytes: self.pick(&[40, 52]),
            ..flows(name, self.between(1, 3) as u32, traffic, sender)
        };
        let cc =
            if transport == Transport::Quic && !runs { "quic:cubic".to_owned() } else { group.cc.clone() };
        FlowGroup { cc, ..group }
    }

    /// What flows choose of transports that are not TCP. Bundles over bare datagrams are small enough to arrive now and then.
    fn options(&mut self) -> Options {
        let convergence = self.pick(&[Convergence::Ltp, Convergence::Tcp, Convergence::Udp]);
        let largest = if convergence == Convergence::Udp { 500.0 } else { 1e5 };
        let bundle_bytes = self.magnitude(100.0, largest) as u32;
        let dtn = dtn::Policy {
            bundle_bytes,
            lifetime: Duration::from_secs(20_000),
            custody: convergence == Convergence::Udp || self.one_in(2),
            custody_timer: self.millis(500, 20_000),
            store_bytes: u64::from(bundle_bytes) + self.magnitude(1e3, 1e7) as u64,
            convergence,
            ..dtn::Policy::default()
        };
        let stp = stp::Options { outage_tolerant: self.one_in(4), ..stp::Options::default() };
        let petra = petra::Options {
            retention_bytes: self.one_in(2).then(|| self.magnitude(3e3, 1e6) as u64),
            confirm_bytes: self.magnitude(1e2, 1e5) as u64,
            confirm_after: self.millis(10, 3_000),
            timeout: self.millis(1_000, 20_000),
            rate: None,
        };
        let mut apart = Self(Rng::stream(self.0.clone().bits(), "admission"));
        let admission = admission::Options {
            rate: Rate::from_bps(apart.between(8_000, 500_000)),
            probe: apart.millis(100, 3_000),
            threshold: apart.magnitude(1e-3, 1.0),
        };
        Options {
            admission,
            stp,
            sctp: sctp::Options { unordered: self.one_in(2) },
            dtn,
            petra,
            ..Options::default()
        }
    }

    /// Traffic that never ends.
    fn endless(&mut self) -> Traffic {
        let idle_time = self.millis(0, 3_000);
        let idle = self.pick(&[Idle::Fixed(idle_time), Idle::Exponential(idle_time)]);
        let pages = Traffic::Pages { bytes: self.between(1, 40_000), idle, fresh_connection: self.one_in(2) };
        let spacing = self.pick(&[Spacing::Even, Spacing::Uniform, Spacing::Exponential]);
        let rate = Rate::from_bps(self.between(8_000, 200_000));
        let cbr = Traffic::Cbr { rate, packet_bytes: 500, spacing };
        let video = Traffic::Video { video: Default::default(), stream: Streaming::default() };
        let codec = self.pick(&[voice::Codec::G711, voice::Codec::G729]);
        let voice = Traffic::Voice { codec, suppress_silence: self.one_in(2), jitter_buffer: idle_time };
        let models = [web::Model::ChoiLimb, web::Model::Mah, web::Model::Surge, web::Model::Ns2Web];
        let web = Traffic::Web(browser::Config {
            model: self.pick(&models),
            connections: self.between(1, 6) as u32,
            persistent: self.one_in(2),
            view_scale: 0.1,
        });
        let logic = self.pick(&[adaptive::Logic::BUFFER, adaptive::Logic::THROUGHPUT]);
        let adaptive = Traffic::Adaptive(adaptive::Config { logic, ..adaptive::Config::default() });
        let ftp = Traffic::Ftp(fetch::Config { reading: idle_time, ..fetch::Config::default() });
        let bursts = Traffic::OnOff(on_off::Config { packet_bytes: 300, ..on_off::Config::default() });
        self.pick(&[Traffic::Bulk, pages, cbr, video, voice, web, adaptive, ftp, bursts])
    }

    fn world(&mut self) -> Scenario {
        let endless = self.one_in(4);
        let groups = (0..self.between(1, 3)).map(|n| {
            let bytes = self.magnitude(1.0, 1e6) as u64;
            let traffic = if endless { self.endless() } else { Traffic::File { bytes } };
            let mut group = self.flow_group(&format!("group{n}"), traffic);
            if let Traffic::File { bytes } = &mut group.traffic {
                // A window of some bytes per round trip cannot carry a large file in a day.
                let window =
                    group.sender.sender.send_buffer.min(group.receiver.receiver.receive_window.limit());
                *bytes = (*bytes).min(20_000 * window);
            }
            group
        });
        let groups = groups.collect();
        let dumbbell =
            Dumbbell { pairs: self.between(1, 3) as u32, access: self.link(), satellite: self.link() };
        // Storms have no use for weather on the ground, nor for a week of it.
        let access =
            LinkConfig { loss: LossConfig::default(), outages: Outages::default(), ..dumbbell.access };
        let dumbbell = Dumbbell { access, ..dumbbell };
        let duration = Duration::from_secs(if endless { 60 } else { 100_000 });
        let scenario = dumbbell.scenario(duration, groups);
        let back =
            LinkGroup { reverse: self.link(), ..links("satellite", ("west", "east"), dumbbell.satellite) };
        Scenario { links: vec![scenario.links[0].clone(), back, scenario.links[2].clone()], ..scenario }
    }

    fn middlebox(&mut self) -> MiddleboxConfig {
        let (name, _) = self.pick(MIDDLEBOXES);
        match MiddleboxConfig::from_name(name).expect("listed") {
            MiddleboxConfig::AckDecimator(_) => MiddleboxConfig::AckDecimator(AckDecimatorConfig {
                every: self.between(1, 8) as u32,
                patience: self.millis(1, 1_000),
            }),
            MiddleboxConfig::SatPep(_) => MiddleboxConfig::SatPep(SatPepConfig {
                buffer: self.magnitude(3e3, 1e6) as u64,
                utilisation: self.magnitude(0.1, 1.0),
                dies_at: self.one_in(8).then(|| self.millis(1, 60_000)),
            }),
            MiddleboxConfig::Spoofing(_) => MiddleboxConfig::Spoofing(SpoofingConfig {
                buffer: self.magnitude(3e3, 1e6) as u64,
                initial_window: self.between(1, 40) as u32,
                dies_at: self.one_in(8).then(|| self.millis(1, 60_000)),
            }),
            plain => plain,
        }
    }

    fn proxy(&mut self) -> ProxyConfig {
        let common = self.common_tcp();
        let tcp = self.tcp(&common);
        let side =
            Side { cc: tcp.sender.cc.name().to_owned(), law: Some(tcp.sender.cc.clone()), ..Side::default() };
        let own = self.one_in(2);
        let split = Split {
            satellite: if own { side } else { Side::default() },
            buffer: self.one_in(4).then(|| self.magnitude(1.0, 1e6) as u64),
            syn: self.pick(&[Opening::Early, Opening::ServerFirst]),
            ..Split::default()
        };
        ProxyConfig {
            split,
            connect: self.pick(&[Connect::Early, Connect::Late]),
            dies_at: self.one_in(8).then(|| self.millis(1, 60_000)),
            tcp: Arc::new(tcp),
        }
    }

    fn relay_entity(&mut self) -> RelayConfig {
        RelayConfig {
            buffer: self.one_in(2).then(|| self.magnitude(1e3, 1e6) as u64),
            dies_at: self.one_in(4).then(|| self.millis(1, 60_000)),
            back_after: self.one_in(2).then(|| self.millis(1, 20_000)),
            ..RelayConfig::default()
        }
    }

    /// Adds to some worlds relay entities, proxies or middleboxes on both sides of the satellite, and to others a second satellite for
    /// outages of the first.
    fn furnish(&mut self, scenario: &mut Scenario) {
        let relays = self.one_in(4);
        for side in 1..=2 {
            if relays {
                scenario.nodes[side].kind = NodeKind::RelayEntity(self.relay_entity());
            } else if self.one_in(3) {
                scenario.nodes[side].kind = NodeKind::Middlebox(self.middlebox());
            } else if self.one_in(3) {
                let proxy = self.proxy();
                for group in &mut scenario.flows {
                    if let Traffic::File { bytes } = &mut group.traffic {
                        let window = proxy.split.most_kept().min(proxy.tcp.receiver.receive_window.limit());
                        *bytes = (*bytes).min(20_000 * window);
                    }
                }
                scenario.nodes[side].kind = NodeKind::Proxy(Box::new(proxy));
            } else if self.one_in(3) {
                let store_bytes = 200_000 + self.magnitude(1.0, 1e7) as u64;
                let custody = self.one_in(2);
                scenario.nodes[side].kind = NodeKind::BundleRouter(RouterConfig { store_bytes, custody });
            }
        }
        if self.one_in(4) {
            scenario.routing = Routing::AvoidOutages;
            scenario.links.push(links("spare", ("west", "east"), self.link()));
        }
    }

    /// Replaces the satellite of some worlds by a constellation; others get rain, and others terminals that share a channel.
    fn raise(&mut self, scenario: &mut Scenario) {
        match self.between(0, 11) {
            0 | 1 => self.let_fly(scenario),
            2 => self.let_rain(scenario),
            3 | 4 => self.share(scenario),
            _ => {}
        }
    }

    /// A few hours under satellites that hand over, whatever stood at the ends of the satellite before.
    fn let_fly(&mut self, scenario: &mut Scenario) {
        let mut position = |gateway| {
            let latitude_deg = self.0.uniform() * 120.0 - 60.0;
            let longitude_deg = self.0.uniform() * 360.0 - 180.0;
            let place = Place { latitude_deg, longitude_deg, altitude_km: 0.0 };
            Position { place, gateway, ..Position::default() }
        };
        for (node, gateway) in [(1, false), (2, true)] {
            scenario.nodes[node].kind = NodeKind::GroundStation(position(gateway));
        }
        scenario.links.retain(|link| link.name != "satellite" && link.name != "spare");
        let [up, down, between] = [(); 3].map(|()| LinkConfig {
            // Where a way has many hops, errors on each would be errors on all.
            loss: LossConfig { model: LossModel::Packet { probability: 1e-3 }, ..LossConfig::default() },
            reordering: None,
            duplicate_probability: 0.0,
            ..self.link()
        });
        let handovers = [Handover::Nearest, Handover::InPlane, Handover::LongestVisible];
        scenario.constellations = vec![ConstellationGroup {
            name: "sky".to_owned(),
            orbits: Orbits::Shell(self.pick(&[Shell::IRIDIUM, Shell::TELEDESIC])),
            elevation_mask_deg: 5.0,
            handover: self.pick(&handovers),
            links: Some(Links::Grid(self.pick(&[Grid::PLUS, Grid::IRIDIUM, Grid::TELEDESIC]))),
            step: Duration::from_secs(self.between(10, 60)),
            in_flight: self.pick(&[InFlight::Rerouted, InFlight::Lost]),
            interruption: self.millis(0, 2_000),
            up,
            down,
            recordings: Default::default(),
            between,
        }];
        scenario.duration = scenario.duration.min(Duration::from_secs(10_000));
        for group in &mut scenario.flows {
            // The report of a bundle may be lost in a datagram; the source stops waiting after two lifetimes.
            group.options.dtn.lifetime = Duration::from_secs(4_000);
            if let Traffic::File { bytes } = &mut group.traffic {
                *bytes = (*bytes).min(
                    50 * group.sender.sender.send_buffer.min(group.receiver.receiver.receive_window.limit()),
                );
            }
        }
    }

    /// Rain over the satellite, and a modem that follows it.
    fn let_rain(&mut self, scenario: &mut Scenario) {
        let hours = (0..10).map(|n| (Duration::from_secs(n * 20), self.magnitude(0.1, 60.0)));
        let weather = Weather::Rain { points: hours.collect(), path: SlantPath::default() };
        let modem = Modem { clear_sky_db: 6.0 + self.0.uniform() * 10.0, ..Modem::default() };
        let satellite = &mut scenario.links[1].forward;
        let delay_one_way = Schedule::Constant(self.millis(1, 300));
        *satellite = LinkConfig {
            delay_one_way,
            outages: Outages::default(),
            opportunities: None,
            arq: None,
            fec: None,
            ..satellite.clone()
        };
        // The shower ends, so that all remaining packets have clear sky.
        modem.plan(&weather, Duration::from_secs(600)).apply(satellite);
    }

    /// Terminals of one side share a channel: for their data, or for their ACKs.
    fn share(&mut self, scenario: &mut Scenario) {
        let (delay_one_way, rate) = (self.millis(1, 260), Rate::from_bps(self.magnitude(5e5, 5e6) as u64));
        let queue = QueueConfig::DropTail { limit: Limit::Packets(self.between(2, 60) as u32) };
        let channel = LinkConfig { loss: self.loss(), ..LinkConfig::new(rate, delay_one_way, queue) };
        let request_loss = if self.one_in(2) { self.magnitude(1e-3, 0.5) } else { 0.0 };
        let strategies = [
            RequestStrategy::Fixed,
            RequestStrategy::Random,
            RequestStrategy::Piggyback,
            RequestStrategy::Combined,
        ];
        let strategy = self.pick(&strategies);
        let assigned = [
            Access::Tdma(Frame::default()),
            Access::Dama(DamaConfig { request_loss, ..DamaConfig::default() }),
            Access::CfDama(CfDamaConfig { request_loss, strategy, ..CfDamaConfig::default() }),
        ];
        let random = [
            Access::Aloha(AlohaConfig::default()),
            Access::SlottedAloha(SlottedAlohaConfig::default()),
            Access::Crdsa(CrdsaConfig::default()),
        ];
        if self.one_in(2) {
            let link = &mut scenario.links[0];
            (link.forward, link.radio[0].medium) = (channel, Some(self.pick(&assigned)));
        } else {
            let access = if self.one_in(2) { self.pick(&assigned) } else { self.pick(&random) };
            let link = &mut scenario.links[2];
            (link.reverse, link.radio[1].medium) = (channel, Some(access));
        }
    }
}

fn world(seed: u64) -> Scenario {
    if Dice(Rng::stream(seed, "storm/apart")).one_in(12) {
        let mut scenario = under_satellites(seed);
        // No file is sure to be through at the end.
        for group in &mut scenario.flows {
            if let Traffic::File { .. } = group.traffic {
                group.traffic = Traffic::Bulk;
            }
        }
        return scenario;
    }
    let mut scenario = Dice(Rng::stream(seed, "storm")).world();
    Dice(Rng::stream(seed, "storm/inside")).furnish(&mut scenario);
    Dice(Rng::stream(seed, "storm/above")).raise(&mut scenario);
    scenario.seed = seed;
    scenario
}

/// Returns the faults of a run.
fn faults(scenario: &Scenario, result: &RunResult) -> Vec<String> {
    let mut faults = result.violations.clone();
    if result.ended != Ended::InTime {
        faults.push(format!("ended {:?}: a livelock?", result.ended));
    }
    for flow in &result.outcome.flows {
        let group = scenario.flows.iter().find(|group| group.name == flow.group);
        if let Some(Traffic::File { bytes }) = group.map(|group| group.traffic.clone()) {
            let for_good = |node: &&NodeOutcome| {
                let known = scenario.nodes.iter().find(|known| known.name == node.name);
                !matches!(known.map(|known| &known.kind), Some(NodeKind::RelayEntity(relay)) if relay.back_after.is_some())
            };
            let mut lasting = result.outcome.nodes.iter().filter(for_good);
            let crashed = lasting.any(|node| node.counters.get("crashes") == Some(&1));
            let complete = flow.delivered_bytes == bytes && flow.completion_s.is_some();
            if flow.delivered_bytes > bytes || (!complete && !crashed && flow.aborted.is_none()) {
                faults.push(format!("{bytes} bytes were to be delivered: {flow:?}"));
            }
        }
    }
    faults
}

/// Runs a world. Returns its faults, whether a connection was aborted, and the number of packets that the links delivered.
fn storm(seed: u64) -> (Vec<String>, bool, u64) {
    let scenario = world(seed);
    let options = RunOptions { verify: true, max_events: Some(EVENT_BUDGET), ..RunOptions::default() };
    match catch_unwind(AssertUnwindSafe(|| run(&scenario, &options))) {
        Ok(Ok(result)) => {
            let aborted = result.outcome.flows.iter().any(|flow| flow.aborted.is_some());
            let packets = result.outcome.links.iter().map(|link| link.delivered_packets).sum();
            (faults(&scenario, &result), aborted, packets)
        }
        Ok(Err(error)) => (vec![error.to_string()], false, 0),
        Err(_) => (vec!["it panicked".to_owned()], false, 0),
    }
}

fn variable(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

#[test]
fn every_world_ends_well() {
    let worlds = variable("BENTPIPE_STORM").unwrap_or(300);
    let from = variable("BENTPIPE_STORM_FROM").unwrap_or_default();
    let (mut failed, mut aborted, mut packets) = (0, 0, 0);
    let slow = variable("BENTPIPE_STORM_SLOW_MS").unwrap_or(u64::MAX);
    for seed in from..from + worlds {
        let begun = std::time::Instant::now();
        let (faults, abort, delivered) = storm(seed);
        packets += delivered;
        let took = begun.elapsed();
        if took.as_millis() > u128::from(slow) {
            println!("storm {seed} took {took:?}");
        }
        aborted += u64::from(abort);
        for fault in faults.iter().take(3) {
            println!("storm {seed}: {fault}");
        }
        if !faults.is_empty() {
            failed += 1;
            println!("replay it: BENTPIPE_STORM_SEED={seed} {REPLAY}");
        }
    }
    println!(
        "storm of worlds: seeds {from} to {}, {packets} packets, {failed} failed, {aborted} with an aborted connection",
        from + worlds
    );
    assert_eq!(failed, 0);
    assert!(aborted * 10 < worlds.max(10), "too many give up: {aborted} of {worlds}");
}

/// Observers, checkers, the partition of a world and the number of threads do not change the results. Observers make traced connections
/// take the slow path through the engine.
#[test]
fn neither_observers_nor_the_partition_nor_threads_change_anything() {
    let worlds = variable("BENTPIPE_STORM").map_or(40, |worlds| worlds / 4);
    let from = variable("BENTPIPE_STORM_FROM").unwrap_or_default();
    for seed in from..from + worlds {
        let scenario = world(seed);
        let result = |options: RunOptions<'_>| {
            let result = run(&scenario, &options).expect("the world can be built");
            let RunResult { outcome, ended, violations, .. } = result;
            assert_eq!(violations, [""; 0], "storm {seed}");
            (bentpipe_outcome::Outcome { wall_s: 0.0, ..outcome }, ended)
        };
        let budget = RunOptions { max_events: Some(EVENT_BUDGET), ..RunOptions::default() };
        let silent = result(budget);
        let watched = result(RunOptions { record: true, verify: true, ..budget });
        let event_by_event = result(RunOptions { event_by_event: true, ..budget });
        if silent.1 == Ended::OutOfEvents {
            // Each way of execution has another part of the world behind it then.
            assert_eq!([watched.1, event_by_event.1], [silent.1; 2], "storm {seed}");
        } else {
            assert_eq!(silent, watched, "storm {seed}");
            assert_eq!(silent, event_by_event, "storm {seed}");
            // Several threads have no budget.
            let threads = NonZeroUsize::new(2 + seed as usize % 2);
            assert_eq!(silent, result(RunOptions { threads, ..RunOptions::default() }), "storm {seed}");
        }
    }
}

/// Prints what happens.
struct Narrator;

impl Observer for Narrator {
    fn on_link(&mut self, at: Instant, event: LinkEvent, passing: &Passing<'_>) {
        if let LinkEvent::Dropped(cause) = event {
            println!("{at:?} link {} drops a packet of {} bytes: {cause:?}", passing.link, passing.bytes);
        }
    }

    fn on_end(&mut self, at: Instant, end: u32, event: &Event) {
        match event {
            Event::Sent(segment) => println!("{at:?} end {end} sends {}", short(segment)),
            Event::Received(segment) => println!("{at:?} end {end} gets  {}", short(segment)),
            other => println!("{at:?} end {end} {other:?}"),
        }
    }
}

fn short(segment: &Segment) -> String {
    let flags: Vec<_> = segment.flags.iter_names().map(|(name, _)| name).collect();
    let sack: Vec<_> = segment.sack.as_slice().iter().map(|range| (range.start, range.end)).collect();
    let Segment { seq, len, ack, window, probe, ecn, .. } = segment;
    format!("{} {seq}+{len} ack {ack} window {window} {sack:?} {probe:?} {ecn:?}", flags.join(" "))
}

#[test]
fn replay() {
    let Some(seed) = variable("BENTPIPE_STORM_SEED") else { return };
    let scenario = world(seed);
    println!("{scenario:#?}");
    let options = RunOptions { verify: true, max_events: Some(EVENT_BUDGET), ..RunOptions::default() };
    let result = run_observed(&scenario, &options, &mut Narrator).expect("the world can be built");
    println!("{:#?}", result.outcome);
    assert_eq!(faults(&scenario, &result), [""; 0]);
}
