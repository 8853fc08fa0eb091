//! Packet scripts: expected behaviour of a TCP, segment by segment, executed in virtual time.
//!
//! A script lists arriving packets (`<`), packets that must leave (`>`), and calls of the application, each with its time. The
//! language is packetdrill's, as far as it applies to a user-space stack. `docs/reference/conformance.md` lists the scripts of this
//! repository, one per statement of an RFC. Packets are built and read by `etherparse`, not by `bentpipe-wire`: an error in that
//! crate would otherwise occur on both sides and stay hidden.
//!
//! [`Script::parse`] reads a script, and [`run`](run()) executes it against a new [`Stack`](bentpipe_host::Stack). A
//! [`Statement`] is the content of its head comment.

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
