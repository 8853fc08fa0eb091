//! Tests of the parsers of packets and of text.

use bentpipe_scenario::Draft;
use bentpipe_script::{Script, Statement};
use bentpipe_study::Study;
use bentpipe_wire::{
    Arrived, Conversation, Datagram, Ends, Header, IcmpError, IpFields, Near, Offload, Options, Packet,
    Payload, mark_congestion,
};

/// Maximum length of a text. Longer texts only need more time.
const LONGEST: usize = 1 << 16;

/// Scenarios for the test of settings: a plain one, one with medium access and proxies, and one with a
/// constellation.
const WORLDS: [&str; 3] = ["geo-dumbbell", "geo-vsat", "leo-starlink"];
/// Maximum number of settings in an input.
const MOST_SETTINGS: usize = 32;

/// Tests all packet parsers on untrusted bytes. A parsed packet is written, parsed again, and must be equal.
pub fn wire(bytes: &[u8]) {
    Options::read(bytes);
    let _ = Offload::read(bytes);
    let Ok(datagram) = Datagram::read(bytes) else { return };
    datagram.flow_hash(1);
    let _ = IcmpError::read(&datagram);
    assert!(datagram.len <= bytes.len() && datagram.payload.len() < datagram.len);
    let mut marked = bytes.to_vec();
    if mark_congestion(&mut marked) {
        assert!(Datagram::read(&marked).is_ok(), "a marked packet is a packet");
    }
    let Ok((header, payload)) = Header::read(datagram.payload) else { return };
    let mut conversation = Conversation::new(7, 11);
    conversation.hear_syn(&header);
    let near = Near { peer: 1 << 40, own: 1 };
    let segment = conversation.segment(&header, Arrived::of(&datagram, payload.len()), near);
    assert!(segment.sack.len() <= 4);
    write_again(&datagram, header, payload);
}

fn write_again(datagram: &Datagram, header: Header, payload: &[u8]) {
    let ends = Ends {
        local: (datagram.source, header.source_port).into(),
        remote: (datagram.destination, header.destination_port).into(),
    };
    let mut bytes = Vec::with_capacity(100 + payload.len());
    let payload_len = payload.len().min(1 << 15);
    let packet = Packet {
        ends,
        ip: IpFields::default(),
        tcp: header,
        payload: Payload::Bytes(&payload[..payload_len]),
    };
    packet.write_headers(&mut bytes);
    bytes.extend_from_slice(&payload[..payload_len]);
    let datagram = Datagram::read(&bytes).expect("what was written is a packet");
    let (again, _) = Header::read(datagram.payload).expect("what was written is TCP");
    let fields = |header: &Header| (header.seq, header.ack, header.flags, header.window, header.options.mss);
    assert_eq!(fields(&again), fields(&header));
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(&bytes[..bytes.len().min(LONGEST)]).ok()
}

/// Tests the scenario parser, its error messages, and the output of the scenario.
pub fn scenario(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let Ok(draft) = Draft::parse("fuzz.toml", text) else { return };
    let Ok(scenario) = draft.scenario() else { return };
    let shown = scenario.to_toml();
    let again = Draft::parse("shown.toml", &shown).and_then(|draft| draft.scenario());
    assert!(again.is_ok(), "what is shown of a scenario is one: {}\n{shown}", again.unwrap_err());
}

/// Tests the study parser: scenarios, figures and claims.
pub fn study(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let _ = Study::parse("fuzz.toml", text);
}

/// Applies settings, one per line, to a built-in scenario, and then checks the whole scenario.
pub fn setting(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let world = WORLDS[text.len() % WORLDS.len()];
    let mut draft = Draft::load(world).expect("the world is built in");
    for line in text.lines().take(MOST_SETTINGS) {
        let _ = draft.set(line);
    }
    let _ = draft.scenario();
}

/// Tests the parser of packet scripts, and runs valid scripts.
pub fn script(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let _ = Statement::parse("fuzz.pkt", text);
    if let Ok(script) = Script::parse("fuzz.pkt", text) {
        let _ = bentpipe_script::run(&script);
    }
}
