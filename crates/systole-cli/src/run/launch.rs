//! The steps before the first message: the configuration, the keyboard, the listeners.

use std::fs::File;
use std::io::{self, BufReader, IsTerminal};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use systole::config::{
    Advice, Adviser, Config, ConfiguredOrganism, LaunchError, ListenerKind, Mistake, Survey, check_journal,
};
use systole::listeners::human::{self, Console};
use systole::runtime::Events;
use systole_core::core::{Contract, Party};
use systole_core::protocol::boot_qname;
use tracing::Level;

use super::input::{self, Input, Source};
use super::once::Once;
use super::watch::Watch;
use super::{CLIENT, Run, missing_parties};
use crate::descriptor::Patient;
use crate::failure::Failure;
use crate::log;
use crate::screen::{PeopleTerminal, Screen, Style};
use crate::second_opinion;

/// A running organism, and its ends.
pub(super) struct Launched {
    pub(super) running: ConfiguredOrganism,
    /// True if the organism has a journal.
    pub(super) durable: bool,
    /// The time for work in flight when it ends, if its file says so.
    pub(super) drain: Option<Duration>,
    /// The events of the organism; none if nothing shows them.
    pub(super) events: Option<Events>,
}

/// State that stays while an organism ends and starts again.
pub(super) struct Stage {
    pub(super) screen: Arc<Screen>,
    /// Messages from standard input, once an organism runs.
    pub(super) input: Option<Input>,
    pub(super) console: Console,
    sources: Vec<Source>,
    /// Configuration of the next start; without one, that reads the file again.
    config: Option<Config>,
    /// The files of the organism, if they are watched.
    pub(super) watch: Option<Watch>,
}

impl Stage {
    /// Prepares everything that needs no organism.
    pub(super) fn set(args: &Run) -> Result<Self, Failure> {
        Self::of(args, Self::survey(args)?)
    }

    /// Reads the file of the organism.
    pub(super) fn survey(args: &Run) -> Result<(Config, Vec<PathBuf>), Failure> {
        // A second opinion takes as long as the rest of a start: only where schemas are being written is it worth that.
        let advise: Adviser<'_> = if args.watch { &second_opinion::ask } else { &|_| Advice::Unasked };
        let Survey { config, files } = Config::survey(&args.organism, advise);
        Ok((config.map_err(Failure::Config)?, files))
    }

    /// Prepares everything that needs no organism, for one whose file was read.
    pub(super) fn of(args: &Run, (config, files): (Config, Vec<PathBuf>)) -> Result<Self, Failure> {
        let people = has_people(&config);
        let watch = args.watch.then(|| Watch::new(&args.organism, &args.files, people, files));
        let Inputs { sources, keyboard } = Inputs::new(args, &config, people)?;
        let terminal = if people { keyboard.terminal() } else { PeopleTerminal::None };
        let screen = Screen::standard(style(args, people), terminal).ending(if args.print0 { 0 } else { b'\n' });
        let screen = Arc::new(if args.quiet { screen.without_events() } else { screen });
        log::start(&screen, if args.quiet { Level::WARN } else { Level::INFO });
        let console = keyboard.start(&screen).map_err(Failure::System)?;
        Ok(Self { screen, input: None, console, sources, config: Some(config), watch })
    }

    /// Sets a changed configuration for the next start. Files of messages are read again; standard input goes on.
    pub(super) fn reread(&mut self, args: &Run, config: Config) -> Result<(), Failure> {
        self.config = Some(config);
        if !args.files.iter().any(|file| file == Path::new("-")) {
            self.sources = args.files.iter().map(|file| Source::open(file)).collect::<Result<_, _>>()?;
        }
        Ok(())
    }

    /// The configuration of the next start.
    #[cfg(feature = "gateway")]
    pub(super) fn next_config(&self) -> Option<&Config> {
        self.config.as_ref()
    }

    /// Starts an organism; messages are read once one runs.
    pub(super) fn launch(&mut self, args: &Run) -> Result<Launched, Failure> {
        self.launch_as(args, |config| config)
    }

    /// Starts an organism by a configuration that `place` completes.
    pub(super) fn launch_as(&mut self, args: &Run, place: impl FnOnce(Config) -> Config) -> Result<Launched, Failure> {
        let config = match self.config.take() {
            Some(config) => config,
            None => Config::load(&args.organism).map_err(Failure::Config)?,
        };
        let config = place(config);
        if args.open && !config.gateway.as_ref().is_some_and(|gateway| gateway.console) {
            return Err(Failure::unusable(
                "--open needs a console: write gateway: { console: true } in the organism.yaml",
            ));
        }
        if let Some(journal) = &config.journal {
            // Before any file is made beside it.
            check_journal(journal)
                .map_err(|why| Failure::unusable(format!("the journal can't be opened: {journal}: {why}")))?;
            missing_parties::refuse(&**journal, &config.blueprint, args)?;
        }
        let journal = config.journal.clone().filter(|_| self.sources.iter().any(Source::is_stable));
        // The organism itself logs its other problems when it starts.
        let warnings = config.warnings.iter().filter(|finding| !matches!(finding.mistake(), Mistake::Organism(_)));
        warnings.for_each(|finding| tracing::warn!("{finding}"));
        let limits = config.blueprint.limits.xml.clone();
        let (durable, drain) = (config.journal.is_some(), config.drain);
        let unusable = |error: LaunchError| Failure::unusable(error.to_string());
        let mut builder = config.into_builder(Some(&self.console)).map_err(unusable)?;
        builder.organism = builder.organism.log_levels(crate::log::set);
        if let Some(shards) = args.shards {
            builder.organism = builder.organism.shards(shards);
        }
        let is_read = !args.quiet || args.tells_refusals || self.screen.has_desk();
        let events = is_read.then(|| builder.organism.events());
        let running = builder.start(&[CLIENT]).map_err(unusable)?;
        running.reload_from(&args.organism);
        if let Some(link) = running.console_link().filter(|_| args.open) {
            self.screen.note(&format!("the console: {link}"));
        }
        if !self.sources.is_empty() {
            // Read while no other run can send a message of them.
            let once = journal.map(|journal| Once::load(&*journal, args.sends_again())).transpose()?;
            let input = input::read(std::mem::take(&mut self.sources), limits, once);
            self.input = Some(input.map_err(Failure::System)?);
        }
        Ok(Launched { running, durable, drain, events })
    }
}

/// Returns whether people at the terminal are listeners: those that operators answer for, and prompts.
pub(super) fn has_people(config: &Config) -> bool {
    let boots = |contract: &Contract| contract.accepts.contains(&boot_qname());
    config.blueprint.listeners().zip(&config.kinds).any(|((_, contract), kind)| match kind {
        ListenerKind::Human(human) => human.to.operators || boots(contract),
        _ => false,
    })
}

fn style(args: &Run, people: bool) -> Style {
    match (args.json, people || args.quiet) {
        (true, _) => Style::Json,
        // A redrawn tree would tear apart the line that a person types.
        (false, false) if io::stderr().is_terminal() => Style::Tree,
        (false, _) => Style::Lines,
    }
}

/// Sources of envelopes, and the keyboard of people.
struct Inputs {
    sources: Vec<Source>,
    keyboard: Keyboard,
}

enum Keyboard {
    Standard,
    Terminal(File),
}

impl Inputs {
    /// Chooses them: standard input is the keyboard, unless `-` is named as a file; without people it is the source of
    /// envelopes by default. People beside envelopes on standard input need a terminal of their own.
    fn new(args: &Run, config: &Config, people: bool) -> Result<Self, Failure> {
        let speaks = matches!(config.blueprint.party(CLIENT), Some(Party::Client(_)));
        if !speaks && (!args.files.is_empty() || args.message.is_some()) {
            return Err(Failure::unusable(format!(
                "there is no client '{CLIENT}': add clients: [{{ name: {CLIENT}, calls: [\"{{namespace}}local\"] }}] to {}",
                args.organism.display()
            )));
        }
        let sources = match (&args.message, args.files.as_slice()) {
            (Some(message), _) => vec![Source::given(message.clone())],
            (None, []) if speaks && !people => vec![Source::open(Path::new("-"))?],
            (None, files) => files.iter().map(|file| Source::open(file)).collect::<Result<_, _>>()?,
        };
        let taken = args.files.iter().any(|file| file == Path::new("-"));
        let keyboard = if people && taken {
            Keyboard::Terminal(File::open(TERMINAL).map_err(|cause| no_terminal(config, &cause))?)
        } else {
            Keyboard::Standard
        };
        Ok(Self { sources, keyboard })
    }
}

const TERMINAL: &str = "/dev/tty";

fn no_terminal(config: &Config, cause: &io::Error) -> Failure {
    let people =
        config.blueprint.listeners().zip(&config.kinds).filter(|(_, kind)| matches!(kind, ListenerKind::Human(_)));
    let people: Vec<String> = people.map(|((_, contract), _)| format!("'{}'", contract.name)).collect();
    Failure::unusable(format!(
        "{} (human: true) needs a terminal, because standard input (-) holds messages, and there is no terminal \
         ({TERMINAL}: {cause}): write the messages into a file and name that instead of -",
        people.join(" and ")
    ))
}

impl Keyboard {
    /// The terminal where people type, which also shows their questions, wherever standard error goes.
    fn terminal(&self) -> PeopleTerminal {
        let path = match self {
            Self::Standard if io::stdin().is_terminal() => "/dev/fd/0",
            Self::Standard => return PeopleTerminal::None,
            Self::Terminal(_) => TERMINAL,
        };
        if io::stderr().is_terminal() {
            return PeopleTerminal::Standard;
        }
        // The terminal must not become the one that controls this process.
        match rustix::fs::open(path, OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()) {
            Ok(terminal) => PeopleTerminal::Terminal(File::from(terminal)),
            Err(_) => PeopleTerminal::None,
        }
    }

    /// Makes the console, which reads the keyboard as soon as a person listens.
    fn start(self, screen: &Arc<Screen>) -> io::Result<Console> {
        let keyboard = match self {
            Self::Standard if io::stdin().is_terminal() => {
                let terminal = io::stdin().as_fd().try_clone_to_owned()?;
                human::Keyboard::terminal(BufReader::new(Patient(io::stdin())), terminal)
            }
            Self::Standard => human::Keyboard::lines(BufReader::new(Patient(io::stdin()))),
            Self::Terminal(file) => {
                let terminal = file.as_fd().try_clone_to_owned()?;
                human::Keyboard::terminal(BufReader::new(Patient(file)), terminal)
            }
        };
        let screen = screen.clone();
        Ok(Console::new(keyboard, Arc::new(move |text: &str| screen.converse(text))))
    }
}
