//! Corrections of values of a wrong kind: the same value in the right form.

use super::document::Value;

/// Longest text that a help repeats, in bytes.
const SHOWN: usize = 60;

/// The first key of the file.
pub(super) const ROOT: &str = "organism";

/// Correction of a value in the place of a mapping whose first key is `lead`.
pub(super) fn mapping(value: &Value, lead: Option<&str>) -> String {
    match (value, lead) {
        (_, Some(ROOT)) => "write organism: { name: demo }, and listeners: below it".into(),
        (Value::Scalar(text), Some(lead)) if text.len() <= SHOWN => format!("write {{ {lead}: {} }}", quoted(text)),
        (Value::Nothing, _) => "indent its keys below it, or leave it out".into(),
        (Value::List(_), _) => "write its keys without '- ' and without [ ]".into(),
        _ => "write { key: value }, or key: value below it, indented".into(),
    }
}

/// Correction of a value in the place of a list.
pub(super) fn list(value: &Value) -> String {
    match value {
        Value::Scalar(text) if text.len() <= SHOWN => format!("write [{}]", quoted(text)),
        Value::Map(_) => "write '- ' before each entry".into(),
        _ => "write [one, two], or [] for none".into(),
    }
}

/// Correction of a value in the place of a command and its arguments.
pub(super) fn command(value: &Value) -> String {
    const SHELL: &[char] = &['|', '&', ';', '<', '>', '$', '`', '*', '?', '"', '\'', '\\', '(', '~'];
    match value {
        Value::Scalar(text) if text.len() > SHOWN => {
            "write the program and each argument: [python3, listener.py]".into()
        }
        Value::Scalar(text) if text.contains(SHELL) => format!("write [sh, -c, {}]", quoted(text)),
        Value::Scalar(text) => {
            format!("write [{}]", text.split_whitespace().map(quoted).collect::<Vec<_>>().join(", "))
        }
        _ => "write the program and its arguments: [python3, listener.py]".into(),
    }
}

/// Correction of a value in the place of a single value.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Map(_) => "write one value; a text with ': ' or with braces needs quotes".into(),
        Value::List(_) => "write one value, without [ ] and without '- '".into(),
        _ => "write a value behind the ':'".into(),
    }
}

/// A text as an entry of `[ ]`: in quotes where YAML needs them.
fn quoted(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_alphanumeric() || "./_".contains(c))
        && text.chars().all(|c| c.is_alphanumeric() || "./_-+=@ ".contains(c))
        && text.trim() == text;
    let is_flag =
        text.starts_with('-') && text.len() > 1 && text.chars().all(|c| c.is_alphanumeric() || "-=_.".contains(c));
    if is_plain || is_flag {
        text.to_owned()
    } else {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_is_repeated_in_the_right_form() {
        let scalar = |text: &str| Value::Scalar(text.to_owned());
        assert_eq!(command(&scalar("python3 -u shop.py")), "write [python3, -u, shop.py]");
        assert_eq!(command(&scalar("a | \"b\"")), r#"write [sh, -c, "a | \"b\""]"#);
        assert_eq!(list(&scalar("{urn:shop:v1}order")), "write [\"{urn:shop:v1}order\"]");
        assert_eq!(list(&scalar("shop.xsd")), "write [shop.xsd]");
        assert_eq!(mapping(&scalar("poll"), Some("mode")), "write { mode: poll }");
        assert_eq!(mapping(&scalar("127.0.0.1:8420"), Some("listen")), "write { listen: \"127.0.0.1:8420\" }");
        assert_eq!(mapping(&Value::Nothing, None), "indent its keys below it, or leave it out");
        assert_eq!(list(&Value::Map(Vec::new())), "write '- ' before each entry");
    }
}
