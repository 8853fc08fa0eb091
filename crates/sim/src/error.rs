use bentpipe_net::ConfigError;

/// A scenario of which no world can be built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BuildError {
    /// A link or flow group names a node group that does not exist.
    #[error("{user}: there is no node group \"{name}\"")]
    UnknownNode {
        /// `link` or `flow` with its name.
        user: String,
        /// Name that was looked for.
        name: String,
    },
    /// Two things of a kind share a name, or a group is empty.
    #[error("{0}")]
    Unnameable(String),
    /// The two node groups of a link group cannot be paired.
    #[error("link.{link}: {from} nodes cannot be joined with {to}; one of the two must be 1, or both equal")]
    Unpairable {
        /// Name of the link group.
        link: String,
        /// Nodes at the near end.
        from: u32,
        /// Nodes at the far end.
        to: u32,
    },
    /// A link cannot exist.
    #[error("link.{link}.{direction}: {error}")]
    Link {
        /// Name of the link group.
        link: String,
        /// `forward` or `reverse`.
        direction: &'static str,
        /// What is wrong with it.
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
    /// A flow that cannot send what it is meant to.
    #[error("flow.{flow}: {what}")]
    Traffic {
        /// Name of the flow group.
        flow: String,
        /// What is wrong with it.
        what: &'static str,
    },
}
