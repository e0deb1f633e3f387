//! `systole worker test`: plays the pump against the program of a worker.

mod checks;
mod contract;
mod pump;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};
use systole::config::{Config, ListenerKind};
use systole::process::{CommandSpec, Variable};
use systole_core::core::ListenerId;
use systole_core::vocab::Name;

use super::failure::Failure;
use super::units;
use checks::Checks;
use contract::Contract;
use pump::Patience;

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Test whether a program keeps the protocol of workers; prints a line for each check
    Test(Test),
}

const HELP: &str = "\
The messages are examples of the payloads that a listener accepts, or the payloads of --payload. Each check has a time \
limit. A program that does not end with its input gets SIGTERM with its process group, and SIGKILL 5 s later. If a check \
fails, the output of the program is shown. With an organism the contract of the listener judges the answers, and calls are \
answered with examples; without an organism calls are answered with a fault. docs/worker.md has the protocol, and the \
expectations of each check.

Exit codes: 0 no check failed, 1 a check failed, 2 the program could not be tested.";

#[derive(Debug, Args)]
#[command(after_help = HELP, group = ArgGroup::new("messages").args(["organism", "payloads"]).required(true).multiple(true))]
pub(super) struct Test {
    /// The organism.yaml that declares the listener of the program
    #[arg(long, value_name = "FILE")]
    organism: Option<PathBuf>,
    /// The listener; by default the only one with `worker:`
    #[arg(long, value_name = "NAME", requires = "organism")]
    listener: Option<Name>,
    /// A file with a payload that the program accepts, instead of examples
    #[arg(long = "payload", value_name = "FILE")]
    payloads: Vec<PathBuf>,
    /// Further variables of its environment, in addition to PATH, HOME and the locale: NAME, or NAME=VALUE
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<Variable>,
    /// Time limit of a process for its first line; this time counts for no check
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = units::duration)]
    start: Duration,
    /// Time limit of each check
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = units::duration)]
    within: Duration,
    /// The program and its arguments; by default those of the listener
    #[arg(
        value_name = "COMMAND",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required_unless_present = "organism"
    )]
    command: Vec<String>,
}

pub(super) fn run(action: &Action) -> Result<ExitCode, Failure> {
    let Action::Test(args) = action;
    let subject = Subject::of(args)?;
    let patience = Patience { start: args.start, check: args.within };
    let checks = Checks::new(subject.program, subject.contract, patience);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::System)?;
    runtime.block_on(checks.run())
}

/// The program under test, and the contract that it is for.
struct Subject {
    program: CommandSpec,
    contract: Contract,
}

impl Subject {
    fn of(args: &Test) -> Result<Self, Failure> {
        let (listed, contract) = match &args.organism {
            Some(file) => {
                let config = Config::load(file).map_err(Failure::Config)?;
                let listener = find(&config, args.listener.as_ref())?;
                let listed = match config.kinds.get(listener.0 as usize) {
                    Some(ListenerKind::Worker(spec)) => Some(spec.command.clone()),
                    _ => None,
                };
                (listed, Contract::of(config, listener, &args.payloads)?)
            }
            None => (None, Contract::unknown(&args.payloads)?),
        };
        let mut program = match (args.command.split_first(), listed) {
            (Some((program, arguments)), listed) => {
                let directory = std::env::current_dir().map_err(Failure::System)?;
                let env = listed.map(|listed| listed.env).unwrap_or_default();
                CommandSpec::new(program, directory).arguments(arguments.to_vec()).env(env)
            }
            (None, Some(listed)) => listed,
            (None, None) => {
                return Err(Failure::unusable("the listener has no `worker:`: write the program and its arguments"));
            }
        };
        program.env.extend(args.env.iter().cloned());
        Ok(Self { program, contract })
    }
}

/// The listener of that name, or the only worker.
fn find(config: &Config, name: Option<&Name>) -> Result<ListenerId, Failure> {
    let listeners = || config.blueprint.listeners().zip(&config.kinds);
    if let Some(name) = name {
        let found = listeners().find(|((_, listener), _)| listener.name == *name);
        return found.map(|((id, _), _)| id).ok_or_else(|| Failure::unusable(format!("there is no listener '{name}'")));
    }
    let mut workers = listeners().filter(|(_, kind)| matches!(kind, ListenerKind::Worker(_))).map(|((id, _), _)| id);
    match (workers.next(), workers.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(Failure::unusable("no listener has `worker:`: name one with --listener")),
        (Some(_), Some(_)) => Err(Failure::unusable("several listeners have `worker:`: name one with --listener")),
    }
}
