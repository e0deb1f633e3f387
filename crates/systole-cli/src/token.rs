//! `systole token`: the principals that may use the gateway of an organism.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use systole::config::{Config, ListenerKind};
use systole::gateway::PrincipalKind;
use systole::journal::{JournalError, PrincipalStore};
use systole::runtime::clock::Clock;
use systole::runtime::entropy::Entropy;
use systole_core::core::Party;
use systole_core::vocab::Name;

use super::failure::Failure;
use super::print;

/// The word for the caller of a conversation among `people:`.
const CALLER: &str = "caller";

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Make a token and print it once; it replaces an older token of that name
    New {
        /// A client, a remote listener or a person of the organism, or any name for an admin
        name: Name,
        /// The kind of the principal; by default as the organism declares it
        #[arg(long)]
        kind: Option<Chosen>,
        #[command(flatten)]
        of: Of,
    },
    /// Print the principals that have a token
    List {
        #[command(flatten)]
        of: Of,
    },
    /// Revoke a token
    Revoke {
        /// The principal
        name: Name,
        #[command(flatten)]
        of: Of,
    },
}

#[derive(Debug, Args)]
pub(super) struct Of {
    /// The organism.yaml
    #[arg(long, default_value = "organism.yaml")]
    organism: PathBuf,
}

/// [`PrincipalKind`], on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Chosen {
    Client,
    Listener,
    Person,
    Admin,
}

impl From<Chosen> for PrincipalKind {
    fn from(chosen: Chosen) -> Self {
        match chosen {
            Chosen::Client => Self::Client,
            Chosen::Listener => Self::Listener,
            Chosen::Person => Self::Person,
            Chosen::Admin => Self::Admin,
        }
    }
}

pub(super) fn run(action: &Action) -> Result<ExitCode, Failure> {
    match action {
        Action::New { name, kind, of } => {
            let (config, mut principals) = of.open()?;
            let kind = judge(&config, name, kind.map(PrincipalKind::from))?;
            let token = principals.admit(name.clone(), kind, Clock::real().now()).map_err(failure)?;
            print::line(token.reveal())?;
            print::note(format_args!("the token of {name} as {}, shown this once", kind.as_str()));
        }
        Action::List { of } => {
            let (_, principals) = of.open()?;
            for principal in principals.list().map_err(failure)? {
                let row = format!("{}\t{}\t{}\n", principal.name, principal.kind.as_str(), principal.created);
                print::document(row.as_bytes())?;
            }
        }
        Action::Revoke { name, of } => {
            let (_, mut principals) = of.open()?;
            if !principals.dismiss(name).map_err(failure)? {
                return Err(Failure::no(format!("{name} has no token")));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Of {
    fn open(&self) -> Result<(Config, Box<dyn PrincipalStore>), Failure> {
        let config = Config::load(&self.organism).map_err(Failure::Config)?;
        let (Some(_), Some(journal)) = (&config.gateway, &config.journal) else {
            let file = self.organism.display();
            return Err(Failure::unusable(format!("{file} has no gateway: add gateway: {{ listen: 127.0.0.1:8420 }}")));
        };
        if let Ok(reader) = journal.read() {
            reader.check_owner(&config.blueprint.organism).map_err(failure)?;
        }
        let principals = journal.admit(Entropy::Real.secret()).map_err(failure)?;
        Ok((config, principals))
    }
}

/// The kind that a name may have.
fn judge(config: &Config, name: &Name, wanted: Option<PrincipalKind>) -> Result<PrincipalKind, Failure> {
    if name.as_str() == CALLER {
        return Err(Failure::unusable(format!(
            "'{name}' is whoever calls, and answers with the token of its client: make one with `systole token new CLIENT`"
        )));
    }
    let is = match config.blueprint.party(name.as_str()) {
        Some(Party::Client(_)) if name.as_str() == super::run::CLIENT => {
            return Err(Failure::unusable(format!(
                "'{name}' is the client of the command line, which needs no token: name another client"
            )));
        }
        Some(Party::Client(_)) => Some(PrincipalKind::Client),
        Some(Party::Listener(id)) => match config.kinds.get(id.0 as usize) {
            Some(ListenerKind::Remote(_)) => Some(PrincipalKind::Listener),
            _ => return Err(Failure::unusable(format!("'{name}' runs within the organism: it needs no token"))),
        },
        None => {
            let humans = config.kinds.iter().filter_map(|kind| match kind {
                ListenerKind::Human(human) => Some(&human.to.people),
                _ => None,
            });
            humans.flatten().any(|person| person == name).then_some(PrincipalKind::Person)
        }
    };
    match (is, wanted) {
        (Some(is), None) => Ok(is),
        (Some(is), Some(wanted)) if is == wanted => Ok(is),
        (None, Some(PrincipalKind::Admin)) => Ok(PrincipalKind::Admin),
        (Some(is), Some(_)) => Err(Failure::unusable(format!("'{name}' is a {} of the organism", is.as_str()))),
        (None, _) => Err(Failure::unusable(format!(
            "the organism has neither a client nor a remote listener nor a person '{name}': declare it, or write --kind admin"
        ))),
    }
}

fn failure(error: JournalError) -> Failure {
    Failure::unusable(error.to_string())
}
