//! The class of a connection.

use std::ops::Deref;
use std::sync::Arc;

use bentpipe_scenario::deployment::{Class, Deployment, Opener, Side};

use crate::half::HalfRequest;
use crate::packet::Tuple;

/// A class of a configuration, for a connection that one of both sides has opened. Another configuration does not change it.
#[derive(Clone)]
pub(crate) struct ConnectionClass {
    deployment: Arc<Deployment>,
    number: usize,
    opener: Opener,
}

impl ConnectionClass {
    /// If a new configuration has no class for a connection, it belongs to the first class that is split.
    pub fn of(deployment: Arc<Deployment>, opener: Opener, tuple: Tuple) -> Self {
        let found = deployment.class_of(opener, tuple.client, tuple.server);
        let first = || deployment.classes.iter().position(|class| class.proxy);
        let number = found.filter(|class| deployment.classes[*class].proxy).or_else(first).unwrap_or(0);
        Self { deployment, number, opener }
    }

    /// How the half of the client is configured, which opened the connection.
    pub fn front(&self) -> &Side {
        match self.opener {
            Opener::Clients => &self.split.clients,
            Opener::Satellite => &self.split.satellite,
        }
    }

    /// How the half of the server is configured.
    pub fn back(&self) -> &Side {
        match self.opener {
            Opener::Clients => &self.split.satellite,
            Opener::Satellite => &self.split.clients,
        }
    }

    /// What the engine is asked for to make a half of a connection of this class.
    pub fn request(&self, tuple: Tuple, dscp: u8) -> HalfRequest {
        let Tuple { client, server } = tuple;
        HalfRequest { client, server, opener: self.opener, dscp, split: self.split.clone() }
    }

    /// Which side of the proxy opened the connection.
    pub fn opener(&self) -> Opener {
        self.opener
    }
}

impl Deref for ConnectionClass {
    type Target = Class;

    fn deref(&self) -> &Class {
        &self.deployment.classes[self.number]
    }
}
