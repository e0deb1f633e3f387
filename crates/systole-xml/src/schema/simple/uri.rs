//! Syntax of `anyURI` (part 2, section 3.2.17): a URI reference of RFC 2396 as amended by RFC 2732, after escaping of
//! the characters that a URI can't contain (XLink 1.0, section 5.4).

pub(super) fn is_uri(text: &str) -> bool {
    let (uri, fragment) = text.split_once('#').unwrap_or((text, ""));
    let rest = match uri.find([':', '/', '?']).and_then(|end| uri[end..].strip_prefix(':').map(|rest| (end, rest))) {
        // Without a scheme, the first segment of a path contains no colon.
        Some((end, rest)) if is_scheme(&uri[..end]) && !rest.is_empty() => rest,
        Some(_) => return false,
        None => uri,
    };
    let path = match rest.strip_prefix("//") {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
            if !is_authority(authority) {
                return false;
            }
            path
        }
        None => rest,
    };
    // RFC 2732 adds brackets to the reserved characters, which stand in queries, fragments and behind the first character of an
    // opaque part, but in no path.
    let (path, query) = match rest.starts_with('/') || rest.len() == uri.len() {
        true => path.split_once('?').unwrap_or((path, "")),
        false => path.split_at(path.chars().next().map_or(0, char::len_utf8)),
    };
    is_escaped(path, false) && is_escaped(query, true) && is_escaped(fragment, true)
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

/// Checks an authority; brackets may only enclose an IPv6 address.
fn is_authority(text: &str) -> bool {
    let (user, host) = text.rsplit_once('@').unwrap_or(("", text));
    let Some(host) = host.strip_prefix('[') else { return is_escaped(text, false) };
    let Some((address, port)) = host.split_once(']') else { return false };
    let port = port.strip_prefix(':').unwrap_or(port);
    is_escaped(user, false)
        && !address.is_empty()
        && address.bytes().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.'))
        && port.bytes().all(|byte| byte.is_ascii_digit())
}

/// Reports whether all characters are those of a URI or can be escaped; a percent sign must start an escape. Brackets may be
/// allowed.
fn is_escaped(text: &str, brackets: bool) -> bool {
    let mut parts = text.split('%');
    let plain = |part: &str| !part.contains('#') && (brackets || !part.contains(['[', ']']));
    let escape = |part: &str| part.len() >= 2 && part.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    parts.next().is_none_or(plain) && parts.all(|part| escape(part) && plain(part))
}

#[cfg(test)]
mod tests {
    use super::is_uri;

    #[test]
    fn brackets_stand_in_queries_fragments_and_opaque_parts_alone() {
        for text in [
            "#xpointer(//*[@id='fra'])",
            "#a[1]",
            "?a[b]=c",
            "https://x.example/list?filter[name]=tea",
            "urn:a[1]",
            "a/b?c[d]#e[f]",
            "http://[::1]/a?b[]",
            "mailto:a@[1.2.3.4]",
        ] {
            assert!(is_uri(text), "{text}");
        }
        for text in
            ["[a]", "a[1]", "a/b[1]", "http://x.example/a[1]", "http://x[1].example/", "urn:[a]", "http://a/b?c[d]#e#f"]
        {
            assert!(!is_uri(text), "{text}");
        }
    }
}
