//! The class of a connection.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use bentpipe_scenario::deployment::{Class, Deployment, Opened, Opener, Side};
use nix::net::if_::if_indextoname;

use crate::half::HalfRequest;
use crate::packet::Tuple;
use crate::sight::Manner;
use crate::sight::Way;

/// A class of a configuration, for a connection that one of both sides has opened. Another configuration does not change it.
#[derive(Clone)]
pub(crate) struct ConnectionClass {
    deployment: Arc<Deployment>,
    number: usize,
    opener: Opener,
}

impl ConnectionClass {
    /// The class of a connection, if it is split.
    pub fn of(deployment: Arc<Deployment>, opener: Opener, tuple: Tuple, way: Way) -> Option<Self> {
        let asks_for_name = deployment.classes.iter().any(|class| !class.matches.out.is_empty());
        let name = if asks_for_name { if_indextoname(way.out).ok() } else { None };
        let out = name.as_ref().and_then(|name| name.to_str().ok()).unwrap_or_default();
        let Tuple { client, server } = tuple;
        let number = deployment.class_of(&Opened { opener, client, server, out })?;
        deployment.classes[number].proxy.then_some(Self { deployment, number, opener })
    }

    /// On which side of the proxy a half is: 0 over the satellite, 1 towards the clients. The half of the client is number 0.
    pub fn side(&self, which: usize) -> usize {
        match self.opener {
            Opener::Satellite => which,
            Opener::Clients => 1 - which,
        }
    }

    /// Configuration of the half of the client, which opened the connection.
    pub fn front(&self) -> &Side {
        match self.opener {
            Opener::Clients => &self.split.clients,
            Opener::Satellite => &self.split.satellite,
        }
    }

    /// Configuration of the half of the server.
    pub fn back(&self) -> &Side {
        match self.opener {
            Opener::Clients => &self.split.satellite,
            Opener::Satellite => &self.split.clients,
        }
    }

    /// Returns the request to the engine for a half of a connection of this class.
    pub fn request(&self, tuple: Tuple, manner: Manner) -> HalfRequest {
        let Tuple { client, server } = tuple;
        HalfRequest { client, server, manner, split: self.split.clone() }
    }

    /// Side of the proxy that opened the connection.
    pub fn opener(&self) -> Opener {
        self.opener
    }

    /// Maximum time without progress while a half acknowledges the data before a reset.
    pub fn reset_after(&self) -> Duration {
        Duration::from_nanos(self.deployment.limits.reset_after.as_nanos())
    }
}

impl Deref for ConnectionClass {
    type Target = Class;

    fn deref(&self) -> &Class {
        &self.deployment.classes[self.number]
    }
}
