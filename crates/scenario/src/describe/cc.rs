use bentpipe_cc::Algorithm;

use crate::algorithm::{algorithm_names, check_flow_cc, meant, resolve_cc, stack_control, stack_controls};
use crate::error::Mistake;
use crate::form::{Form, Reading, Shorthand};
use crate::tree::Value;
use crate::unit::{Codec, Refused};

/// Accepts a name instead of the table with name and parameters.
pub(super) const SHORTHAND: Shorthand = Shorthand { word: Some("name"), number: None, list: None };

/// Algorithm of a flow: its name, and the parameters unless the QUIC stack has it.
pub(super) fn flow_cc(form: &mut Form<'_>, name: &mut String, algorithm: &mut Algorithm) {
    form.field("name", name, &FlowAlgorithmName);
    if stack_control(name).is_none() {
        parameters(form, name, algorithm);
    }
}

/// Algorithm of a connection end: its name, which may include a recovery, and its parameters.
pub(super) fn cc(form: &mut Form<'_>, name: &mut String, algorithm: &mut Algorithm) {
    form.field("name", name, &AlgorithmName);
    parameters(form, name, algorithm);
}

fn parameters(form: &mut Form<'_>, name: &str, algorithm: &mut Algorithm) {
    match form {
        Form::Read(reading) => {
            if let Some(read) = read_parameters(reading, name) {
                *algorithm = read;
            }
        }
        Form::Show(table) => {
            for entry in crate::parameters::show(algorithm).entries {
                table.put(&entry.key, entry.node);
            }
        }
        // The reference lists parameters by algorithm.
        Form::List(_) => {}
    }
}

/// Returns the algorithm `name` with the parameters in the other entries of its table. `None` if one is invalid, which is
/// reported.
pub(crate) fn read_parameters(reading: &mut Reading<'_>, name: &str) -> Option<Algorithm> {
    let renamed = reading.get("name").is_some_and(|node| node.place.is_argument());
    // The parameters in the file belong to the algorithm in the file, not to one from the command line.
    let entries: Vec<_> = reading.rest().filter(|entry| !renamed || entry.place.is_argument()).collect();
    let (law, _) = resolve_cc(name).ok()?;
    match crate::parameters::read(law.name(), &entries) {
        Ok(algorithm) => Some(algorithm),
        Err(fault) => {
            let entry = entries.iter().find(|entry| entry.key == fault.key)?;
            reading.report.add(Mistake {
                place: if fault.unknown { &entry.place } else { &entry.node.place }.clone(),
                key: reading.path_of(&fault.key),
                found: if fault.unknown {
                    "an unknown parameter".to_owned()
                } else {
                    entry.node.value.to_string()
                },
                accepted: fault.accepted,
                suggestion: fault.suggestion,
            });
            None
        }
    }
}

/// Codec of an algorithm's name, with or without a recovery.
pub(super) struct AlgorithmName;

impl Codec<String> for AlgorithmName {
    fn read(&self, value: &Value) -> Result<String, Refused> {
        let Value::Text(name) = value else { return Err(Refused::default()) };
        match resolve_cc(name) {
            Ok(_) => Ok(name.clone()),
            Err(_) => Err(Refused::meant(meant(name))),
        }
    }
    fn show(&self, typed: &String) -> Value {
        Value::Text(typed.clone())
    }
    fn accepted(&self) -> String {
        format!("{}; with another recovery: cubic+sack", algorithm_names().join(", "))
    }
}

/// Codec of the algorithm of a flow, which may be one of the QUIC stack.
struct FlowAlgorithmName;

impl Codec<String> for FlowAlgorithmName {
    fn read(&self, value: &Value) -> Result<String, Refused> {
        let Value::Text(name) = value else { return Err(Refused::default()) };
        check_flow_cc(name).map(|()| name.clone()).map_err(|_| Refused::meant(meant(name)))
    }
    fn show(&self, typed: &String) -> Value {
        AlgorithmName.show(typed)
    }
    fn accepted(&self) -> String {
        let stack = stack_controls().collect::<Vec<_>>().join(", ");
        format!("{}; over QUIC also {stack}", AlgorithmName.accepted())
    }
}
