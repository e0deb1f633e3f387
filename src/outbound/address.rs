//! Refused addresses: those to which a name from outside must not lead (CWE-918).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// The addresses that may be sent to: all public ones, and those that are allowed by name.
///
/// The guard checks the address that is connected to, after the name was resolved; so a name that resolves to another
/// address each time can't get around it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Guard {
    allowed: Vec<IpNet>,
}

/// An address that is not allowed.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{address} is {what}: nothing is sent there unless its network is allowed")]
pub(crate) struct AddressRefused {
    /// The address.
    pub(crate) address: IpAddr,
    /// The purpose of the address, by the registry.
    pub(crate) what: &'static str,
}

systole_core::vocab::debug_is_display!(AddressRefused);

impl Guard {
    /// Allows public addresses only.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Allows public addresses, and those of private networks: loopback, private, shared and unique-local ones.
    /// Link-local ones are not among them: there clouds keep the secrets of their machines.
    pub(crate) fn private() -> Self {
        let v4 = [
            (Ipv4Addr::LOCALHOST, 8),
            (Ipv4Addr::new(10, 0, 0, 0), 8),
            (Ipv4Addr::new(172, 16, 0, 0), 12),
            (Ipv4Addr::new(192, 168, 0, 0), 16),
            (Ipv4Addr::new(100, 64, 0, 0), 10),
        ];
        let v6 = [(Ipv6Addr::LOCALHOST, 128), (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7)];
        let v4 = v4.map(|(address, bits)| IpNet::new_assert(address.into(), bits));
        let v6 = v6.map(|(address, bits)| IpNet::new_assert(address.into(), bits));
        Self { allowed: v4.into_iter().chain(v6).collect() }
    }

    /// Allows a network, such as `10.1.0.0/16`, of any purpose. IPv4-mapped addresses are allowed in IPv6 only:
    /// `::ffff:10.1.0.0/112`.
    #[cfg(test)]
    pub(crate) fn allow(mut self, network: IpNet) -> Self {
        self.allowed.push(network);
        self
    }

    /// Judges an address.
    ///
    /// # Errors
    /// [`AddressRefused`] says what the address is for.
    pub(crate) fn check(&self, address: IpAddr) -> Result<(), AddressRefused> {
        let what = match address {
            IpAddr::V4(v4) => what_v4(v4),
            IpAddr::V6(v6) => what_v6(v6),
        };
        match what {
            Some(what) if !self.allowed.iter().any(|network| network.contains(&address)) => {
                Err(AddressRefused { address, what })
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// The special purpose of an address, by the registry of RFC 6890 as IANA keeps it; `None` if it is reachable globally.
fn what_v4(address: Ipv4Addr) -> Option<&'static str> {
    Some(match address.octets() {
        [0, ..] => "unspecified",
        [127, ..] => "loopback",
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => "private",
        [169, 254, ..] => "link-local",
        [100, 64..=127, ..] => "shared by customers of a provider",
        [192, 0, 0, _] | [192, 88, 99, _] => "for protocols",
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => "for documentation",
        [198, 18..=19, ..] => "for benchmarks",
        [224..=239, ..] => "multicast",
        [255, 255, 255, 255] => "broadcast",
        [240..=255, ..] => "reserved",
        _ => return None,
    })
}

fn what_v6(address: Ipv6Addr) -> Option<&'static str> {
    Some(match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => "unspecified",
        [0, 0, 0, 0, 0, 0, 0, 1] => "loopback",
        [0, 0, 0, 0, 0, 0xffff, ..] => "an IPv4-mapped address",
        [0, 0, 0, 0, ..] => "an IPv4 address in IPv6",
        [0x64, 0xff9b, ..] => "translated to IPv4",
        [0x100, ..] => "discarded",
        [0x2001, 0..=0x1ff, ..] => "for protocols",
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => "for documentation",
        [0x2002, ..] => "tunnelled to IPv4",
        [0x5f00, ..] => "for segment routing",
        [0xfc00..=0xfdff, ..] => "unique-local",
        [0xfe80..=0xfebf, ..] => "link-local",
        [0xfec0..=0xfeff, ..] => "site-local",
        [0xff00..=0xffff, ..] => "multicast",
        // Any other reachable address is in 2000::/3.
        [0x2000..=0x3fff, ..] => return None,
        _ => "reserved",
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn what(address: &str) -> Option<&'static str> {
        Guard::new().check(address.parse().unwrap()).err().map(|refused| refused.what)
    }

    #[test]
    fn public_addresses_are_free() {
        for address in [
            "1.1.1.1",
            "93.184.216.34",
            "172.15.255.255",
            "172.32.0.1",
            "100.63.0.1",
            "192.169.0.1",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450:4001::1",
            "2001:4860:4860::8888",
        ] {
            assert_eq!(what(address), None, "{address}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for (address, expected) in [
            ("0.0.0.0", "unspecified"),
            ("0.1.2.3", "unspecified"),
            ("127.0.0.1", "loopback"),
            ("127.255.255.254", "loopback"),
            ("10.0.0.1", "private"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.168.1.1", "private"),
            ("169.254.169.254", "link-local"),
            ("100.100.100.200", "shared by customers of a provider"),
            ("192.0.0.192", "for protocols"),
            ("198.19.0.1", "for benchmarks"),
            ("224.0.0.1", "multicast"),
            ("239.255.255.250", "multicast"),
            ("240.0.0.1", "reserved"),
            ("255.255.255.255", "broadcast"),
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("::7f00:1", "an IPv4 address in IPv6"),
            ("::ffff:127.0.0.1", "an IPv4-mapped address"),
            ("::ffff:1.1.1.1", "an IPv4-mapped address"),
            ("::ffff:0:7f00:1", "an IPv4 address in IPv6"),
            ("64:ff9b::7f00:1", "translated to IPv4"),
            ("64:ff9b:1::a00:1", "translated to IPv4"),
            ("2002:7f00:1::", "tunnelled to IPv4"),
            ("2001::7f00:1", "for protocols"),
            ("2001:db8::1", "for documentation"),
            ("fc00::1", "unique-local"),
            ("fd00:ec2::254", "unique-local"),
            ("fe80::1", "link-local"),
            ("febf::1", "link-local"),
            ("fec0::1", "site-local"),
            ("ff02::1", "multicast"),
            ("4000::1", "reserved"),
        ] {
            assert_eq!(what(address), Some(expected), "{address}");
        }
    }

    #[test]
    fn what_is_allowed_is_allowed_in_its_own_family_only() {
        let guard = Guard::new().allow("127.0.0.0/8".parse().unwrap());
        guard.check("127.0.0.1".parse().unwrap()).unwrap();
        guard.check("::1".parse().unwrap()).unwrap_err();
        guard.check("::ffff:127.0.0.1".parse().unwrap()).unwrap_err();
        guard.check("10.0.0.1".parse().unwrap()).unwrap_err();
    }

    #[test]
    fn private_addresses_are_not_all_that_are_not_public() {
        let guard = Guard::private();
        let judge = |address: &str| guard.check(address.parse().unwrap()).is_ok();
        for address in ["127.0.0.1", "10.0.0.1", "172.31.255.255", "192.168.1.1", "100.100.100.200", "::1", "fd00::1"] {
            assert!(judge(address), "{address}");
        }
        for address in ["169.254.169.254", "fe80::1", "0.0.0.0", "::", "::ffff:127.0.0.1", "224.0.0.1", "172.32.0.0"] {
            assert_eq!(judge(address), what(address).is_none(), "{address}");
        }
    }

    proptest! {
        /// Addresses that are special for the standard library are special here, too.
        #[test]
        fn the_standard_library_agrees(v4: [u8; 4], v6: [u16; 8]) {
            let address = Ipv4Addr::from(v4);
            let special = address.is_private() || address.is_loopback() || address.is_link_local()
                || address.is_multicast() || address.is_unspecified() || address.is_broadcast()
                || address.is_documentation();
            prop_assert!(!special || what_v4(address).is_some(), "{address}");
            let address = Ipv6Addr::from(v6);
            let special = address.is_unique_local() || address.is_unicast_link_local() || address.is_multicast();
            prop_assert!(!special || what_v6(address).is_some(), "{address}");
        }
    }
}
