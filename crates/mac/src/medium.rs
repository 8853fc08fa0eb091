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
/// Its driver uses it like a [`Link`](bentpipe_net::Link). It calls [`Medium::enqueue`] with a packet and its terminal. At
/// [`Medium::next_event`] it calls [`Medium::deliver`] until that returns nothing. After either it fetches lost packets with
/// [`Medium::poll_dropped`], then reads [`Medium::next_event`] again. Time must not run backwards. At the same instant, slots
/// begin before packets arrive at terminals.
///
/// Frames without anything to send cost no computation. Slots are processed in batches, when their outcome is needed.
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

/// Executes `$do` with the scheme's own type.
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
    /// Makes the medium `name` of a run with `seed`, for these terminals. Name, seed and index of a terminal select its random
    /// streams.
    ///
    /// # Errors
    /// The first invalid field.
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

    /// Queues a packet at `terminal`.
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

    /// Returns the next packet that has arrived by `now`, with its terminal. Call it until it returns nothing.
    pub fn deliver(&mut self, now: Instant) -> Option<(u32, P)> {
        self.settle(now);
        self.air.land(now)
    }

    /// Returns the next dropped packet, with its terminal. Each packet is returned exactly once, here or by [`Medium::deliver`].
    pub fn poll_dropped(&mut self) -> Option<(u32, Dropped<P>)> {
        self.air.poll_dropped()
    }

    /// Returns the time of the next [`Medium::deliver`] call; [`Instant::FAR_FUTURE`] if nothing is pending.
    pub fn next_event(&self) -> Instant {
        let acts = with!(&self.scheme, scheme => Ticks::<P>::next(scheme));
        if acts == Instant::FAR_FUTURE {
            return self.air.next_due();
        }
        // The effect of a slot is visible only after the one-way delay to the receiver.
        self.air.next_due().min(acts + self.air.delay_one_way)
    }

    /// Processes all actions up to and including `now`.
    pub fn settle(&mut self, now: Instant) {
        with!(&mut self.scheme, scheme => while Ticks::<P>::next(scheme) <= now {
            scheme.act(&mut self.air);
        });
    }

    /// Returns the counters.
    pub fn stats(&self) -> &MediumStats {
        &self.air.stats
    }

    /// Returns the counters of a terminal, as those of a link of its own.
    pub fn terminal_stats(&self, terminal: u32) -> &LinkStats {
        &self.air.terminal(terminal).stats
    }

    /// Returns the total transmission time of a terminal.
    pub fn busy_time(&self, terminal: u32) -> Duration {
        self.air.terminal(terminal).busy
    }

    /// Returns the queue of a terminal at `now`, including packets of a pending burst.
    pub fn backlog(&mut self, now: Instant, terminal: u32) -> Backlog {
        self.settle(now);
        self.air.terminal(terminal).backlog()
    }

    /// Returns the number of terminals.
    pub fn terminals(&self) -> u32 {
        self.air.terminals.len() as u32
    }

    /// Returns the packets accepted that have neither arrived nor been dropped.
    pub fn packets_inside(&self) -> usize {
        self.air.packets_inside()
    }
}
