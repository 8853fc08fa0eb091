//! `bentpipe pep`: the proxy on a real link.

use bentpipe_pep::State;
use bentpipe_scenario::deployment::Deployment;

use crate::failure::Failure;
use crate::pep_args::PepCommand;
use crate::{pep_status, pep_top, pep_try};

/// Does what the user wants of the proxy.
pub fn pep(command: &PepCommand) -> Result<(), Failure> {
    match command {
        PepCommand::Run(args) => {
            let path = args.config.path();
            let deployment = load(path)?;
            eprintln!("bentpipe: {}", said_at_start(&deployment));
            Ok(bentpipe_pep::run(path, deployment, args.take_over)?)
        }
        PepCommand::Check(file) => check(file.path()),
        PepCommand::Doctor(file) => doctor(file.path_if_there()),
        PepCommand::Status(args) => pep_status::status(args),
        PepCommand::Stop(args) => pep_status::stop(args),
        PepCommand::Top(args) => pep_top::top(args),
        PepCommand::Try(args) => pep_try::try_out(args),
        PepCommand::Clean => clean(),
    }
}

/// Reads a configuration, and warns of what its author can hardly have meant.
fn load(path: &str) -> Result<Deployment, Failure> {
    let deployment = Deployment::load(path)?;
    for warning in deployment.warnings() {
        eprintln!("warning: {path}: {warning}");
    }
    Ok(deployment)
}

fn clean() -> Result<(), Failure> {
    match bentpipe_pep::clean()?.as_slice() {
        [] => println!("nothing to remove: no proxy has left rules behind"),
        tables => println!("removed: rules and routes of {}", tables.join(", ")),
    }
    Ok(())
}

/// Interfaces and classes, and whose connections are split.
fn said_at_start(deployment: &Deployment) -> String {
    let interfaces = &deployment.interfaces;
    let classes: Vec<&str> = deployment.classes.iter().map(|class| class.name.as_str()).collect();
    format!(
        "clients at {}, satellite at {}; classes {}; {}",
        interfaces.clients.join(", "),
        interfaces.satellite.join(", "),
        classes.join(", "),
        deployment.scope()
    )
}

fn check(path: &str) -> Result<(), Failure> {
    let deployment = load(path)?;
    println!("# {}", deployment.scope());
    print!("{}", bentpipe_pep::check(&deployment)?);
    Ok(())
}

fn doctor(path: Option<&str>) -> Result<(), Failure> {
    let deployment = path.map(load).transpose()?;
    let findings = bentpipe_pep::examine(deployment.as_ref());
    for finding in &findings {
        let word = match finding.state {
            State::Ok => "ok     ",
            State::Warning => "warning",
            State::Missing => "missing",
        };
        println!("{word}  {}", finding.what);
        if !finding.fix.is_empty() {
            println!("         fix: {}", finding.fix);
        }
    }
    match findings.iter().filter(|finding| finding.state == State::Missing).count() {
        0 => Ok(()),
        1 => Err(Failure::Missing("a proxy needs one thing that is missing, see above".to_owned())),
        count => Err(Failure::Missing(format!("a proxy needs {count} things that are missing, see above"))),
    }
}
