//! Checks of an experiment, and the meaning of its names in checks and figures.

use toml::Value;

use crate::check::{Check, Place, Quantity, Relation};
use crate::file::{Experiment, OverTimeFile, position};
use crate::grid::Form;
use crate::measure::{Measure, Measured};
use crate::mistakes::unknown;
use crate::study::{Flows, OverTime, Sketch};

impl Experiment {
    /// Returns all mistakes of the experiment.
    pub(crate) fn check(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let axis_values = self.axis.iter().flat_map(|axis| &axis.values);
        for value in
            axis_values.chain(self.quick.values.iter().flatten()).filter(|value| position(value).is_none())
        {
            wrong.push(format!("axis: found {value}, accepted: a number, with or without a unit"));
        }
        for (parameter, options) in &self.open {
            for arm in options.values().flat_map(|option| option.arm.keys()) {
                wrong.extend(self.arm(arm).err().map(|what| format!("open.{parameter}: {what}")));
            }
        }
        if self.axis.as_ref().is_some_and(|axis| axis.keys.is_empty() || axis.values.is_empty()) {
            wrong.push("axis: found no keys or no values, accepted: at least one of each".into());
        }
        if self.arm.is_empty() {
            wrong.push("arm: found none, accepted: at least one".into());
        }
        if self.seeds == 0 || self.quick.seeds == Some(0) {
            wrong.push("seeds: found 0, accepted: 1 or more".into());
        }
        wrong
    }

    /// Returns the index of an arm.
    pub(crate) fn arm(&self, name: &str) -> Result<usize, String> {
        self.arm.get_index_of(name).ok_or_else(|| unknown("arm", name, self.arm.keys()))
    }

    /// Returns an error if `wanted` is not a value of the axis in this form.
    pub(crate) fn on_axis(&self, wanted: f64, form: Form) -> Result<(), String> {
        let values = self.values(form);
        let alike = |value: &&Value| position(value).is_some_and(|at| crate::check::alike(at, wanted));
        if values.iter().any(alike) {
            return Ok(());
        }
        let Some(axis) = &self.axis else {
            return Err(format!("found the place {wanted}, but the experiment has no axis"));
        };
        let short = if form.quick { "; the short form has fewer values" } else { "" };
        let accepted: Vec<String> = values.iter().map(|value| value.to_string()).collect();
        Err(format!("found {} = {wanted}, accepted: {}{short}", axis.name, accepted.join(", ")))
    }

    pub(crate) fn measured(&self, quantity: &Quantity) -> Result<Measured, String> {
        let axis = self.axis.as_ref().map(|axis| axis.name.as_str());
        let number = |text: &str| {
            text.parse().map_err(|_| format!("{}: found `{text}`, accepted: a number", quantity.metric))
        };
        let elsewhere = axis.and_then(|axis| quantity.selector(axis)).map(number).transpose()?;
        elsewhere.map_or(Ok(()), |at| self.on_axis(at, Form::default()))?;
        Ok(Measured { measure: Measure::of(quantity, axis)?, arm: self.arm(&quantity.arm)?, elsewhere })
    }

    /// Resolves the names of a check in this experiment.
    ///
    /// # Errors
    /// A message with the unknown name and the accepted ones.
    pub fn understood(&self, check: &Check) -> Result<Check<Measured>, String> {
        for clause in &check.clauses {
            clause.place.as_ref().map_or(Ok(()), |place| self.check_place(place))?;
            if let Relation::Peaks(_, at) = clause.relation {
                self.on_axis(at, Form::default()).map_err(|what| format!("peaks at: {what}"))?;
            }
        }
        check.translated(&mut |quantity| self.measured(quantity))
    }

    fn check_place(&self, place: &Place) -> Result<(), String> {
        let axis = self.axis.as_ref().map(|axis| &axis.name);
        if axis != Some(&place.axis) {
            return Err(unknown("axis", &place.axis, axis.into_iter()));
        }
        place.values.listed().iter().try_for_each(|at| self.on_axis(*at, Form::default()))
    }

    pub(crate) fn over_time(&self, time: OverTimeFile) -> Result<OverTime, String> {
        if let Some(at) = time.at {
            for quick in [false, true] {
                self.on_axis(at, Form { quick, seeds: None }).map_err(|what| format!("at: {what}"))?;
            }
        }
        let arm = |(name, label): (String, String)| Ok((self.arm(&name)?, label));
        let arms = time.arms.into_iter().map(arm).collect::<Result<_, String>>()?;
        let flows = match time.flow {
            None => Flows::First,
            Some(name) if name == "*" => Flows::All,
            Some(name) => Flows::Named(name),
        };
        let span = time.span.unwrap_or((0.0, f64::MAX));
        if span.0 >= span.1 {
            return Err(format!("span: found {} to {}, accepted: a later end", span.0, span.1));
        }
        Ok(OverTime { sketch: Sketch { curve: time.series, flows, span }, arms, at: time.at })
    }
}
