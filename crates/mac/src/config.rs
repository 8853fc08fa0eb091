use bentpipe_base::{Duration, Rate};
use bentpipe_net::{ConfigError, Limit, LossConfig, check_probability};

/// Name and meaning of every access scheme.
pub const MEDIA: &[(&str, &str)] = &[
    ("tdma", "fixed slots of every frame for each terminal"),
    ("tdma-dama", "slots in proportion to the requests, reassigned at each superframe"),
    ("cf-dama", "requested slots first come, first served; free slots in turn"),
    ("aloha", "a packet leaves at once; overlapping packets are lost and repeated"),
    ("slotted-aloha", "as aloha, at the beginning of slots"),
    ("crdsa", "copies in random slots of a frame; the receiver cancels decoded copies to decode others"),
];

/// A shared channel, from many terminals to one receiver.
#[derive(Clone, Debug, PartialEq)]
pub struct MediumConfig {
    /// Transmission rate of the channel.
    pub rate: Rate,
    /// Delay from the end of a transmission at any terminal to the arrival of its last bit. Terminals are synchronised:
    /// transmissions in the same slot arrive in the same slot.
    pub delay_one_way: Duration,
    /// Medium-access scheme of the channel.
    pub access: Access,
}

/// Configuration of a single terminal.
#[derive(Clone, Debug, PartialEq)]
pub struct TerminalConfig {
    /// Drop-tail queue of the transmitter. A packet counts until it was sent completely and got through.
    pub queue: Limit,
    /// Transmission errors in addition to collisions, drawn per packet when its last piece is sent. The error process sees whole
    /// packets: independent bit errors hit a packet in pieces as often as one in a single piece.
    pub loss: LossConfig,
}

/// Access scheme of a shared channel.
#[derive(Clone, Debug, PartialEq)]
pub enum Access {
    /// Slot `i` of each frame belongs to terminal `i mod n`, whether it is used or not.
    Tdma(Frame),
    /// Demand assignment whose shares change at superframes.
    Dama(DamaConfig),
    /// Combined free and demand assignment.
    CfDama(CfDamaConfig),
    /// Pure Aloha.
    Aloha(AlohaConfig),
    /// Slotted Aloha.
    SlottedAloha(SlottedAlohaConfig),
    /// Contention resolution diversity slotted Aloha.
    Crdsa(CrdsaConfig),
}

/// Frame of equal slots. Slots follow each other without gaps; `overhead` accounts for losses within them.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Length of a frame.
    pub length: Duration,
    /// Data slots in a frame.
    pub slots: u32,
    /// Fraction of the channel that carries no packets: guard times, preambles, request minislots.
    pub overhead: f64,
    /// Header bytes per piece of a packet: a slot may hold several packets, and a packet may use several slots.
    pub header: u32,
}

/// TDMA-DAMA. At the start of each superframe, terminals report their queue lengths. The hub divides the slots of a frame in
/// proportion to the reports, at least one to each terminal with a report.
#[derive(Clone, Debug, PartialEq)]
pub struct DamaConfig {
    /// Frame of equal slots.
    pub frame: Frame,
    /// Frames in a superframe.
    pub superframe: u32,
    /// Superframes without a request after which the hub withdraws the last slot.
    pub idle_superframes: u32,
    /// Probability that errors hit a request: the hub then assumes no demand of the terminal in that superframe.
    pub request_loss: f64,
}

/// Combined free and demand assignment (Le-Ngoc and Mohammed, "Combined free/demand assignment multiple access (CFDAMA)
/// protocols for packet satellite communications", ICUPC 1993).
#[derive(Clone, Debug, PartialEq)]
pub struct CfDamaConfig {
    /// Frame of equal slots.
    pub frame: Frame,
    /// Request strategy of terminals.
    pub strategy: RequestStrategy,
    /// Number of contention minislots per frame. Fixed minislots are one per terminal.
    pub minislots: u32,
    /// Maximum number of slots per request.
    pub request_limit: u32,
    /// Probability that errors hit a request. The scheduler repeats what it hears: a terminal detects the loss a round trip later
    /// and asks again.
    pub request_loss: f64,
    /// Location of the scheduler.
    pub scheduler: SchedulerPlace,
}

/// Request strategy of terminals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestStrategy {
    /// In the terminal's own minislot in every frame.
    Fixed,
    /// In a random minislot; colliding requests are lost.
    Random,
    /// Together with packets, in a slot that it uses.
    Piggyback,
    /// Together with packets if it has a slot in the frame, else in a random minislot.
    Combined,
}

/// Location of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerPlace {
    /// At the receiver, with a satellite that only repeats.
    Hub,
    /// On board the satellite, at half of the one-way delay.
    Onboard,
}

/// Pure Aloha (Abramson, "The ALOHA system", AFIPS 1970) as in the satellite model of ns-2. A terminal hears the satellite repeat
/// its packet, and then sends the next one.
#[derive(Clone, Debug, PartialEq)]
pub struct AlohaConfig {
    /// Link header bytes per packet.
    pub header: u32,
    /// Timeout for the echo, from the end of a transmission.
    pub timeout: Duration,
    /// Mean of the exponentially distributed back-off after a timeout.
    pub mean_backoff: Duration,
    /// Number of retransmissions after which a packet is given up.
    pub retries: u32,
    /// True if terminals listen for the echo. Otherwise collisions stay unnoticed: collided packets are lost, and the next packet
    /// leaves at once.
    pub detection: bool,
}

/// Slotted Aloha (Roberts, "ALOHA packet system with and without slots and capture", 1975).
#[derive(Clone, Debug, PartialEq)]
pub struct SlottedAlohaConfig {
    /// Bytes per slot.
    pub slot_bytes: u32,
    /// Guard time in a slot.
    pub guard: Duration,
    /// Header bytes per piece of a packet.
    pub header: u32,
    /// Timeout for the echo, from the end of a transmission.
    pub timeout: Duration,
    /// After the k-th collision a terminal waits a random number of slots, below `2^min(k, backoff_limit)`.
    pub backoff_limit: u32,
    /// Retransmissions after which a burst is given up, with all packets that have a piece in it.
    pub retries: u32,
}

/// Contention resolution diversity slotted Aloha (Casini, De Gaudenzi, Del Rio Herrero, "Contention resolution diversity slotted
/// ALOHA (CRDSA): an enhanced random access scheme for satellite access packet networks", IEEE Trans. Wireless Commun. 6(4), 2007).
#[derive(Clone, Debug, PartialEq)]
pub struct CrdsaConfig {
    /// Frame of equal slots.
    pub frame: Frame,
    /// Number of copies of a burst, in different slots of its frame.
    pub replicas: u32,
    /// Maximum number of passes of the receiver over a frame. Each pass cancels what the previous one decoded.
    pub iterations: u32,
    /// Timeout for the answer, from the end of a frame.
    pub timeout: Duration,
    /// After the k-th failure a terminal waits a random number of frames, below `2^min(k, backoff_limit)`.
    pub backoff_limit: u32,
    /// Retransmissions after which a burst is given up, with all packets that have a piece in it.
    pub retries: u32,
}

impl Default for Frame {
    /// 64 slots in 24 ms, an overhead of 10 %, and a 4-byte header per piece.
    fn default() -> Self {
        Self { length: Duration::from_millis(24), slots: 64, overhead: 0.1, header: 4 }
    }
}

impl Default for DamaConfig {
    fn default() -> Self {
        Self { frame: Frame::default(), superframe: 10, idle_superframes: 2, request_loss: 0.0 }
    }
}

impl Default for CfDamaConfig {
    fn default() -> Self {
        Self {
            frame: Frame::default(),
            strategy: RequestStrategy::Combined,
            minislots: 8,
            request_limit: 64,
            request_loss: 0.0,
            scheduler: SchedulerPlace::Hub,
        }
    }
}

impl Default for AlohaConfig {
    /// Constants of ns-2's satellite model.
    fn default() -> Self {
        Self {
            header: 16,
            timeout: Duration::from_millis(270),
            mean_backoff: Duration::from_secs(1),
            retries: 3,
            detection: true,
        }
    }
}

impl Default for SlottedAlohaConfig {
    fn default() -> Self {
        Self {
            slot_bytes: 1040,
            guard: Duration::from_millis(1),
            header: 16,
            timeout: Duration::from_millis(270),
            backoff_limit: 6,
            retries: 3,
        }
    }
}

impl Default for CrdsaConfig {
    fn default() -> Self {
        Self {
            frame: Frame { slots: 100, length: Duration::from_millis(100), ..Frame::default() },
            replicas: 2,
            iterations: 16,
            timeout: Duration::from_millis(270),
            backoff_limit: 6,
            retries: 3,
        }
    }
}

impl Frame {
    /// Returns the bytes per slot at `rate`, headers of pieces included.
    pub fn slot_bytes(&self, rate: Rate) -> u32 {
        let whole = rate.bytes_in(self.length) as f64 * (1.0 - self.overhead);
        (whole / f64::from(self.slots.max(1))) as u32
    }

    fn validate(&self, rate: Rate) -> Result<(), ConfigError> {
        if self.slots == 0 {
            return Err(ConfigError::new("slots", 0, "at least 1 slot in a frame"));
        }
        if self.length.as_nanos() < u64::from(self.slots) {
            return Err(ConfigError::new("frame", self.length, "at least 1 ns for each slot"));
        }
        check_probability("overhead", self.overhead)?;
        let bytes = self.slot_bytes(rate);
        if bytes <= self.header {
            let found = format!("{} slots of {bytes} bytes", self.slots);
            return Err(ConfigError::new("slots", found, "slots that carry more than the header of a piece"));
        }
        Ok(())
    }

    fn validate_for(&self, rate: Rate, terminals: usize) -> Result<(), ConfigError> {
        self.validate(rate)?;
        if (self.slots as usize) < terminals {
            let found = format!("{} slots for {terminals} terminals", self.slots);
            return Err(ConfigError::new("slots", found, "at least one slot for each terminal"));
        }
        Ok(())
    }
}

impl Access {
    /// Returns the name of the scheme in [`MEDIA`].
    pub fn name(&self) -> &'static str {
        match self {
            Self::Tdma(_) => "tdma",
            Self::Dama(_) => "tdma-dama",
            Self::CfDama(_) => "cf-dama",
            Self::Aloha(_) => "aloha",
            Self::SlottedAloha(_) => "slotted-aloha",
            Self::Crdsa(_) => "crdsa",
        }
    }
}

impl MediumConfig {
    /// Checks that `terminals` terminals can share this channel.
    ///
    /// # Errors
    /// The first invalid field.
    pub fn validate(&self, terminals: usize) -> Result<(), ConfigError> {
        if self.rate == Rate::ZERO {
            return Err(ConfigError::new("rate", self.rate, "at least 1 bit/s"));
        }
        match &self.access {
            Access::Tdma(frame) => frame.validate_for(self.rate, terminals),
            Access::Dama(dama) => {
                dama.frame.validate_for(self.rate, terminals)?;
                at_least_one("superframe", dama.superframe, "at least 1 frame")?;
                check_probability("request_loss", dama.request_loss)?;
                at_least_one("idle_superframes", dama.idle_superframes, "at least 1 superframe")
            }
            Access::CfDama(cf_dama) => {
                cf_dama.frame.validate(self.rate)?;
                check_probability("request_loss", cf_dama.request_loss)?;
                at_least_one("minislots", cf_dama.minislots, "at least 1 minislot")?;
                at_least_one("request_limit", cf_dama.request_limit, "at least 1 slot")
            }
            Access::Aloha(aloha) if aloha.detection => self.check_timeout(aloha.timeout),
            Access::Aloha(_) => Ok(()),
            Access::SlottedAloha(slotted) => {
                self.check_timeout(slotted.timeout)?;
                check_backoff(slotted.backoff_limit)?;
                if slotted.slot_bytes <= slotted.header {
                    let accepted = "more than the header of a piece";
                    return Err(ConfigError::new("slot_bytes", slotted.slot_bytes, accepted));
                }
                Ok(())
            }
            Access::Crdsa(crdsa) => {
                self.check_timeout(crdsa.timeout)?;
                check_backoff(crdsa.backoff_limit)?;
                crdsa.frame.validate(self.rate)?;
                at_least_one("iterations", crdsa.iterations, "at least 1 pass")?;
                if crdsa.replicas == 0 || crdsa.replicas > crdsa.frame.slots {
                    let accepted = "at least 1 copy, at most one in each slot of a frame";
                    return Err(ConfigError::new("replicas", crdsa.replicas, accepted));
                }
                Ok(())
            }
        }
    }

    /// Checks that the timeout exceeds the one-way delay of the echo: a shorter one would give up every packet.
    fn check_timeout(&self, timeout: Duration) -> Result<(), ConfigError> {
        if timeout < self.delay_one_way {
            return Err(ConfigError::new("timeout", timeout, "at least the one-way delay"));
        }
        Ok(())
    }
}

fn at_least_one(field: &str, found: u32, accepted: &'static str) -> Result<(), ConfigError> {
    if found == 0 { Err(ConfigError::new(field, found, accepted)) } else { Ok(()) }
}

fn check_backoff(limit: u32) -> Result<(), ConfigError> {
    if limit > 32 {
        return Err(ConfigError::new("backoff_limit", limit, "at most 32"));
    }
    Ok(())
}
