//! How the proxy sees SYNs: the packet filter reports those that may be split, after all other rules have decided about them.
//!
//! The kernel sends a report over a netlink socket (nflog). It has the SYN, its mark and the interface over which it was about to leave.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use bentpipe_scenario::deployment::Opener;
use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
use netlink_packet_netfilter::nflog::{
    ConfigCmd, ConfigMode, ConfigNla, PacketNla, ULogMessage, config_request,
};
use netlink_packet_netfilter::{NetfilterMessage, NetfilterMessageInner, NetfilterProtoFamily};
use netlink_sys::Socket;
use netlink_sys::constants::NETLINK_NETFILTER;
use rustix::net::sockopt;

use crate::slot::{SLOTS, Slot};

/// First group of nflog that the proxy uses (chosen).
const GROUP: u16 = 0x6270;
/// Kernel buffer per SYN, with room for the metadata (chosen).
const MESSAGE: u32 = 1024;
/// Largest packet with its attributes.
const LARGEST: usize = 68 << 10;
/// Bytes of all SYNs that wait for the proxy (chosen: some 4,000 SYNs).
const WAITING: usize = 8 << 20;

/// The group of nflog for SYNs of this side.
pub(crate) fn group(slot: Slot, opener: Opener) -> u16 {
    GROUP + 2 * u16::from(slot.0) + u16::from(opener == Opener::Satellite)
}

/// The group of nflog for SYNs of the proxy itself, of which one leaves for each SYN of a client.
pub(crate) fn group_of_asked(slot: Slot) -> u16 {
    GROUP + 2 * u16::from(SLOTS) + u16::from(slot.0)
}

/// Way of a SYN out of this router.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Way {
    /// Its mark.
    pub mark: u32,
    /// Index of the interface; 0 if unknown.
    pub out: u32,
}

/// Requirements of a SYN for the half towards the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Manner {
    /// Differentiated-services code point.
    pub dscp: u8,
    /// Maximum segment size, possibly reduced by a packet filter.
    pub mss: Option<u16>,
    /// Way of the SYN out of this router.
    pub way: Way,
    /// True to use the interface of this way for any routes.
    pub bound: bool,
    /// The proxy, if its client waits for the answer of the server, so that the client repeats its SYN itself.
    pub asks: Option<Slot>,
}

/// A socket that receives the SYNs of a group.
pub(crate) struct Sight {
    socket: Socket,
    buffer: Vec<u8>,
}

impl Sight {
    /// Begins to receive.
    pub fn open(group: u16) -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_NETFILTER)?;
        socket.bind_auto()?;
        // A kernel that refuses keeps its own size.
        let _ = sockopt::set_socket_recv_buffer_size_force(&socket, WAITING);
        // A SYN lost for lack of space is repeated by its sender.
        socket.set_no_enobufs(true)?;
        let settings = vec![
            ConfigCmd::Bind.into(),
            ConfigMode::PACKET_MAX.into(),
            ConfigNla::NlBufSiz(MESSAGE),
            ConfigNla::QThresh(1),
        ];
        let request: NetlinkMessage<NetfilterMessage> =
            config_request(NetfilterProtoFamily::Unspec, group, settings);
        let mut bytes = vec![0; request.header.length as usize];
        request.serialize(&mut bytes);
        socket.send(&bytes, 0)?;
        let (answer, _) = socket.recv_from_full()?;
        match NetlinkMessage::<NetfilterMessage>::deserialize(&answer).map(|message| message.payload) {
            Ok(NetlinkPayload::Error(error)) if error.code.is_none() => {}
            Ok(NetlinkPayload::Error(error)) => return Err(error.to_io()),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
        socket.set_non_blocking(true)?;
        Ok(Self { socket, buffer: Vec::with_capacity(LARGEST) })
    }

    /// Reads the next SYNs.
    ///
    /// # Errors
    /// Of the kind `WouldBlock` if there is none.
    pub fn read(&mut self, mut each: impl FnMut(&[u8], Way)) -> io::Result<()> {
        self.buffer.clear();
        let length = self.socket.recv(&mut self.buffer, 0)?;
        let mut rest = &self.buffer[..length];
        while let Ok(message) = NetlinkMessage::<NetfilterMessage>::deserialize(rest) {
            if let NetlinkPayload::InnerMessage(NetfilterMessage {
                inner: NetfilterMessageInner::ULog(ULogMessage::Packet(attributes)),
                ..
            }) = &message.payload
            {
                show(attributes, &mut each);
            }
            let aligned = (message.header.length as usize).next_multiple_of(4);
            match rest.get(aligned..) {
                Some(more) if aligned > 0 && !more.is_empty() => rest = more,
                _ => break,
            }
        }
        Ok(())
    }
}

fn show(attributes: &[PacketNla], each: &mut impl FnMut(&[u8], Way)) {
    let mut way = Way::default();
    let mut packet = None;
    for attribute in attributes {
        match attribute {
            PacketNla::Mark(mark) => way.mark = *mark,
            PacketNla::IfIndexOutDev(index) => way.out = *index,
            PacketNla::Payload(bytes) => packet = Some(bytes),
            _ => {}
        }
    }
    if let Some(packet) = packet {
        each(packet, way);
    }
}

impl AsFd for Sight {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
