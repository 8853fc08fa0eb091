use bentpipe_base::{Duration, Instant, Rng};
use bentpipe_net::{Backlog, ConfigError, Dropped, LinkStats, Packet, Verdict};
use bentpipe_trace::DropCause;

use crate::air::Air;
use crate::aloha::Aloha;
use crate::cf_dama::CfDama;
use crate::crdsa::Crdsa;
use crate::dama::Dama;
use crate::slotted::Slotted;
use crate::stats::MediumStats;
use crate::tdma::Tdma;
use crate::terminal::Terminal;
use crate::ticks::Ticks;
use crate::{Access, MediumConfig, TerminalConfig};

/// A channel that several terminals share towards one receiver.
///
/// Driven as a [`Link`](bentpipe_net::Link): the driver calls [`Medium::enqueue`] with a packet and its terminal, or [`Medium::deliver`]
/// when [`Medium::next_event`] has come, until it returns nothing; after either it fetches what was lost with
/// [`Medium::poll_dropped`]; then it reads [`Medium::next_event`] again. Time must not go backwards. At one instant, slots that
/// begin come before arrivals at the terminals.
///
/// Frames in which nobody has anything to send cost nothing, and slots are worked off in one go when their outcome is needed.
#[derive(Clone, Debug)]
pub struct Medium<P> {
    air: Air<P>,
    scheme: Scheme,
}

#[derive(Clone, Debug)]
enum Scheme {
    Tdma(Tdma),
    Dama(Dama),
    CfDama(CfDama),
    Aloha(Aloha),
    Slotted(Slotted),
    Crdsa(Crdsa),
}

/// Does `$do` with whatever scheme it is.
macro_rules! with {
    ($scheme:expr, $name:ident => $do:expr) => {
        match $scheme {
            Scheme::Tdma($name) => $do,
            Scheme::Dama($name) => $do,
            Scheme::CfDama($name) => $do,
            Scheme::Aloha($name) => $do,
            Scheme::Slotted($name) => $do,
            Scheme::Crdsa($name) => $do,
        }
    };
}

impl<P: Packet> Medium<P> {
    /// The medium `name` of a run with `seed`, shared by these terminals: name, seed and place of a terminal choose its random streams.
    ///
    /// # Errors
    /// If there can be no such medium; names the first field that prevents it.
    pub fn new(
        config: &MediumConfig,
        terminals: &[TerminalConfig],
        (seed, name): (u64, &str),
    ) -> Result<Self, ConfigError> {
        config.validate(terminals.len())?;
        for terminal in terminals {
            terminal.queue.validate("queue.limit")?;
            terminal.loss.validate().map_err(|error| error.within("loss"))?;
        }
        let stream = |what: &str, index: usize| Rng::stream(seed, &format!("{name}.{index}/{what}"));
        let rngs: Vec<_> = (0..terminals.len()).map(|index| stream("access", index)).collect();
        let parts =
            terminals.iter().enumerate().map(|(index, own)| Terminal::new(own, stream("loss", index)));
        let air = Air::new(parts.collect(), config.delay_one_way);
        let scheme = match &config.access {
            Access::Tdma(frame) => Scheme::Tdma(Tdma::new(frame, config.rate, terminals.len())),
            Access::Dama(dama) => Scheme::Dama(Dama::new(dama, config, rngs)),
            Access::CfDama(cf_dama) => Scheme::CfDama(CfDama::new(cf_dama, config, rngs)),
            Access::Aloha(aloha) => Scheme::Aloha(Aloha::new(aloha, config.rate, rngs)),
            Access::SlottedAloha(slotted) => Scheme::Slotted(Slotted::new(slotted, config.rate, rngs)),
            Access::Crdsa(crdsa) => Scheme::Crdsa(Crdsa::new(crdsa, config.rate, rngs)),
        };
        Ok(Self { air, scheme })
    }

    /// Gives `terminal` a packet to send.
    ///
    /// # Panics
    /// If there is no such terminal.
    pub fn enqueue(&mut self, now: Instant, terminal: u32, packet: P) -> Verdict {
        self.settle(now);
        if !self.air.admit(now, terminal, packet) {
            return Verdict::Dropped(DropCause::Queue);
        }
        with!(&mut self.scheme, scheme => scheme.wake(&self.air, terminal, now));
        Verdict::Accepted
    }

    /// The next packet that has arrived by `now`, and its terminal; call until it returns nothing.
    pub fn deliver(&mut self, now: Instant) -> Option<(u32, P)> {
        self.settle(now);
        self.air.land(now)
    }

    /// The next packet that was dropped, and its terminal; each packet comes out exactly once, here or from [`Medium::deliver`].
    pub fn poll_dropped(&mut self) -> Option<(u32, Dropped<P>)> {
        self.air.poll_dropped()
    }

    /// When [`Medium::deliver`] must be called next; [`Instant::FAR_FUTURE`] while nothing is pending.
    pub fn next_event(&self) -> Instant {
        let acts = with!(&self.scheme, scheme => Ticks::<P>::next(scheme));
        if acts == Instant::FAR_FUTURE {
            return self.air.next_due();
        }
        // Nothing that a slot brings about is seen before the way to the receiver is behind it.
        self.air.next_due().min(acts + self.air.delay_one_way)
    }

    /// Works off everything that happens up to and including `now`.
    pub fn settle(&mut self, now: Instant) {
        with!(&mut self.scheme, scheme => while Ticks::<P>::next(scheme) <= now {
            scheme.act(&mut self.air);
        });
    }

    /// The counters so far.
    pub fn stats(&self) -> &MediumStats {
        &self.air.stats
    }

    /// The counters of a terminal so far, as if it had a link of its own.
    pub fn terminal_stats(&self, terminal: u32) -> &LinkStats {
        &self.air.terminal(terminal).stats
    }

    /// Time that a terminal has spent sending.
    pub fn busy_time(&self, terminal: u32) -> Duration {
        self.air.terminal(terminal).busy
    }

    /// What waits at a terminal at `now`, packets of a burst that is not through included.
    pub fn backlog(&mut self, now: Instant, terminal: u32) -> Backlog {
        self.settle(now);
        self.air.terminal(terminal).backlog()
    }

    /// Terminals.
    pub fn terminals(&self) -> u32 {
        self.air.terminals.len() as u32
    }

    /// Packets accepted that have neither arrived nor been dropped.
    pub fn packets_inside(&self) -> usize {
        self.air.packets_inside()
    }
}
