//! Hosts ahead of the clock.
//!
//! What a host does is felt elsewhere only behind a junction, and nothing is through a junction sooner than its foresight after it came
//! there: a quarter of a second where a geostationary satellite lies behind. So all that reaches a host within the foresight of now is known
//! now, and the host can live through that time at once, without waiting for the others: packets, deadlines and whatever its applications
//! do, each at its own time and in the same order as if every host took turns with the others at every event. Where thousands of
//! hosts take turns, no cache holds any of them when its turn comes; one that lives through a quarter of a second loads its memory once.
//!
//! An island is what must not be separated: hosts, and links that nobody else uses between them and the junctions next to them. Hosts that
//! share such a link are on the same island. When it is time for a round, the junctions let through what has come to them before now. What is
//! through waits in the lane of its island, and one island after the other goes on to the horizon, if it has mail or something to do soon;
//! what it has to do much later, the wheel wakes it for. So whenever the wheel turns to a time, each island has done what there was to do
//! before it.
//!
//! Where senders and receivers have nothing to do with each other but by packets, and all packets of senders pass other junctions than those
//! of receivers, they are on two coasts that take turns: while one has lived to a time, the other can live until what happens then is
//! felt, and so on. Each turn so spans what lies between the coasts there and back.
//!
//! Worlds in which anything else would look at a host meanwhile do without ([`find_islands`](crate::shores::find_islands) tells which).
//! For the clock, which looks at all of them once a second, each leaves a note when it goes past that time.

use std::ops::Range;

use bentpipe_base::{Duration, Instant, prefetch, prefetch_item};
use bentpipe_net::Passing;
use bentpipe_scenario::LinkId;

use crate::arena::{Arena, NO_LANE, Way};
use crate::gathering::{Leaving, sort};
use crate::mailroom::{Mail, Mailroom};
use crate::pace::LOOK;
use crate::simulation::Simulation;
use crate::ticket::Ticket;
use crate::wheel::{Class, Owner, Tie};
use crate::witness::Witness;
use crate::world::{End, EndId, Flow, FlowId};

/// The order of events: by time, rank and owner, as in the wheel.
pub(crate) type Key = (Instant, u64, Owner);

const NEVER: Key = (Instant::FAR_FUTURE, u64::MAX, Owner::MAX);

/// When somebody on an island wants to be woken. Lazy as the wheel is: it may ring too early, never too late.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alarm {
    time: Instant,
}

impl Alarm {
    pub const OFF: Self = Self { time: Instant::FAR_FUTURE };

    /// Rings at `at` or earlier, unless that is after the end of the world.
    #[inline(always)]
    pub fn set(&mut self, at: Instant, end: Instant) {
        if at < self.time && at <= end {
            self.time = at;
        }
    }

    /// Of the alarm of an owner with this salt.
    #[inline(always)]
    fn key(self, owner: Owner, salt: u32) -> Key {
        (self.time, Tie { class: Class::Timer, salt }.rank(self.time), owner)
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
    /// Where a route leads to it.
    position: u32,
    /// The packet that arrives next, and when; [`NEVER`] without one.
    front: (Key, Ticket),
}

impl Lane {
    /// A lane of an island that begins with a link, to which a route leads at a position.
    pub fn new(island: u32, link: LinkId, position: u32) -> Self {
        Self { island, link, position, front: (NEVER, Ticket::NOTHING) }
    }

    pub fn link(&self) -> LinkId {
        self.link
    }
}

/// A flow on an island, or one side of it.
#[derive(Clone, Copy, Debug)]
struct Member {
    flow: FlowId,
    /// The ends of its connection that are here, once it is open.
    ends: Numbers,
    /// The links over which these send.
    links: [LinkId; 2],
    /// For its application, which is where the sender is.
    alarm: Alarm,
    /// The receiver is here.
    receives: bool,
}

impl Member {
    fn new(flow: FlowId) -> Self {
        Self { flow, ends: Numbers::default(), links: [0; 2], alarm: Alarm::OFF, receives: false }
    }

    /// The links over which it sends.
    #[inline(always)]
    fn links(&self) -> &[LinkId] {
        &self.links[..self.ends.len()]
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
    coast: CoastId,
    is_listed: bool,
    /// The next look of the clock has been noted for.
    is_noted: bool,
    /// Nothing happens here before this unless mail comes.
    due: Instant,
}

impl Island {
    /// An island on a coast, with members of these numbers.
    pub fn new(coast: CoastId, members: Numbers) -> Self {
        let (lanes, due) = (Numbers::default(), Instant::FAR_FUTURE);
        Self { lanes, members, coast, is_listed: false, is_noted: true, due }
    }
}

/// Number of a coast.
pub(crate) type CoastId = u8;

/// No member.
const NOBODY: u32 = u32::MAX;

/// Islands that live through the same time in a round.
#[derive(Debug)]
struct Coast {
    /// Those whose turn comes at the next round: they got mail since the last, or have something to do soon after it.
    listed: Vec<u32>,
    /// When the first of those has something to do that was known at the last round.
    next_due: Instant,
    /// Nothing that waits at a junction to come here came there before this.
    waiting_since: Instant,
    /// Nothing that comes to such a junction is at a host sooner than so long after.
    lookahead: Duration,
    /// All has happened here that happens before this.
    lived_until: Instant,
}

impl Coast {
    /// What waits for it first would be at a host by then, or somebody has something to do.
    fn next_round(&self) -> Instant {
        (self.waiting_since + self.lookahead).min(self.next_due)
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
    /// The members that the sides of a flow are; twice the same if they are not separated.
    members_of: Vec<[u32; 2]>,
    /// Two that send to each other, or one that sends to itself.
    coasts: Vec<Coast>,
    /// Empty; kept for its memory.
    spare: Vec<u32>,
    /// The time that a round spans.
    span: Duration,
    /// When the clock looks next at what everybody has done before.
    next_look: Instant,
    /// What had arrived of each flow by then, in bytes.
    noted: Vec<u64>,
    /// No alarm of the island whose turn it is rings before this.
    quiet_until: Instant,
}

impl Default for Islands {
    fn default() -> Self {
        Self::new((Vec::new(), Vec::new()), &[], &[])
    }
}

impl Islands {
    /// Islands with their lanes; the flows that the members are in their order, each once or first as sender and then as receiver; and how
    /// long it takes at least from a junction to a host on each coast.
    pub fn new(
        (islands, lanes): (Vec<Island>, Vec<Lane>),
        members: &[FlowId],
        lookaheads: &[Duration],
    ) -> Self {
        let flows = members.iter().max().map_or(0, |last| *last as usize + 1);
        let mut members_of = vec![[NOBODY; 2]; flows];
        for (member, flow) in (0..).zip(members) {
            let [sender, receiver] = &mut members_of[*flow as usize];
            (*sender, *receiver) = ((*sender).min(member), member);
        }
        let mut members: Vec<Member> = members.iter().copied().map(Member::new).collect();
        for [_, receiver] in &members_of {
            if let Some(member) = members.get_mut(*receiver as usize) {
                member.receives = true;
            }
        }
        let coast = |lookahead: &Duration| Coast {
            listed: Vec::new(),
            next_due: Instant::FAR_FUTURE,
            waiting_since: Instant::FAR_FUTURE,
            lookahead: *lookahead,
            lived_until: Instant::ZERO,
        };
        Self {
            islands,
            mailroom: Mailroom::new(lanes.len()),
            lanes,
            filled: Vec::new(),
            members,
            members_of,
            coasts: lookaheads.iter().map(coast).collect(),
            spare: Vec::new(),
            span: lookaheads.iter().fold(Duration::ZERO, |sum, lookahead| sum + *lookahead),
            next_look: Instant::ZERO,
            noted: vec![0; flows],
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

    /// Sets the alarms of all flows to their starts.
    fn set_starts(&mut self, flows: &[Flow], end: Instant) {
        for (flow, [sender, _]) in flows.iter().zip(&self.members_of) {
            self.members[*sender as usize].alarm.set(flow.start, end);
        }
        for island in &mut self.islands {
            let starts = self.members[island.members.places()].iter().map(|member| member.alarm.time);
            island.due = starts.min().unwrap_or(Instant::FAR_FUTURE);
        }
    }

    /// Somebody on the island whose turn it is wants to be woken at this time.
    #[inline(always)]
    pub fn note_alarm(&mut self, at: Instant) {
        self.quiet_until = self.quiet_until.min(at);
    }

    /// Wakes a flow at `at` or earlier.
    pub fn set_alarm(&mut self, flow: FlowId, at: Instant, end: Instant) {
        self.note_alarm(at);
        let [sender, _] = self.members_of[flow as usize];
        self.members[sender as usize].alarm.set(at, end);
    }

    /// The connection of a flow is open; its ends send over these links.
    pub fn note_opened(&mut self, flow: FlowId, first: EndId, links: [LinkId; 2]) {
        for (side, id) in (0..).zip(self.members_of[flow as usize]) {
            let Member { ends, links: sending, .. } = &mut self.members[id as usize];
            sending[ends.len()] = links[side as usize];
            let begin = if ends.len() == 0 { first + side } else { ends.begin };
            *ends = Numbers { begin, end: first + side + 1 };
        }
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
        sort(&mut filled, |lane| *lane);
        for lane in filled.drain(..) {
            self.list(self.lanes[lane as usize].island, Instant::FAR_FUTURE);
        }
        self.filled = filled;
    }

    /// A packet for a coast has come to a junction, or will: when it is time for a round, if that is earlier than was known.
    #[inline(always)]
    pub fn note_waiting(&mut self, coast: CoastId, at: Instant) -> Option<Instant> {
        let coast = &mut self.coasts[coast as usize];
        let is_earlier = at < coast.waiting_since;
        coast.waiting_since = coast.waiting_since.min(at);
        is_earlier.then(|| self.next_round())
    }

    /// When it is time for a round on any coast.
    fn next_round(&self) -> Instant {
        self.coasts.iter().map(Coast::next_round).min().unwrap_or(Instant::FAR_FUTURE)
    }

    /// All that hosts send to a coast before this is known; everybody has lived until now.
    fn known_until(&self, to: CoastId, now: Instant) -> Instant {
        let from = self.coasts.len() - 1 - usize::from(to);
        self.coasts[from].lived_until.max(now)
    }

    /// What comes to junctions within so long after the packets that leave them in a round comes soon.
    pub fn reach(&self) -> Duration {
        self.span * 2
    }

    /// An island's turn comes at the next round of its coast, at the latest at `due`.
    #[inline(always)]
    fn list(&mut self, id: u32, due: Instant) {
        let island = &mut self.islands[id as usize];
        let coast = &mut self.coasts[usize::from(island.coast)];
        coast.next_due = coast.next_due.min(due);
        if !island.is_listed {
            island.is_listed = true;
            coast.listed.push(id);
        }
    }

    /// Packets on a lane.
    fn packets_on(&self, lane: u32) -> usize {
        self.mailroom.len(lane) + usize::from(self.lanes[lane as usize].front.0 != NEVER)
    }
}

impl<W: Witness> Simulation<W> {
    /// The islands wait for the starts of their flows.
    pub(crate) fn start_islands(&mut self) {
        self.islands.set_starts(&self.flows, self.until);
        for id in 0..self.islands.len() as u32 {
            self.list_or_wake(id, self.islands.islands[id as usize].due, self.now);
        }
        self.wheel.schedule(self.first_junction, self.islands.next_round());
    }

    /// It may be time for a round.
    pub(crate) fn happen_between_islands(&mut self) {
        self.run_coasts();
        self.wheel.schedule(self.first_junction, self.islands.next_round());
    }

    /// Where it is time for a round there is one.
    fn run_coasts(&mut self) {
        for coast in 0..self.islands.coasts.len() as CoastId {
            if self.islands.coasts[coast as usize].next_round() <= self.now {
                self.run_coast(coast);
            }
        }
    }

    /// The junctions let through what comes to a coast, as far as it is known. Of what comes at the end of that time not all may be.
    fn let_all_through(&mut self, coast: CoastId) {
        let known_until = self.islands.known_until(coast, self.now);
        for id in 0..self.junctions.len() as u32 {
            if self.junctions[id as usize].coast == coast {
                self.let_gathered_through(id, known_until - Duration::from_nanos(1));
            }
        }
        self.islands.list_filled();
        let leading = self.junctions.iter().filter(|junction| junction.coast == coast);
        let first = leading.map(|junction| junction.gathering.first_at()).min();
        self.islands.coasts[coast as usize].waiting_since = first.unwrap_or(Instant::FAR_FUTURE);
    }

    /// A junction lets through what hosts have sent to it by `limit`.
    pub(crate) fn let_gathered_through(&mut self, id: u32, limit: Instant) {
        let link = self.junctions[id as usize].link;
        while self.junctions[id as usize].gathering.first_at() <= limit {
            let mut leaving = self.junctions[id as usize].gathering.leave(limit, &mut self.arena);
            let is_large = self.is_large();
            for position in 0..leaving.len() {
                if is_large {
                    self.fetch_along_leaving(&leaving, position);
                }
                let (at, slot) = leaving.get(position, &self.arena);
                match self.arena.way(slot) {
                    Way { ticket, lane: NO_LANE, .. } => self.run_ahead((at, link), ticket, Some(id)),
                    Way { ticket, lane, .. } => self.run_to_lane((at, link), ticket, lane),
                }
            }
            let reach = self.islands.reach();
            self.junctions[id as usize].gathering.forget(leaving, limit, reach);
        }
    }

    /// Asks for the memory of packets that leave later, then of their lanes.
    #[inline(always)]
    fn fetch_along_leaving(&self, leaving: &Leaving, position: usize) {
        if let Some(slot) = leaving.slot(position + 24) {
            self.arena.prefetch(slot);
        }
        if let Some(slot) = leaving.slot(position + 8) {
            let lane = self.arena.lane(slot);
            if lane != NO_LANE {
                self.islands.mailroom.prefetch(lane);
            }
        }
    }

    /// The listed islands of a coast go on to the horizon: all that reaches a host there before is known.
    fn run_coast(&mut self, coast: CoastId) {
        self.let_all_through(coast);
        let known_until = self.islands.known_until(coast, self.now);
        // There is room for one note.
        let next_but_one_look = self.islands.next_look + LOOK;
        let spare = std::mem::take(&mut self.islands.spare);
        let state = &mut self.islands.coasts[coast as usize];
        debug_assert!(state.waiting_since >= known_until);
        let horizon = (known_until + state.lookahead).min(next_but_one_look);
        (state.next_due, state.lived_until) = (Instant::FAR_FUTURE, horizon);
        let mut listed = std::mem::replace(&mut state.listed, spare);
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
    fn fetch_along_list(&self, listed: &[u32]) {
        let Islands { islands, lanes, members, mailroom, .. } = &self.islands;
        let island = |place: usize| listed.get(place).map(|id| &islands[*id as usize]);
        if let Some(island) = island(6) {
            prefetch(island);
        }
        if let Some(island) = island(4) {
            prefetch(&lanes[island.lanes.places()]);
            island.lanes.iter().for_each(|lane| mailroom.prefetch(lane));
            prefetch(&members[island.members.places()]);
            self.wheel.prefetch(self.first_island + listed[4]);
        }
        if let Some(island) = island(2) {
            for (id, lane) in island.lanes.iter().zip(&lanes[island.lanes.places()]) {
                prefetch(&self.links[lane.link as usize]);
                prefetch_item(&self.routes, lane.position as usize);
                self.wheel.prefetch(self.first_link + lane.link);
                mailroom.fetch_first(id, &self.arena);
            }
            for member in &members[island.members.places()] {
                prefetch(&self.ends[member.ends.places()]);
                for link in member.links() {
                    prefetch(&self.links[*link as usize]);
                    self.wheel.prefetch(self.first_link + *link);
                }
            }
        }
        if let Some(island) = island(1) {
            for member in &members[island.members.places()] {
                for end in &self.ends[member.ends.places()] {
                    end.connection.prefetch();
                    prefetch_item(&self.routes, end.route as usize);
                }
                member.links().iter().for_each(|link| self.links[*link as usize].prefetch());
            }
            for lane in &lanes[island.lanes.places()] {
                self.links[lane.link as usize].prefetch();
            }
        }
    }

    /// Everybody does what there is to do before the clock's look; tells what has arrived of each flow by then, in bytes.
    pub(crate) fn catch_up(&mut self) -> &[u64] {
        self.run_coasts();
        for id in 0..self.islands.len() as u32 {
            if !self.islands.islands[id as usize].is_noted {
                self.note(id);
            }
        }
        &self.islands.noted
    }

    /// The clock has looked, and will look again at `next`.
    pub(crate) fn go_on_after_look(&mut self, next: Instant) {
        if self.islands.is_empty() {
            return;
        }
        self.islands.next_look = next;
        self.islands.islands.iter_mut().for_each(|island| island.is_noted = false);
        self.wheel.schedule(self.first_junction, self.islands.next_round());
    }

    /// An island has something to do soon, unless it did it when mail came.
    pub(crate) fn happen_on_island(&mut self, id: u32) {
        let Island { due, is_listed, .. } = self.islands.islands[id as usize];
        if !is_listed {
            self.list_or_wake(id, due, self.now);
            self.wheel.schedule(self.first_junction, self.islands.next_round());
        }
    }

    /// Sees to it that an island has its turn by the time that it has something to do, if everybody on its coast has lived until `now`.
    #[inline(always)]
    fn list_or_wake(&mut self, id: u32, due: Instant, now: Instant) {
        // Its coast may live through so much before its own time has come.
        let span = self.islands.span;
        if due <= now + span {
            self.islands.list(id, due);
        } else {
            self.wheel.schedule(self.first_island + id, due - span);
        }
    }

    /// Everything happens on an island that happens before `horizon`.
    fn run_island(&mut self, id: u32, horizon: Instant) {
        let Island { lanes, is_noted, .. } = self.islands.islands[id as usize];
        self.islands.quiet_until = Instant::ZERO;
        for lane in lanes.iter() {
            if self.islands.lanes[lane as usize].front.0 == NEVER {
                self.fill_front(lane);
            }
        }
        if horizon > self.islands.next_look && !is_noted {
            self.live(id, self.islands.next_look);
            self.note(id);
        }
        let due = self.live(id, horizon);
        self.islands.islands[id as usize].due = due;
        self.list_or_wake(id, due, horizon);
    }

    /// The same for an island that knows what comes first over each lane; tells when there is something to do again.
    fn live(&mut self, id: u32, horizon: Instant) -> Instant {
        let clock = self.now;
        let Island { lanes, members, .. } = self.islands.islands[id as usize];
        let due = loop {
            let (key, next) = self.next_on_island(lanes, members);
            if key.0 >= horizon {
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
        due
    }

    /// Notes for the clock what has arrived on an island.
    fn note(&mut self, id: u32) {
        let Self { islands: Islands { islands, members, noted, .. }, flows, ends, .. } = self;
        let island = &mut islands[id as usize];
        island.is_noted = true;
        for id in island.members.iter() {
            let Member { flow, ends: here, receives, .. } = members[id as usize];
            if receives {
                noted[flow as usize] = match here.iter().last() {
                    Some(end) => ends[end as usize].connection.delivered_bytes(),
                    None => flows[flow as usize].counts.plain_bytes,
                };
            }
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
            let mut see = |alarm: Alarm, (owner, salt), next| {
                self.islands.quiet_until = self.islands.quiet_until.min(alarm.time);
                let key = alarm.key(owner, salt);
                if key < first.0 {
                    first = (key, next);
                }
            };
            see(alarm, (flow, self.wheel.tie(flow).salt), Next::Member(member));
            for end in state.ends.iter() {
                let End { alarm, label, .. } = self.ends[end as usize];
                see(alarm, (self.first_end + end, label), Next::End(end));
            }
        }
        first
    }

    /// Brings the next packet of a lane to its host.
    fn fill_front(&mut self, lane: u32) {
        let link = self.islands.lanes[lane as usize].link;
        while let Some(Mail { at, ticket }) = self.islands.mailroom.pop(lane, &self.arena) {
            if let Some((passing, last)) = self.follow_to_host((at, link), ticket) {
                let owner = self.first_link + last;
                let key = (passing.at, self.wheel.tie(owner).rank(passing.at), owner);
                self.islands.lanes[lane as usize].front = (key, passing.packet);
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
