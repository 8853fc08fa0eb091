use std::sync::Arc;

use bentpipe_base::Duration;
use bentpipe_orbit::{Grid, Handover, Place, Shell, Spread};

use super::link::{Intervals, ground, medium};
use super::recorded;
use crate::form::{Form, Named, Shorthand};
use crate::sky::{ConstellationGroup, InFlight, Links, LinksFile, Orbits, Position};
use crate::tree::{Node, Value};
use crate::unit::{
    ANGLE, Angles, Codec, Count, DISTANCE, Date, FEW, FLAG, KILOMETRES, OrWord, PHASING, Refused, TEXT, TIME,
    TIME_ABOVE_ZERO, Words,
};

impl Named for ConstellationGroup {
    fn named(name: &str) -> Self {
        Self::unread(name)
    }
    fn name(&self) -> &str {
        &self.name
    }
}

const IN_FLIGHT: Words<InFlight> = Words(&[("rerouted", InFlight::Rerouted), ("lost", InFlight::Lost)]);

/// Table `[constellation.<name>]`.
pub(super) fn constellation(form: &mut Form<'_>, group: &mut ConstellationGroup) {
    form.variant(&mut group.orbits, kind_of, each(), |form, orbits| match orbits {
        Orbits::Shell(shell) => self::shell(form, shell),
        Orbits::Geostationary(longitudes) => form.required("longitudes", longitudes, &Angles),
        Orbits::Elements { file, epoch, .. } => {
            form.required("file", file, &TEXT);
            form.field("epoch", epoch, &OrWord("latest", Date));
        }
    });
    form.required("elevation-mask", &mut group.elevation_mask_deg, &ANGLE);
    form.table("handover", Shorthand::KIND, |form| handover(form, &mut group.handover));
    form.field("interruption", &mut group.interruption, &TIME);
    form.field("in-flight", &mut group.in_flight, &IN_FLIGHT);
    form.field("step", &mut group.step, &TIME_ABOVE_ZERO);
    form.required_table("ground", Shorthand::NONE, "a table with rate, queue, loss", |form| {
        let [up, down] = &mut group.recordings;
        ground(form, &mut group.up, up);
        if form.reads() {
            group.down = group.up.clone();
            *down = up.clone();
        }
        form.differing("down", |form| ground(form, &mut group.down, down));
    });
    form.table("links", Shorthand::KIND, |form| links(form, &mut group.links));
    if group.links.is_some() {
        form.required_table("between", Shorthand::NONE, "a table with rate, queue, loss", |form| {
            medium(form, &mut group.between);
        });
    }
}

fn kind_of(orbits: &Orbits) -> &'static str {
    match orbits {
        Orbits::Shell(Shell { spread: Spread::Star { .. }, .. }) => "walker-star",
        Orbits::Shell(_) => "walker-delta",
        Orbits::Geostationary(_) => "geostationary",
        Orbits::Elements { .. } => "elements",
    }
}

/// Returns default orbits of each kind.
fn each() -> Vec<Orbits> {
    let shell = |spread| Orbits::Shell(Shell { spread, phasing: 0.0, ..Shell::IRIDIUM });
    vec![
        shell(Spread::Star { separation_deg: 180.0 }),
        shell(Spread::Delta),
        Orbits::Geostationary(Vec::new()),
        Orbits::Elements { file: String::new(), text: Arc::from(""), epoch: None },
    ]
}

fn shell(form: &mut Form<'_>, shell: &mut Shell) {
    form.required("altitude", &mut shell.altitude_km, &DISTANCE);
    form.required("inclination", &mut shell.inclination_deg, &ANGLE);
    form.required("planes", &mut shell.planes, &FEW);
    form.required("satellites-per-plane", &mut shell.per_plane, &FEW);
    if let Spread::Star { separation_deg } = &mut shell.spread {
        form.required("plane-separation", separation_deg, &ANGLE);
    }
    form.field("phasing", &mut shell.phasing, &PHASING);
    form.field("first-node", &mut shell.first_node_deg, &ANGLE);
}

fn handover(form: &mut Form<'_>, handover: &mut Handover) {
    let name = |handover: &Handover| match handover {
        Handover::Nearest => "nearest",
        Handover::Hysteresis { .. } => "hysteresis",
        Handover::LongestVisible => "longest-visible",
        Handover::InPlane => "in-plane",
        Handover::ShortestPath { .. } => "shortest-path",
    };
    let each = vec![
        Handover::Nearest,
        Handover::Hysteresis { margin_deg: 0.0 },
        Handover::LongestVisible,
        Handover::InPlane,
        Handover::ShortestPath { margin: Duration::ZERO },
    ];
    form.variant(handover, name, each, |form, handover| match handover {
        Handover::Hysteresis { margin_deg } => form.required("margin", margin_deg, &ANGLE),
        Handover::ShortestPath { margin } => form.field("margin", margin, &TIME),
        Handover::Nearest | Handover::LongestVisible | Handover::InPlane => {}
    });
}

fn links(form: &mut Form<'_>, links: &mut Option<Links>) {
    let name = |links: &Option<Links>| match links {
        None => "none",
        Some(Links::Grid(_)) => "grid",
        Some(Links::File(_)) => "file",
    };
    let each = vec![None, Some(Links::Grid(Grid::PLUS)), Some(Links::File(LinksFile::default()))];
    form.variant(links, name, each, |form, links| match links {
        None => {}
        Some(Links::Grid(grid)) => {
            form.field("in-plane", &mut grid.in_plane, &Count::FROM_ZERO);
            form.field("across", &mut grid.across, &Count::FROM_ZERO);
            form.field("across-seam", &mut grid.across_seam, &FLAG);
            form.field("latitude-limit", &mut grid.latitude_limit_deg, &ANGLE);
        }
        Some(Links::File(links)) => recorded::links(form, links),
    });
}

/// Keys of a ground station.
pub(super) fn position(form: &mut Form<'_>, position: &mut Position) {
    form.required("latitude", &mut position.place.latitude_deg, &ANGLE);
    form.required("longitude", &mut position.place.longitude_deg, &ANGLE);
    form.field("altitude", &mut position.place.altitude_km, &KILOMETRES);
    form.field("way", &mut position.way, &Way);
    form.field("outages", &mut position.outages, &Intervals);
    form.field("gateway", &mut position.gateway, &FLAG);
}

/// Codec of `[[time, latitude, longitude, altitude], ...]`. Without an altitude the point is at sea level.
struct Way;

impl Codec<Vec<(Duration, Place)>> for Way {
    fn read(&self, value: &Value) -> Result<Vec<(Duration, Place)>, Refused> {
        let Value::List(points) = value else { return Err(Refused::default()) };
        points.iter().map(point).collect()
    }
    fn show(&self, typed: &Vec<(Duration, Place)>) -> Value {
        let point = |(time, place): &(Duration, Place)| {
            let values = [
                TIME.show(time),
                ANGLE.show(&place.latitude_deg),
                ANGLE.show(&place.longitude_deg),
                KILOMETRES.show(&place.altitude_km),
            ];
            Node::computed(Value::List(values.map(Node::computed).into()))
        };
        Value::List(typed.iter().map(point).collect())
    }
    fn accepted(&self) -> String {
        "points of time, latitude, longitude and optionally altitude, such as [[\"1 h\", \"51 deg\", \"-20 deg\", \"11 km\"]]"
            .to_owned()
    }
}

fn point(point: &Node) -> Result<(Duration, Place), Refused> {
    let Value::List(values) = &point.value else { return Err(Refused::default()) };
    let (values, altitude) = match values.as_slice() {
        [time, latitude, longitude] => ([time, latitude, longitude], None),
        [time, latitude, longitude, altitude] => ([time, latitude, longitude], Some(altitude)),
        _ => return Err(Refused::default()),
    };
    let [time, latitude, longitude] = values;
    let place = Place {
        latitude_deg: ANGLE.read(&latitude.value)?,
        longitude_deg: ANGLE.read(&longitude.value)?,
        altitude_km: altitude.map_or(Ok(0.0), |altitude| KILOMETRES.read(&altitude.value))?,
    };
    Ok((TIME.read(&time.value)?, place))
}
