//! Code blocks of Markdown (CommonMark 0.31, section 4.5), as far as they matter around XML.

use super::template::names_thoughts;

/// A line that opens a fenced code block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fence {
    marker: u8,
    length: usize,
    /// Offset behind the info string: the end of the line, or a `<` on it.
    pub(super) end: usize,
    /// True if the info string names a language that isn't XML.
    pub(super) foreign: bool,
    /// True if the info string says that thoughts follow.
    pub(super) thoughts: bool,
}

/// Languages of blocks whose tags aren't meant as tags. Any other name may stand for XML.
const FOREIGN: &[&str] = &[
    "bash",
    "c",
    "c#",
    "c++",
    "cmd",
    "console",
    "cpp",
    "cs",
    "csharp",
    "css",
    "csv",
    "dart",
    "diff",
    "dockerfile",
    "elixir",
    "erlang",
    "fsharp",
    "go",
    "graphql",
    "groovy",
    "haskell",
    "hcl",
    "ini",
    "java",
    "javascript",
    "js",
    "json",
    "jsonc",
    "json5",
    "jsonl",
    "julia",
    "kotlin",
    "lua",
    "make",
    "makefile",
    "mermaid",
    "nix",
    "objc",
    "ocaml",
    "perl",
    "php",
    "powershell",
    "ps1",
    "py",
    "python",
    "python3",
    "r",
    "rb",
    "regex",
    "rs",
    "ruby",
    "rust",
    "scala",
    "sh",
    "shell",
    "sql",
    "swift",
    "toml",
    "ts",
    "typescript",
    "yaml",
    "yml",
    "zig",
    "zsh",
];

/// The fence that opens at `at`, which is the start of a line.
pub(super) fn open(text: &str, at: usize) -> Option<Fence> {
    let bytes = text.as_bytes();
    let start = at + bytes[at..].iter().position(|byte| !matches!(byte, b' ' | b'\t'))?;
    let marker = bytes[start];
    if !matches!(marker, b'`' | b'~') {
        return None;
    }
    let length = run(&bytes[start..]);
    if length < 3 {
        return None;
    }
    let info = start + length;
    let end = memchr::memchr2(b'\n', b'<', &bytes[info..]).map_or(bytes.len(), |length| info + length);
    let line = &text[info..end];
    if marker == b'`' && line.contains('`') {
        return None;
    }
    let language = line.split_ascii_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    let foreign = FOREIGN.contains(&language.as_str());
    Some(Fence { marker, length, end, foreign, thoughts: names_thoughts(&language) })
}

impl Fence {
    /// The end of the block: behind the line that closes it. `None` if nothing does.
    pub(super) fn block_end(&self, text: &str) -> Option<usize> {
        let mut at = self.end;
        for line in text[self.end..].split_inclusive('\n') {
            at += line.len();
            let line = line.trim_ascii().as_bytes();
            if line.len() >= self.length && line[0] == self.marker && run(line) == line.len() {
                return Some(at);
            }
        }
        None
    }
}

/// Returns whether a text is the fence that closes a block, and nothing else.
pub(super) fn is_closing(text: &str) -> bool {
    text.len() >= 3 && text.starts_with(['`', '~']) && run(text.as_bytes()) == text.len()
}

/// Returns whether a line of prose is a fence.
pub(super) fn is_line(line: &str) -> bool {
    line.starts_with("```") || line.starts_with("~~~")
}

/// Number of times that the first byte stands at the start.
pub(super) fn run(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|&byte| Some(byte) == bytes.first()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_are_told_from_other_lines() {
        for (text, expected) in [
            ("```\n<a/>", Some((3, false))),
            ("  ~~~~ XML title=x\n", Some((18, false))),
            ("```json\n", Some((7, true))),
            ("```JSON5", Some((8, true))),
            ("```xml<a/>```", Some((6, false))),
            ("``` a ```\n", None),
            ("``\n", None),
            ("a```", None),
            ("", None),
            ("  ", None),
        ] {
            assert_eq!(open(text, 0).map(|fence| (fence.end, fence.foreign)), expected, "{text}");
        }
    }

    #[test]
    fn blocks_end_at_a_fence_as_long_as_theirs() {
        for (text, end) in [
            ("```\nx\n```\ny", Some(10)),
            ("````\n```\n````", Some(13)),
            ("```\n~~~\n  ```` \ny", Some(16)),
            ("```\n``` x\n", None),
            ("```", None),
        ] {
            assert_eq!(open(text, 0).unwrap().block_end(text), end, "{text}");
        }
    }
}
