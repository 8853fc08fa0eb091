//! Flows over QUIC in a build without its stack.

use bentpipe_scenario::FlowGroup;
use bentpipe_transports::Agent;

use crate::BuildError;
use crate::app::flow::Flow;

/// Refuses a QUIC flow: this build has no stack for it.
pub(crate) fn pair(group: &FlowGroup, _: &Flow) -> Result<[Agent; 2], BuildError> {
    Err(BuildError::Traffic {
        flow: group.name.clone(),
        what: "transport: found \"quic\", which this build does not have; the full program has it (make build), a browser does not",
    })
}
