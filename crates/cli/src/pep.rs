//! `bentpipe pep`: the proxy on a real link.

use bentpipe_scenario::deployment::Deployment;

use crate::failure::Failure;
use crate::pep_args::PepCommand;

/// Does what the user wants of the proxy.
pub fn pep(command: &PepCommand) -> Result<(), Failure> {
    match command {
        PepCommand::Run(args) => Ok(bentpipe_pep::run(&args.config, Deployment::load(&args.config)?)?),
        PepCommand::Check { config } => check(config),
        PepCommand::Clean => Ok(bentpipe_pep::clean()?),
    }
}

fn check(path: &str) -> Result<(), Failure> {
    let deployment = Deployment::load(path)?;
    print!("{}", bentpipe_pep::check(&deployment)?);
    Ok(())
}
