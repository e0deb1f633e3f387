//! Settings of a node: one of several processes that can run an organism.

use std::path::PathBuf;
use std::time::Duration;

use systole_core::vocab::Name;

/// A node of an organism, and its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClusterSettings {
    /// The name of the node; the program may say it.
    pub node: Option<Name>,
    /// The URL by which the other nodes reach its gateway; the program may say it.
    pub url: Option<String>,
    /// The time for which a node has the organism, unless it asks for more.
    pub lease: Duration,
    /// The file of certificates that are trusted beside those of the system, in PEM, for the gateways of the other nodes.
    pub ca_file: Option<PathBuf>,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        Self { node: None, url: None, lease: Duration::from_secs(10), ca_file: None }
    }
}

systole_core::vocab::setters!(ClusterSettings {
    node: Option<Name>,
    url: Option<String>,
    lease: Duration,
    ca_file: Option<PathBuf>,
});

/// Checks the URL of a node, `http://HOST:PORT` or `https://HOST:PORT`.
///
/// # Errors
/// The reason as the rest of a sentence about the URL.
pub fn check_node_url(url: &str) -> Result<(), String> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let host = rest.ok_or("begins with neither http:// nor https://")?;
    let host = host.strip_suffix('/').unwrap_or(host);
    if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c.is_control() || "/?#@\\".contains(c)) {
        return Err("names more than a host and its port, or no host".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_node_url;

    #[test]
    fn the_url_of_a_node_is_a_scheme_a_host_and_a_port() {
        for right in ["http://10.0.0.7:8420", "https://a.example", "https://[::1]:8420/"] {
            assert_eq!(check_node_url(right), Ok(()), "{right}");
        }
        for wrong in
            ["a.example:8420", "ftp://a.example", "http://", "http://a/b", "http://u@a", "http://a?b", "http://a b"]
        {
            assert!(check_node_url(wrong).is_err(), "{wrong}");
        }
    }
}
