//! The ends of a QUIC flow.

use bentpipe_cc::packets::Settings;
use bentpipe_quic as quic;
use bentpipe_scenario::FlowGroup;
use bentpipe_scenario::{StackControl, stack_control};
use bentpipe_traffic::Interest;
use bentpipe_transports::Agent;

use crate::BuildError;
use crate::app::flow::Flow;

/// Bytes of the headers in front of a QUIC packet.
const UDP_AND_IP_HEADERS: u32 = 28;

/// Makes both ends of a connection.
pub(crate) fn pair(group: &FlowGroup, flow: &Flow) -> Result<[Agent; 2], BuildError> {
    let packet = group.sender.mss + group.header_bytes;
    let segments = group.sender.sender.initial_window.segments(group.sender.mss);
    let seed = flow.seeds.clone().bits();
    let control = match stack_control(&group.cc) {
        Some(StackControl::Cubic) => quic::Control::StackCubic,
        Some(StackControl::NewReno) => quic::Control::StackNewReno,
        None => {
            let sender = &flow.configs[0].sender;
            let settings = Settings {
                initial_window: segments,
                seed,
                memory: sender.memory.clone(),
                careful_resume: sender.careful_resume,
                ..Settings::default()
            };
            let factory = quic::Factory::new(sender.cc.clone(), settings);
            let refuse = |refused| BuildError::Algorithm { flow: group.name.clone(), refused };
            quic::Control::Own(Box::new(factory.map_err(refuse)?))
        }
    };
    let config = quic::Config {
        control,
        initial_window: u64::from(segments) * u64::from(packet - UDP_AND_IP_HEADERS),
        payload: (packet - UDP_AND_IP_HEADERS).min(u32::from(u16::MAX)) as u16,
        receive_window: group.receiver.receiver.receive_window.limit(),
        options: group.options.quic,
        segment: group.sender.mss,
        seed,
    };
    // The side that asks connects, as with TCP.
    let mut sides = [quic::Side::Client, quic::Side::Server];
    if flow.application.interest() == Interest::Everything {
        sides.reverse();
    }
    Ok(sides.map(|side| Agent::Datagrams(Box::new(quic::End::new(side, &config)))))
}
