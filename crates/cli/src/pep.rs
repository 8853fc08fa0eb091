//! `bentpipe pep`: the proxy on a real link.

use bentpipe_pep::State;
use bentpipe_scenario::deployment::Deployment;

use crate::failure::Failure;
use crate::pep_args::PepCommand;
use crate::{pep_top, pep_try};

/// Does what the user wants of the proxy.
pub fn pep(command: &PepCommand) -> Result<(), Failure> {
    match command {
        PepCommand::Run(args) => {
            Ok(bentpipe_pep::run(&args.config, Deployment::load(&args.config)?, args.take_over)?)
        }
        PepCommand::Check { config } => check(config),
        PepCommand::Doctor { config } => doctor(config.as_deref()),
        PepCommand::Top(args) => pep_top::top(args),
        PepCommand::Try(args) => pep_try::try_out(args),
        PepCommand::Clean => Ok(bentpipe_pep::clean()?),
    }
}

fn check(path: &str) -> Result<(), Failure> {
    let deployment = Deployment::load(path)?;
    print!("{}", bentpipe_pep::check(&deployment)?);
    Ok(())
}

fn doctor(path: Option<&str>) -> Result<(), Failure> {
    let deployment = path.map(Deployment::load).transpose()?;
    let findings = bentpipe_pep::examine(deployment.as_ref());
    for finding in &findings {
        let word = match finding.state {
            State::Ok => "ok      ",
            State::Doubtful => "doubtful",
            State::Missing => "missing ",
        };
        println!("{word}  {}", finding.what);
        if !finding.cure.is_empty() {
            println!("          cure: {}", finding.cure);
        }
    }
    match findings.iter().filter(|finding| finding.state == State::Missing).count() {
        0 => Ok(()),
        count => Err(Failure::Missing(format!("{count} of what a proxy needs is missing, see above"))),
    }
}
