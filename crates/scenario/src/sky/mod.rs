//! Constellations in a scenario: their description, and the resulting links and routes over time.

mod cache;
mod left_out;
pub(crate) mod links;
mod model;
mod path;
mod plan;
mod shared;

pub use links::LinksFile;
pub use model::{ConstellationGroup, InFlight, Links, Orbits, Position};
pub use path::{SkyLinks, SkyPath, sky_as_links, sky_paths};
pub use plan::{Crossing, Entry, Holder, Landings, Moment, Onward, SkyLink, SkyNode, SkyPlan, Turn, Way};
pub use shared::shared_plan;
