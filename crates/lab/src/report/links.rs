//! Configured changes of links over time: weather, modulation, rate, delay, loss.

use bentpipe_base::Duration;
use bentpipe_net::{Interpolation, LinkConfig, LossModel, Quantity, Schedule};
use bentpipe_scenario::{Radio, Scenario};

use super::figure::{Axis, Choice, Figure, Pick, Section, Style, Trace};

/// Points of a curve.
const POINTS: usize = 1600;
/// Title of the choice between directions of links.
const LINKS: &str = "Links";

/// One direction of a group of links with a value that changes over time.
struct Direction<'a> {
    name: String,
    colour: usize,
    config: &'a LinkConfig,
    radio: &'a Radio,
}

/// The section; none if nothing changes.
pub fn section(scenario: &Scenario) -> Option<Section> {
    let mut directions: Vec<Direction<'_>> = Vec::new();
    for group in &scenario.links {
        let sides =
            [("forward", &group.forward, &group.radio[0]), ("reverse", &group.reverse, &group.radio[1])];
        let alike = same(&group.forward, &group.reverse);
        for (side, config, radio) in sides.into_iter().take(if alike { 1 } else { 2 }) {
            if changes(config) || radio.modem.is_some() {
                let name = if alike { group.name.clone() } else { format!("{} {side}", group.name) };
                directions.push(Direction { name, colour: directions.len(), config, radio });
            }
        }
    }
    let end = scenario.duration;
    let mut figures = vec![
        attenuation(&directions, end),
        modcods(&directions, end),
        rates(&directions, end),
        delays(&directions, end),
        losses(&directions, end),
    ];
    figures.retain(|figure| !figure.traces.is_empty());
    if figures.is_empty() {
        return None;
    }
    let names: Vec<String> = directions.iter().map(|direction| direction.name.clone()).collect();
    let choices = Choice::several_of(LINKS, names.clone(), &names);
    let intro = "As the scenario has them, whatever the flows do.";
    Some(Section::new("Links over time", intro.into(), choices, figures))
}

/// True if both directions change in the same way.
fn same(one: &LinkConfig, other: &LinkConfig) -> bool {
    (&one.rate, &one.delay_one_way, &one.loss, &one.opportunities)
        == (&other.rate, &other.delay_one_way, &other.loss, &other.opportunities)
}

fn changes(link: &LinkConfig) -> bool {
    varies(&link.rate)
        || varies(&link.delay_one_way)
        || matches!(link.loss.model, LossModel::Schedule { .. } | LossModel::Frames { .. })
}

fn varies<T>(schedule: &Schedule<T>) -> bool {
    match schedule {
        Schedule::Constant(_) => false,
        Schedule::Table { points, .. } => points.len() > 1,
        Schedule::Sine { .. } => true,
    }
}

impl Direction<'_> {
    fn trace(&self, points: &[(f64, f64)], style: Style) -> Trace {
        Trace::over_time(&self.name, points, style)
            .coloured(self.colour)
            .shown_by(&[Pick::new(LINKS, &self.name)])
    }

    /// The course of a schedule, each value times `factor`.
    fn course<T: Quantity>(&self, schedule: &Schedule<T>, end: Duration, factor: f64) -> Option<Trace> {
        let style = match schedule {
            Schedule::Table { interpolation: Interpolation::Step, .. } => Style::Step,
            _ => Style::Line,
        };
        let course = schedule.course(end, POINTS).into_iter();
        let points: Vec<_> = course.map(|(time, raw)| (time.as_secs_f64(), raw as f64 * factor)).collect();
        varies(schedule).then(|| self.trace(&points, style))
    }
}

fn attenuation(directions: &[Direction<'_>], end: Duration) -> Figure {
    let mut figure = Figure::over_time("Attenuation by the weather", "", "dB");
    for one in directions.iter().filter(|one| one.radio.modem.is_some()) {
        let at = |step: usize| end.mul_f64(step as f64 / POINTS as f64);
        let point = |time: Duration| (time.as_secs_f64(), one.radio.weather.attenuation_db(time));
        let points: Vec<_> = (0..=POINTS).map(|step| point(at(step))).collect();
        if points.iter().any(|(_, db)| *db > 0.0) {
            figure.traces.push(one.trace(&points, Style::Line));
        }
    }
    figure
}

/// The modulation and code in use, the most robust at the bottom.
fn modcods(directions: &[Direction<'_>], end: Duration) -> Figure {
    let mut figure = Figure::over_time("Modulation and code", "The most robust at the bottom.", "");
    let plans: Vec<_> = directions
        .iter()
        .filter_map(|one| Some((one, one.radio.modem.as_ref()?.plan(&one.radio.weather, end))))
        .filter(|(_, plan)| plan.spans.iter().any(|span| span.modcod.name != plan.spans[0].modcod.name))
        .collect();
    let mut used: Vec<_> =
        plans.iter().flat_map(|(_, plan)| plan.spans.iter().map(|span| span.modcod)).collect();
    used.sort_by(|a, b| b.es_n0_db.total_cmp(&a.es_n0_db).then(a.name.cmp(b.name)));
    used.dedup_by_key(|modcod| modcod.name);
    let place = |name: &str| used.iter().position(|modcod| modcod.name == name).unwrap_or_default();
    for (one, plan) in &plans {
        let points = plan.spans.iter().filter(|span| span.from < end);
        let mut points: Vec<_> =
            points.map(|span| (span.from.as_secs_f64(), place(span.modcod.name) as f64)).collect();
        points.extend(points.last().map(|last| (end.as_secs_f64(), last.1)));
        figure.traces.push(one.trace(&points, Style::Step));
    }
    figure.y = Axis { names: used.iter().map(|modcod| modcod.name.to_owned()).collect(), ..Axis::default() };
    figure
}

fn rates(directions: &[Direction<'_>], end: Duration) -> Figure {
    let recorded = directions.iter().any(|one| one.config.opportunities.is_some());
    let caption = if recorded { "Of recorded deliveries what those of each second come to." } else { "" };
    let mut figure = Figure::over_time("Rate", caption, "Mbit/s");
    figure.traces = directions.iter().filter_map(|one| one.course(&one.config.rate, end, 1e-6)).collect();
    figure
}

fn delays(directions: &[Direction<'_>], end: Duration) -> Figure {
    let mut figure = Figure::over_time("One-way delay", "", "ms");
    figure.y.close = true;
    figure.traces =
        directions.iter().filter_map(|one| one.course(&one.config.delay_one_way, end, 1e-6)).collect();
    figure
}

fn losses(directions: &[Direction<'_>], end: Duration) -> Figure {
    let mut figure = Figure::over_time("Loss", "Of packets, or of frames of the physical layer.", "%");
    for one in directions {
        let spans: Vec<(Duration, f64)> = match &one.config.loss.model {
            LossModel::Schedule { points, .. } => points.clone(),
            LossModel::Frames { spans } => spans.iter().map(|span| (span.from, span.loss)).collect(),
            _ => continue,
        };
        let period = match &one.config.loss.model {
            LossModel::Schedule { repeat_every, .. } => repeat_every.unwrap_or(Duration::MAX),
            _ => Duration::MAX,
        };
        let begins = (0..)
            .map(|round| period.as_nanos().saturating_mul(round))
            .take_while(|begin| *begin < end.as_nanos());
        let of_round = |begin: u64| {
            spans
                .iter()
                .map(move |(from, loss)| (Duration::from_nanos(begin.saturating_add(from.as_nanos())), *loss))
        };
        let points = begins.flat_map(of_round).take_while(|(from, _)| *from < end).take(100 * POINTS);
        let mut points: Vec<_> = points.map(|(from, loss)| (from.as_secs_f64(), 100.0 * loss)).collect();
        points.extend(points.last().map(|last| (end.as_secs_f64(), last.1)));
        figure.traces.push(one.trace(&points, Style::Step));
    }
    figure
}

#[cfg(test)]
mod tests {
    use super::super::figure::{Number, Position, Scale};
    use super::*;
    use bentpipe_scenario::{Draft, builtin};

    fn titles(section: &Section) -> Vec<&str> {
        section.figures.iter().map(|figure| figure.title.as_str()).collect()
    }

    #[test]
    fn weather_shows_attenuation_modulation_rate_and_loss() {
        let section = section(&builtin("vsat-rain").unwrap()).unwrap();
        let wanted = ["Attenuation by the weather", "Modulation and code", "Rate", "Loss"];
        assert_eq!(titles(&section), wanted);
        let names = &section.figures[1].y.names;
        assert!(names.len() > 1 && section.figures[1].traces.len() == 1, "{names:?}");
        assert!(section.choices.is_empty(), "one direction alone");
    }

    #[test]
    fn a_recorded_link_shows_what_was_recorded() {
        let section = section(&builtin("leo-recorded").unwrap()).unwrap();
        assert_eq!(titles(&section), ["Rate", "One-way delay", "Loss"]);
        assert_eq!(section.choices[0].options, ["satellite forward", "satellite reverse"]);
        let first = &section.figures[0].traces[0];
        assert_eq!((first.y[0], first.y.len()), (Some(Number(84.8)), 119));
        assert!(matches!(first.x.last(), Some(Position::Number(Number(end))) if *end == 120.0));
    }

    #[test]
    fn where_nothing_changes_there_is_nothing_to_show() {
        assert_eq!(section(&builtin("geo-dumbbell").unwrap()), None);
        let mut draft = Draft::load("geo-dumbbell").unwrap();
        draft.set("link.satellite.rate={ deliveries = '12mbit.trace' }").unwrap();
        assert_eq!(section(&draft.scenario().unwrap()), None, "each second is alike");
    }

    #[test]
    fn the_axis_is_that_of_time() {
        let section = section(&builtin("vsat-rain").unwrap()).unwrap();
        assert!(section.figures.iter().all(|figure| figure.x.scale == Scale::Time));
    }
}
