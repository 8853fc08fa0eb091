use std::sync::Arc;

use bentpipe_base::Duration;
use bentpipe_net::{Jitter, JitterDistribution};

use super::recorded;
use crate::form::{Form, Shorthand};
use crate::series::Series;
use crate::tree::Value;
use crate::unit::{CORRELATION, Codec, TIME, TIME_ABOVE_ZERO};

/// Accepts the name of a kind, a standard deviation, or a table.
const SHORTHAND: Shorthand = Shorthand { number: Some("deviation"), ..Shorthand::KIND };

/// Table `jitter` of a link. `series` holds the file of measured delays.
pub(super) fn jitter(form: &mut Form<'_>, jitter: &mut Option<Jitter>, series: &mut Option<Series>) {
    form.table("jitter", SHORTHAND, |form| {
        form.choose(jitter, name, each(), |form, jitter| keys(form, jitter, &mut None));
        if !form.lists() {
            keys(form, jitter, series);
        }
    });
}

fn keys(form: &mut Form<'_>, jitter: &mut Option<Jitter>, series: &mut Option<Series>) {
    let Some(Jitter { distribution, correlation }) = jitter else { return *series = None };
    if !matches!(distribution, JitterDistribution::Table { .. }) {
        *series = None;
    }
    match distribution {
        JitterDistribution::Normal { mean, deviation } => {
            form.field("mean", mean, &TIME);
            form.required("deviation", deviation, &TIME);
        }
        JitterDistribution::LogNormal { mean, deviation }
        | JitterDistribution::Pareto { mean, deviation } => {
            form.required("mean", mean, &TIME_ABOVE_ZERO);
            form.required("deviation", deviation, &TIME_ABOVE_ZERO);
        }
        JitterDistribution::Table { delays } => {
            let series = series.get_or_insert_with(Series::default);
            let read = |value: &Value| TIME.read(value).map(Some);
            let accepted = Codec::<Duration>::accepted(&TIME);
            if let Some(mut read) = recorded::samples(form, series, (&read, &accepted)) {
                read.sort_unstable();
                *delays = read.into();
            }
        }
    }
    form.field("correlation", correlation, &CORRELATION);
}

fn name(jitter: &Option<Jitter>) -> &'static str {
    match jitter.as_ref().map(|jitter| &jitter.distribution) {
        None => "off",
        Some(JitterDistribution::Normal { .. }) => "normal",
        Some(JitterDistribution::LogNormal { .. }) => "log-normal",
        Some(JitterDistribution::Pareto { .. }) => "pareto",
        Some(JitterDistribution::Table { .. }) => "table",
    }
}

/// Returns no jitter, and default jitter of each kind.
fn each() -> Vec<Option<Jitter>> {
    let (mean, deviation) = (Duration::ZERO, Duration::ZERO);
    let distributions = [
        JitterDistribution::Normal { mean, deviation },
        JitterDistribution::LogNormal { mean, deviation },
        JitterDistribution::Pareto { mean, deviation },
        JitterDistribution::Table { delays: Arc::from([Duration::ZERO]) },
    ];
    let some = distributions.map(|distribution| Some(Jitter { distribution, correlation: 0.0 }));
    [None].into_iter().chain(some).collect()
}
