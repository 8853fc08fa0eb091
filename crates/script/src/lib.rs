//! Packet scripts: what a TCP does, written down segment by segment and run in virtual time.
//!
//! A script says what arrives (`<`), what must leave (`>`), and what the application calls, each with its time. The language is that of
//! packetdrill, as far as it means anything for a stack that is no kernel's; `docs/conformance.md` lists the scripts of this repository,
//! one for each statement of an RFC. Packets are built and read by `etherparse`, not by `bentpipe-wire`: a mistake there would otherwise
//! be made twice and never show.
//!
//! [`Script::parse`] reads a script, [`run`](run()) runs it against a fresh [`Stack`](bentpipe_host::Stack), and [`Statement`] is what the
//! comment at its head says.

mod error;
mod lexer;
mod parse;
mod run;
mod script;
mod setup;
mod statement;

pub use error::{Failure, Mistake};
pub use run::{Stopped, run};
pub use script::{
    Action, Call, Echoed, EcnSpec, Errno, Event, IcmpKind, IcmpSpec, Outcome, PacketSpec, Script, Setting,
    TcpOption, TcpSpec, Value, When,
};
pub use statement::{Statement, find_scripts, table};
