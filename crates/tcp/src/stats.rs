use std::ops::AddAssign;

/// Counters of one connection end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Data segments sent, with retransmissions, without probes.
    pub sent_segments: u64,
    /// Payload bytes sent, with retransmissions, without probes.
    pub sent_bytes: u64,
    /// Data segments retransmitted.
    pub retransmitted_segments: u64,
    /// Retransmission timer expiries, those of SYNs and SYN-ACKs included.
    pub timeouts: u64,
    /// Fast recovery episodes.
    pub recoveries: u64,
    /// Number of undone window reductions.
    pub undone: u64,
    /// Low-priority probes sent.
    pub probes_sent: u64,
    /// Replies to probes received.
    pub probes_acked: u64,
    /// Received probes with new data: they arrived before the copied segment, or instead of it.
    pub probe_repairs: u64,
    /// Reductions caused by an ECN echo.
    pub ecn_reductions: u64,
    /// Tail loss probes sent.
    pub tail_loss_probes: u64,
    /// Pure ACKs sent.
    pub acks_sent: u64,
    /// Data segments received, duplicates included.
    pub received_segments: u64,
    /// Data segments received without new data.
    pub duplicate_segments: u64,
    /// Payload bytes received, duplicates included.
    pub received_bytes: u64,
    /// Bytes delivered to the application in order, without those skipped by best effort.
    pub delivered_bytes: u64,
    /// Bytes skipped by best effort.
    pub missing_bytes: u64,
    /// Reports of routers of an error that may pass, such as a missing route.
    pub path_errors: u64,
}

impl AddAssign for Stats {
    fn add_assign(&mut self, other: Self) {
        // Names every field, so that the compiler refuses one that is forgotten here.
        let Self {
            sent_segments,
            sent_bytes,
            retransmitted_segments,
            timeouts,
            recoveries,
            undone,
            probes_sent,
            probes_acked,
            probe_repairs,
            ecn_reductions,
            tail_loss_probes,
            acks_sent,
            received_segments,
            duplicate_segments,
            received_bytes,
            delivered_bytes,
            missing_bytes,
            path_errors,
        } = other;
        self.sent_segments += sent_segments;
        self.sent_bytes += sent_bytes;
        self.retransmitted_segments += retransmitted_segments;
        self.timeouts += timeouts;
        self.recoveries += recoveries;
        self.undone += undone;
        self.probes_sent += probes_sent;
        self.probes_acked += probes_acked;
        self.probe_repairs += probe_repairs;
        self.ecn_reductions += ecn_reductions;
        self.tail_loss_probes += tail_loss_probes;
        self.acks_sent += acks_sent;
        self.received_segments += received_segments;
        self.duplicate_segments += duplicate_segments;
        self.received_bytes += received_bytes;
        self.delivered_bytes += delivered_bytes;
        self.missing_bytes += missing_bytes;
        self.path_errors += path_errors;
    }
}

/// Compact form of [`Stats`] within a connection: most connections count only these fields, and the others are allocated
/// separately.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub sent_segments: u64,
    pub sent_bytes: u64,
    pub acks_sent: u64,
    pub received_segments: u64,
    pub received_bytes: u64,
    pub delivered_bytes: u64,
    rare: Option<Box<Stats>>,
}

impl Counts {
    /// Returns the other fields. The first call allocates their memory.
    pub fn rare(&mut self) -> &mut Stats {
        self.rare.get_or_insert_default()
    }

    /// Returns all counters.
    pub fn stats(&self) -> Stats {
        Stats {
            sent_segments: self.sent_segments,
            sent_bytes: self.sent_bytes,
            acks_sent: self.acks_sent,
            received_segments: self.received_segments,
            received_bytes: self.received_bytes,
            delivered_bytes: self.delivered_bytes,
            ..self.rare.as_deref().copied().unwrap_or_default()
        }
    }

    /// Returns the heap memory in bytes, for the memory bound.
    pub fn heap_bytes(&self) -> usize {
        self.rare.as_ref().map_or(0, |rare| size_of_val(&**rare))
    }
}
