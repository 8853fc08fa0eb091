use bentpipe_cc::packets::Refused;
use bentpipe_net::ConfigError;
use bentpipe_scenario::TopologyError;

/// A scenario of which no world can be built.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum BuildError {
    /// The groups do not make a graph.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// Two flow groups share a name.
    #[error("flow.{0}: two groups have this name")]
    Twice(String),
    /// A link cannot exist.
    #[error("link.{link}.{direction}: {error}")]
    Link {
        /// Name of the link group.
        link: String,
        /// `forward` or `reverse`.
        direction: &'static str,
        /// The mistake.
        error: ConfigError,
    },
    /// No way leads from the sender to the receiver, or back.
    #[error("flow.{flow}: no route leads from {from} to {to}")]
    NoRoute {
        /// Name of the flow.
        flow: String,
        /// Name of the node where the route would begin.
        from: String,
        /// Name of the node where it would end.
        to: String,
    },
    /// A flow begins and ends at one node.
    #[error("flow.{flow}: begins and ends at {node}")]
    Loop {
        /// Name of the flow.
        flow: String,
        /// Name of the node.
        node: String,
    },
    /// The algorithm of a flow does not run over its transport.
    #[error("flow.{flow}: {refused}")]
    Algorithm {
        /// Name of the flow group.
        flow: String,
        /// The reason.
        refused: Refused,
    },
    /// A flow whose traffic cannot be sent.
    #[error("flow.{flow}: {what}")]
    Traffic {
        /// Name of the flow group.
        flow: String,
        /// The mistake.
        what: &'static str,
    },
}
