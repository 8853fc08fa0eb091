//! Hosts ahead of the clock.
//!
//! What a host does is felt elsewhere only behind a junction, and nothing is through a junction sooner than its foresight after it came
//! there: a quarter of a second where a geostationary satellite lies behind. So all that reaches a host within the foresight of now is known
//! now, and the host can live through that time at once, without waiting for the others: packets, deadlines and whatever its applications
//! do, each at its own time and in the same order as if every host took turns with the others at every event. Where thousands of
//! hosts take turns, no cache holds any of them when its turn comes; one that lives through a quarter of a second loads its memory once.
//!
//! An island is what must not be separated: flows, and links that nobody else uses between their hosts and the junctions next to them.
//! Flows that share such a link are on the same island. When it is time for a round, the junctions let through what has come to them before
//! now. What is through waits in the lane of its island, and one island after the other goes on to the horizon, if it has mail or something
//! to do soon; what it has to do much later, the wheel wakes it for. So whenever the wheel turns to a time, each island has done what there
//! was to do before it.
//!
//! Worlds in which anything else would look at a host meanwhile do without ([`find_islands`](crate::shores::find_islands) tells which);
//! the clock, which looks at all of them, is a horizon for each.

use std::ops::Range;

use bentpipe_base::{Duration, Instant, prefetch};
use bentpipe_net::Passing;
use bentpipe_scenario::LinkId;

use crate::arena::{Arena, NO_LANE, Way};
use crate::mailroom::{Mail, Mailroom};
use crate::simulation::Simulation;
use crate::ticket::Ticket;
use crate::wheel::{Owner, Wheel};
use crate::witness::Witness;
use crate::world::{EndId, Flow, FlowId};

/// The order of events: by time, by since when they are known, and by whom they concern, as in the wheel.
pub(crate) type Key = (Instant, Instant, u64);

const NEVER: Key = (Instant::FAR_FUTURE, Instant::FAR_FUTURE, u64::MAX);

/// When somebody on an island wants to be woken. Lazy as the wheel is: it may ring too early, never too late.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alarm {
    time: Instant,
    /// When it was set.
    since: Instant,
}

impl Alarm {
    pub const OFF: Self = Self { time: Instant::FAR_FUTURE, since: Instant::FAR_FUTURE };

    /// Rings at `at` or earlier, unless that is after the end of the world.
    #[inline(always)]
    pub fn set(&mut self, at: Instant, (now, end): (Instant, Instant)) {
        if at < self.time && at <= end {
            *self = Self { time: at, since: now };
        }
    }

    #[inline(always)]
    fn key(self, owner: Owner) -> Key {
        (self.time, self.since, u64::from(owner) << 32)
    }
}

/// The links from a junction to a host.
#[derive(Debug)]
// One line of the cache.
#[repr(C, align(64))]
pub(crate) struct Lane {
    island: u32,
    /// The first of the links.
    link: LinkId,
    /// The packet that arrives next, and when; [`NEVER`] without one.
    front: (Key, Ticket),
}

impl Lane {
    /// A lane of an island that begins with a link.
    pub fn new(island: u32, link: LinkId) -> Self {
        Self { island, link, front: (NEVER, Ticket::NOTHING) }
    }

    pub fn link(&self) -> LinkId {
        self.link
    }
}

/// A flow on an island.
#[derive(Clone, Copy, Debug)]
struct Member {
    flow: FlowId,
    /// The first of its pair of connection ends, once it is open; [`NOT_OPEN`] before.
    first_end: EndId,
    /// The links over which these send.
    links: [LinkId; 2],
    alarm: Alarm,
}

/// Of a connection that is not open.
const NOT_OPEN: EndId = EndId::MAX;

/// The memory of so many packets of a lane is asked for before they come to their host. Measured.
const TOLD_AHEAD: u32 = 4;

impl Member {
    /// The ends of its connection, once it is open.
    #[inline(always)]
    fn ends(self) -> Option<[EndId; 2]> {
        (self.first_end != NOT_OPEN).then(|| [self.first_end, self.first_end + 1])
    }
}

/// Consecutive numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbers {
    pub begin: u32,
    pub end: u32,
}

impl Numbers {
    pub fn len(self) -> usize {
        (self.end - self.begin) as usize
    }

    fn iter(self) -> Range<u32> {
        self.begin..self.end
    }

    /// The same as indices.
    fn places(self) -> Range<usize> {
        self.begin as usize..self.end as usize
    }
}

/// What must not be separated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Island {
    pub lanes: Numbers,
    pub members: Numbers,
    is_listed: bool,
    /// Nothing happens here before this unless mail comes.
    due: Instant,
}

impl Island {
    /// An island with members of these numbers.
    pub fn new(begin: u32, end: u32) -> Self {
        let (lanes, members) = (Numbers::default(), Numbers { begin, end });
        Self { lanes, members, is_listed: false, due: Instant::ZERO }
    }
}

/// What an island does next.
enum Next {
    /// A packet arrives over a lane.
    Arrival(u32),
    /// A connection end has waited long enough.
    End(EndId),
    /// The time of a member's application has come.
    Member(u32),
}

/// All islands of a world; none in most worlds.
#[derive(Debug)]
pub(crate) struct Islands {
    islands: Vec<Island>,
    lanes: Vec<Lane>,
    /// The packets that come to lanes.
    pub mailroom: Mailroom,
    /// Lanes that were empty before they got their first packet since the last round.
    filled: Vec<u32>,
    members: Vec<Member>,
    /// The member that a flow is.
    member_of: Vec<u32>,
    /// Islands whose turn comes at the next round: they got mail since the last, or have something to do soon after it.
    listed: Vec<u32>,
    /// Empty; kept for its memory.
    spare: Vec<u32>,
    /// When the first of those has something to do that was known at the last round.
    next_due: Instant,
    /// Nothing that comes to a junction is at a host sooner than so long after.
    lookahead: Duration,
    /// Nothing that waits at a junction came there before this.
    waiting_since: Instant,
    /// When the clock looks next at what everybody has done by then.
    next_look: Instant,
    /// No alarm of the island whose turn it is rings before this.
    quiet_until: Instant,
}

impl Default for Islands {
    fn default() -> Self {
        Self::new((Vec::new(), Vec::new()), &[], Duration::MAX)
    }
}

impl Islands {
    /// Islands with their lanes, and with their flows in the order of the islands.
    pub fn new((islands, lanes): (Vec<Island>, Vec<Lane>), flows: &[FlowId], lookahead: Duration) -> Self {
        let mut member_of = vec![0; flows.len()];
        for (member, flow) in flows.iter().enumerate() {
            member_of[*flow as usize] = member as u32;
        }
        let member =
            |flow: &FlowId| Member { flow: *flow, first_end: NOT_OPEN, links: [0; 2], alarm: Alarm::OFF };
        Self {
            islands,
            mailroom: Mailroom::new(lanes.len()),
            lanes,
            filled: Vec::new(),
            members: flows.iter().map(member).collect(),
            member_of,
            listed: Vec::new(),
            spare: Vec::new(),
            next_due: Instant::FAR_FUTURE,
            lookahead,
            waiting_since: Instant::FAR_FUTURE,
            next_look: Instant::ZERO,
            quiet_until: Instant::ZERO,
        }
    }

    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.islands.is_empty()
    }

    pub fn len(&self) -> usize {
        self.islands.len()
    }

    /// Sets the alarms of all flows to their starts, and those of the islands in the wheel.
    pub fn start(&mut self, flows: &[Flow], (wheel, first): (&mut Wheel, Owner), end: Instant) {
        for (island, state) in self.islands.iter().enumerate() {
            for member in &mut self.members[state.members.places()] {
                let start = flows[member.flow as usize].start;
                member.alarm.set(start, (Instant::ZERO, end));
                wheel.schedule(first + island as Owner, start);
            }
        }
    }

    /// Somebody on the island whose turn it is wants to be woken at this time.
    #[inline(always)]
    pub fn note_alarm(&mut self, at: Instant) {
        self.quiet_until = self.quiet_until.min(at);
    }

    /// Wakes a flow at `at` or earlier.
    pub fn set_alarm(&mut self, flow: FlowId, at: Instant, times: (Instant, Instant)) {
        self.note_alarm(at);
        self.members[self.member_of[flow as usize] as usize].alarm.set(at, times);
    }

    /// The connection of a flow is open; its ends send over these links.
    pub fn note_opened(&mut self, flow: FlowId, first: EndId, links: [LinkId; 2]) {
        let member = &mut self.members[self.member_of[flow as usize] as usize];
        (member.first_end, member.links) = (first, links);
    }

    /// A packet comes to a lane.
    #[inline(always)]
    pub fn post(
        &mut self,
        lane: u32,
        Passing { at, packet: ticket, .. }: Passing<Ticket>,
        arena: &mut Arena,
    ) {
        if self.mailroom.join(lane, Mail { at, ticket }, arena) {
            self.filled.push(lane);
        }
    }

    /// Lists the islands that got mail. Where there was some before, the island has its turn or its alarm.
    fn list_filled(&mut self) {
        let mut filled = std::mem::take(&mut self.filled);
        // In the order of memory.
        filled.sort_unstable();
        for lane in filled.drain(..) {
            self.list(self.lanes[lane as usize].island, Instant::FAR_FUTURE);
        }
        self.filled = filled;
    }

    /// A packet has come to a junction, or will: when it is time for a round, if that is earlier than was known.
    #[inline(always)]
    pub fn note_waiting(&mut self, at: Instant) -> Option<Instant> {
        let is_earlier = at < self.waiting_since;
        self.waiting_since = self.waiting_since.min(at);
        is_earlier.then(|| self.next_round())
    }

    /// What waits at the junctions first would be at a host by then, or somebody has something to do.
    fn next_round(&self) -> Instant {
        (self.waiting_since + self.lookahead).min(self.next_due)
    }

    /// An island's turn comes at the next round, at the latest at `due`.
    #[inline(always)]
    fn list(&mut self, id: u32, due: Instant) {
        self.next_due = self.next_due.min(due);
        let island = &mut self.islands[id as usize];
        if !island.is_listed {
            island.is_listed = true;
            self.listed.push(id);
        }
    }

    /// Packets on a lane.
    fn packets_on(&self, lane: u32) -> usize {
        self.mailroom.len(lane) + usize::from(self.lanes[lane as usize].front.0 != NEVER)
    }
}

impl<W: Witness> Simulation<W> {
    /// All that reaches a host before this is known, and nobody looks at one before.
    fn horizon(&self) -> Key {
        let Islands { waiting_since, next_look, lookahead, .. } = self.islands;
        ((waiting_since.min(self.now) + lookahead).min(next_look), Instant::ZERO, 0)
    }

    /// It may be time for a round.
    pub(crate) fn happen_between_islands(&mut self) {
        if self.islands.next_round() <= self.now {
            self.let_all_through();
            self.run_listed();
        }
        self.wheel.schedule(self.first_junction, self.islands.next_round());
    }

    /// The junctions let through what came before now. Of what comes at this very time not all may be known.
    fn let_all_through(&mut self) {
        for id in 0..self.junctions.len() as u32 {
            self.let_gathered_through(id, self.now - Duration::from_nanos(1));
        }
        self.islands.list_filled();
        let first = self.junctions.iter().map(|junction| junction.gathering.first_at()).min();
        self.islands.waiting_since = first.unwrap_or(Instant::FAR_FUTURE);
    }

    /// A junction lets through what hosts have sent to it by `limit`.
    pub(crate) fn let_gathered_through(&mut self, id: u32, limit: Instant) {
        let link = self.junctions[id as usize].link;
        while self.junctions[id as usize].gathering.first_at() <= limit {
            let leaving = self.junctions[id as usize].gathering.sort(limit, &mut self.arena);
            for position in 0..leaving {
                if self.is_large() {
                    self.fetch_along_gathering(id, position);
                }
                let (at, slot) = self.junctions[id as usize].gathering.get(position, &self.arena);
                match self.arena.way(slot) {
                    Way { ticket, lane: NO_LANE, .. } => self.run_ahead((at, link), ticket, Some(id)),
                    Way { ticket, lane, .. } => self.run_to_lane((at, link), ticket, lane),
                }
            }
            let reach = self.islands.lookahead * 2;
            self.junctions[id as usize].gathering.forget(leaving, limit, reach);
        }
    }

    /// Asks for the memory of packets that leave later, then of their lanes.
    #[inline(always)]
    fn fetch_along_gathering(&self, id: u32, position: usize) {
        let gathering = &self.junctions[id as usize].gathering;
        if let Some(slot) = gathering.slot(position + 40) {
            self.arena.prefetch(slot);
        }
        let lane = gathering.slot(position + 12).map(|slot| self.arena.way(slot).lane);
        if let Some(lane) = lane.filter(|lane| *lane != NO_LANE) {
            self.islands.mailroom.prefetch(lane);
        }
    }

    /// The listed islands go on to the horizon.
    fn run_listed(&mut self) {
        let horizon = self.horizon();
        let spare = std::mem::take(&mut self.islands.spare);
        let mut listed = std::mem::replace(&mut self.islands.listed, spare);
        self.islands.next_due = Instant::FAR_FUTURE;
        for (place, &id) in listed.iter().enumerate() {
            if self.is_large() {
                self.fetch_along_list(&listed[place..]);
            }
            self.islands.islands[id as usize].is_listed = false;
            self.run_island(id, horizon);
        }
        listed.clear();
        self.islands.spare = listed;
    }

    /// Asks for the memory of islands whose turn comes soon: each time for what the last time told the place of.
    #[inline(always)]
    fn fetch_along_list(&mut self, listed: &[u32]) {
        let Islands { islands, lanes, members, mailroom, .. } = &mut self.islands;
        let island = |place: usize| listed.get(place).map(|id| &islands[*id as usize]);
        if let Some(island) = island(6) {
            prefetch(island);
        }
        if let Some(island) = island(4) {
            prefetch(&lanes[island.lanes.places()]);
            prefetch(&members[island.members.places()]);
            self.wheel.prefetch(self.first_island + listed[4]);
        }
        if let Some(island) = island(2) {
            for (id, lane) in island.lanes.iter().zip(&lanes[island.lanes.places()]) {
                prefetch(&self.links[lane.link as usize]);
                self.wheel.prefetch_salt(lane.link);
                mailroom.prefetch_first(id, 2 * TOLD_AHEAD, &self.arena);
            }
            for member @ Member { links, .. } in &members[island.members.places()] {
                let Some([first, last]) = member.ends() else { continue };
                prefetch(&self.ends[first as usize..=last as usize]);
                for link in links {
                    prefetch(&self.links[*link as usize]);
                    self.wheel.prefetch_salt(*link);
                }
            }
        }
        if let Some(island) = island(1) {
            for member @ Member { links, .. } in &members[island.members.places()] {
                let Some(ends) = member.ends() else { continue };
                ends.iter().for_each(|end| self.ends[*end as usize].connection.prefetch());
                links.iter().for_each(|link| self.links[*link as usize].prefetch());
            }
            for (id, lane) in island.lanes.iter().zip(&lanes[island.lanes.places()]) {
                self.links[lane.link as usize].prefetch();
                while let Some(slot) = mailroom.tell_ahead(id, TOLD_AHEAD, &self.arena) {
                    self.arena.prefetch(slot);
                }
            }
        }
    }

    /// Everybody does what there is to do before the clock's look at this time, which it knew of since `since`.
    pub(crate) fn catch_up(&mut self, clock: Owner, since: Instant) {
        if self.islands.is_empty() {
            return;
        }
        self.let_all_through();
        for id in 0..self.islands.len() as u32 {
            self.run_island(id, (self.now, since, u64::from(clock) << 32));
        }
    }

    /// The clock has looked, and will look again at `next`.
    pub(crate) fn go_on_after_look(&mut self, next: Instant) {
        if self.islands.is_empty() {
            return;
        }
        self.islands.next_look = next;
        self.run_listed();
        self.wheel.schedule(self.first_junction, self.islands.next_round());
    }

    /// An island has something to do, unless it did it when mail came.
    pub(crate) fn happen_on_island(&mut self, id: u32) {
        let Island { due, .. } = self.islands.islands[id as usize];
        if due <= self.now {
            self.run_island(id, self.horizon());
            self.wheel.schedule(self.first_junction, self.islands.next_round());
        } else {
            self.wheel.schedule(self.first_island + id, due);
        }
    }

    /// Everything happens on an island that happens before `horizon`.
    fn run_island(&mut self, id: u32, horizon: Key) {
        let clock = self.now;
        let Island { lanes, members, .. } = self.islands.islands[id as usize];
        self.islands.quiet_until = Instant::ZERO;
        for lane in lanes.iter() {
            if self.islands.lanes[lane as usize].front.0 == NEVER {
                self.fill_front(lane);
            }
        }
        let due = loop {
            let (key, next) = self.next_on_island(lanes, members);
            if key >= horizon {
                break key.0;
            }
            self.now = key.0;
            self.turns += 1;
            match next {
                Next::Arrival(lane) => {
                    let (_, ticket) = self.islands.lanes[lane as usize].front;
                    self.fill_front(lane);
                    self.arrive(ticket);
                }
                Next::End(end) => {
                    self.ends[end as usize].alarm = Alarm::OFF;
                    self.look_at_deadline(end);
                }
                Next::Member(member) => {
                    let member = &mut self.islands.members[member as usize];
                    member.alarm = Alarm::OFF;
                    let flow = member.flow;
                    self.events += 1;
                    self.wake(flow);
                }
            }
        };
        self.now = clock;
        self.islands.islands[id as usize].due = due;
        // Who has something to do soon need not be woken: all these take their turns at the next round.
        if due < horizon.0 + self.islands.lookahead {
            self.islands.list(id, due);
        } else {
            self.wheel.schedule(self.first_island + id, due);
        }
    }

    /// What happens first on an island, and when.
    #[inline(always)]
    fn next_on_island(&mut self, lanes: Numbers, members: Numbers) -> (Key, Next) {
        let mut first = (NEVER, Next::Arrival(lanes.begin));
        for lane in lanes.iter() {
            let key = self.islands.lanes[lane as usize].front.0;
            if key < first.0 {
                first = (key, Next::Arrival(lane));
            }
        }
        if first.0.0 < self.islands.quiet_until { first } else { self.look_at_alarms(first, members) }
    }

    /// The same, with what was found on the lanes.
    #[inline(never)]
    fn look_at_alarms(&mut self, mut first: (Key, Next), members: Numbers) -> (Key, Next) {
        self.islands.quiet_until = Instant::FAR_FUTURE;
        for member in members.iter() {
            let state @ Member { flow, alarm, .. } = self.islands.members[member as usize];
            let mut see = |alarm: Alarm, owner, next| {
                self.islands.quiet_until = self.islands.quiet_until.min(alarm.time);
                if alarm.key(owner) < first.0 {
                    first = (alarm.key(owner), next);
                }
            };
            see(alarm, flow, Next::Member(member));
            for end in state.ends().into_iter().flatten() {
                see(self.ends[end as usize].alarm, self.first_end + end, Next::End(end));
            }
        }
        first
    }

    /// Brings the next packet of a lane to its host.
    fn fill_front(&mut self, lane: u32) {
        let link = self.islands.lanes[lane as usize].link;
        while let Some(Mail { at, ticket }) = self.islands.mailroom.pop(lane, &self.arena) {
            if self.arena.is_large() {
                while let Some(slot) = self.islands.mailroom.tell_ahead(lane, TOLD_AHEAD, &self.arena) {
                    self.arena.prefetch(slot);
                }
            }
            if let Some((passing, last)) = self.follow_to_host((at, link), ticket) {
                let turn = self.wheel.turn(self.first_link + last, passing.at);
                self.islands.lanes[lane as usize].front =
                    ((passing.at, passing.next_since, turn), passing.packet);
                return;
            }
        }
        self.islands.lanes[lane as usize].front.0 = NEVER;
    }

    /// At the end, everything is offered to links that came to them before.
    pub(crate) fn empty_lanes(&mut self) {
        for lane in 0..self.islands.lanes.len() as u32 {
            while self.islands.packets_on(lane) > 0 {
                let (key, ticket) = self.islands.lanes[lane as usize].front;
                if key != NEVER {
                    self.arena.release(ticket.slot());
                }
                self.fill_front(lane);
            }
        }
    }
}
