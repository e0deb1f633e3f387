//! The files of each template, which stand in `crates/systole-cli/templates`.

/// The name of the organism in the files.
const PLACEHOLDER: &str = "NAME";

/// A file: its path in the folder, and its text.
pub(super) type File = (&'static str, String);

#[derive(Debug, Clone, Copy)]
pub(super) enum Template {
    Hello,
    Worker,
    Json,
    #[cfg(feature = "gateway")]
    Model,
    Rust,
    #[cfg(feature = "gateway")]
    Remote,
    #[cfg(feature = "mcp")]
    Mcp,
}

/// Includes files of a template.
macro_rules! files {
    ($kind:literal: $($path:literal),*) => {
        &[$(($path, include_str!(concat!("../../templates/", $kind, "/", $path)))),*]
    };
}

const HELLO: &[(&str, &str)] =
    files!("hello": "README.md", "organism.yaml", "schema.xsd", "greeter.py", "task.xml", "answer.xml", "test.sh");

const WORKER: &[(&str, &str)] = files!(
    "worker": "README.md", ".gitignore", "organism.yaml", "schema.xsd", "agent.py", "task.xml", "answer.xml", "test.sh"
);

const JSON: &[(&str, &str)] = files!(
    "json": "README.md", ".gitignore", "organism.yaml", "payloads.schema.json", "agent.py", "task.json", "answer.json",
    "test.sh"
);

/// The package of `sdk/python`, word by word.
const PACKAGE: &[(&str, &str)] = files!(
    "worker": "systole_sdk/__init__.py", "systole_sdk/__main__.py", "systole_sdk/_json.py", "systole_sdk/_listeners.py",
    "systole_sdk/_process.py", "systole_sdk/_schema.py", "systole_sdk/_xml.py", "systole_sdk/py.typed"
);

#[cfg(feature = "gateway")]
const MODEL: &[(&str, &str)] = files!(
    "model": "README.md", "organism.yaml", "planner.md", "script.yaml", "schema.xsd", "atlas.py", "task.xml", "answer.xml",
    "test.sh"
);

const RUST: &[(&str, &str)] = files!("rust": "README.md", ".gitignore", "src/main.rs", "task.xml", "answer.xml");

/// Under another name there: cargo leaves a folder with a `Cargo.toml` out of the crate around it.
const MANIFEST: (&str, &str) = ("Cargo.toml", include_str!("../../templates/rust/manifest.toml"));

#[cfg(feature = "gateway")]
const REMOTE: &[(&str, &str)] = files!(
    "remote": "README.md", ".gitignore", "organism.yaml", "schema.xsd", "agent.py", "task.xml", "answer.xml", "test.sh"
);

#[cfg(feature = "mcp")]
const MCP: &[(&str, &str)] = files!(
    "mcp": "README.md", ".gitignore", "organism.yaml", "schema.xsd", "desk.py", "server.py", "stock.mcp.xsd",
    "stock.mcp.json", "host.py", "task.xml", "answer.xml", "test.sh"
);

impl Template {
    /// The files, for an organism of that name.
    pub(super) fn files(self, name: &str) -> Vec<File> {
        let files = match self {
            Self::Hello => HELLO,
            Self::Worker => WORKER,
            Self::Json => JSON,
            #[cfg(feature = "gateway")]
            Self::Model => MODEL,
            Self::Rust => RUST,
            #[cfg(feature = "gateway")]
            Self::Remote => REMOTE,
            #[cfg(feature = "mcp")]
            Self::Mcp => MCP,
        };
        let manifest = matches!(self, Self::Rust).then_some(MANIFEST);
        let named = files.iter().copied().chain(manifest).map(|(path, text)| (path, text.replace(PLACEHOLDER, name)));
        // As it is, whatever stands in it.
        let package = if self.has_package() { PACKAGE } else { &[] };
        named.chain(package.iter().map(|(path, text)| (*path, (*text).to_owned()))).collect()
    }

    /// Returns whether the package of `sdk/python` is among its files.
    fn has_package(self) -> bool {
        match self {
            Self::Worker | Self::Json => true,
            #[cfg(feature = "mcp")]
            Self::Mcp => true,
            _ => false,
        }
    }
}

/// The commands of the README, as they stand there.
pub(super) fn commands(files: &[File]) -> String {
    let readme = files.iter().find(|(path, _)| *path == "README.md").map_or("", |(_, text)| text);
    let commands: Vec<&str> = readme.lines().filter(|line| line.starts_with("    ")).collect();
    commands.join("\n")
}
