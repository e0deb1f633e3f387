use std::iter::Peekable;
use std::str::Chars;

/// A pattern of XSD in the language of the regex crate, anchored; `None` if it uses what that doesn't have,
/// such as blocks of Unicode.
pub(super) fn translate(pattern: &str) -> Option<String> {
    let mut out = String::from("^(?:");
    let mut chars = pattern.chars().peekable();
    // Depth of classes: they nest where one is taken away from another.
    let mut classes = 0usize;
    while let Some(c) = chars.next() {
        match c {
            '\\' => escape(&mut out, &mut chars, classes > 0)?,
            '[' => {
                // A class can begin with characters that mean something else further on.
                classes += 1;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                if chars.next_if_eq(&'-').is_some() {
                    out.push_str("\\-");
                }
            }
            ']' => {
                classes = classes.checked_sub(1)?;
                out.push(']');
            }
            '-' if classes > 0 && chars.peek() == Some(&'[') => out.push_str("--"),
            '&' | '~' if classes > 0 => out.extend(['\\', c]),
            '.' if classes == 0 => out.push_str("[^\\n\\r]"),
            '^' | '$' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out.push_str(")$");
    Some(out)
}

fn escape(out: &mut String, chars: &mut Peekable<Chars>, in_class: bool) -> Option<()> {
    const NAME_START: &str = "_:\\p{L}";
    const NAME: &str = "\\-._:\\p{L}\\p{Nd}";
    let c = chars.next()?;
    let class = match c {
        'i' => NAME_START,
        'c' => NAME,
        's' => " \\t\\n\\r",
        'I' | 'C' | 'S' | 'w' | 'W' if in_class => return None,
        'I' => return push(out, &format!("[^{NAME_START}]")),
        'C' => return push(out, &format!("[^{NAME}]")),
        'S' => return push(out, "[^ \\t\\n\\r]"),
        'w' => return push(out, "[^\\p{P}\\p{Z}\\p{C}]"),
        'W' => return push(out, "[\\p{P}\\p{Z}\\p{C}]"),
        'p' | 'P' => {
            let name: String = chars.by_ref().take_while(|&c| c != '}').skip(1).collect();
            return if name.starts_with("Is") { None } else { push(out, &format!("\\{c}{{{name}}}")) };
        }
        _ => {
            out.extend(['\\', c]);
            return Some(());
        }
    };
    if in_class { push(out, class) } else { push(out, &format!("[{class}]")) }
}

fn push(out: &mut String, text: &str) -> Option<()> {
    out.push_str(text);
    Some(())
}
