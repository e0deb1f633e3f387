//! Signatures of pushed messages, so that a receiver knows their sender and their time.
//!
//! `Systole-Signature: t=<unix seconds>,v1=<hex>`, where the hexadecimal digits are HMAC-SHA256 (RFC 2104, FIPS 180-4)
//! of `<t>.<body>` with the secret that both sides have. The time is signed too: a later replay is refused.

use std::fmt;
use std::time::Duration;

use ring::hmac;
use systole_core::vocab::Time;

/// The name of the header.
pub const HEADER: &str = "systole-signature";

/// Largest difference between the clocks of both sides plus the time of a delivery: 5 minutes.
pub const TOLERANCE: Duration = Duration::from_secs(300);

/// A secret that two sides share. It is never shown, and not written to the outbox.
#[derive(Clone)]
pub struct Secret(hmac::Key);

/// Reason why a signature is refused.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// The header is malformed.
    #[error("no signature: write t=SECONDS,v1=HEX")]
    Malformed,
    /// The time of the signature is too far from now.
    #[error("its time is {apart} s from now, at most {most} s are allowed: set the clocks of both sides")]
    Time {
        /// The difference, in seconds.
        apart: u64,
        /// The tolerance, in seconds.
        most: u64,
    },
    /// The signature has another secret or another body.
    #[error("it was not made with this secret for this body")]
    Mismatch,
}

systole_core::vocab::debug_is_display!(SignatureError);

impl Secret {
    /// Makes a secret of these bytes; 32 random ones are best.
    pub fn new(secret: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// Makes the value of the header for a body that is sent at a moment.
    pub fn sign(&self, at: Time, body: &[u8]) -> String {
        let seconds = seconds(at);
        let signed = [format!("{seconds}.").as_bytes(), body].concat();
        let hex: String = self.tag(&signed).iter().map(|byte| format!("{byte:02x}")).collect();
        format!("t={seconds},v1={hex}")
    }

    /// HMAC-SHA256 of bytes.
    pub(super) fn tag(&self, bytes: &[u8]) -> [u8; 32] {
        hmac::sign(&self.0, bytes).as_ref().try_into().expect("SHA-256 has 32 bytes")
    }

    /// Checks the value of the header for a body that came at a moment. One of several `v1` has to be right, so that
    /// secrets can be changed; parts of other names are ignored.
    ///
    /// # Errors
    /// [`SignatureError`] has the reason. Signatures are compared in constant time.
    pub fn verify(&self, header: &str, body: &[u8], now: Time, tolerance: Duration) -> Result<(), SignatureError> {
        let (at, tags) = in_time(header, now, tolerance)?;
        let signed = [format!("{at}.").as_bytes(), body].concat();
        match tags.iter().any(|tag| hmac::verify(&self.0, &signed, tag).is_ok()) {
            true => Ok(()),
            false => Err(SignatureError::Mismatch),
        }
    }
}

/// Checks a signature as far as that goes before the body is there: its format and its time.
pub(crate) fn check_time(header: &str, now: Time, tolerance: Duration) -> Result<(), SignatureError> {
    in_time(header, now, tolerance).map(drop)
}

fn in_time(header: &str, now: Time, tolerance: Duration) -> Result<(u64, Vec<[u8; 32]>), SignatureError> {
    let (at, tags) = parse(header).ok_or(SignatureError::Malformed)?;
    let apart = seconds(now).abs_diff(at);
    if apart > tolerance.as_secs() {
        return Err(SignatureError::Time { apart, most: tolerance.as_secs() });
    }
    Ok((at, tags))
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

pub(super) fn seconds(at: Time) -> u64 {
    at.as_nanos() / 1_000_000_000
}

/// Parses the time and the signatures of a header.
fn parse(header: &str) -> Option<(u64, Vec<[u8; 32]>)> {
    let mut at = None;
    let mut tags = Vec::new();
    for part in header.split(',') {
        match part.trim().split_once('=')? {
            ("t", digits) if at.is_none() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                at = Some(digits.parse().ok()?);
            }
            ("t", _) => return None,
            ("v1", hex) => tags.push(unhex(hex)?),
            _ => {}
        }
    }
    Some((at?, tags)).filter(|(_, tags)| !tags.is_empty())
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u8> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
    if digits.len() == 64 { bytes.try_into().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_nanos(1_700_000_000_000_000_000);

    #[test]
    fn it_is_what_others_compute() {
        // printf '1700000000.<a/>' | openssl dgst -sha256 -hmac hunter2
        let expected = "06e6d7cd39fc580277d88afabb32636f235158b5eeba9b74faf562160e160781";
        assert_eq!(Secret::new(b"hunter2").sign(NOW, b"<a/>"), format!("t=1700000000,v1={expected}"));
    }

    #[test]
    fn only_the_same_secret_body_and_time_verify() {
        let secret = Secret::new(b"hunter2");
        let header = secret.sign(NOW, b"<a/>");
        let check = |secret: &Secret, header: &str, body: &[u8], at: Time| secret.verify(header, body, at, TOLERANCE);
        assert_eq!(check(&secret, &header, b"<a/>", NOW), Ok(()));
        assert_eq!(check(&secret, &header, b"<a/>", NOW.after(TOLERANCE)), Ok(()));
        let late = NOW.after(TOLERANCE + Duration::from_secs(1));
        assert_eq!(check(&secret, &header, b"<a/>", late), Err(SignatureError::Time { apart: 301, most: 300 }));
        assert_eq!(check(&secret, &header, b"<b/>", NOW), Err(SignatureError::Mismatch));
        assert_eq!(check(&Secret::new(b"hunter3"), &header, b"<a/>", NOW), Err(SignatureError::Mismatch));
        let moved = header.replace("t=1700000000", "t=1700000001");
        assert_eq!(check(&secret, &moved, b"<a/>", NOW), Err(SignatureError::Mismatch));
        let two = format!("{header},v1={},v0=x", "0".repeat(64));
        assert_eq!(check(&secret, &two, b"<a/>", NOW), Ok(()));
    }

    #[test]
    fn what_is_no_signature_is_refused() {
        let secret = Secret::new(b"hunter2");
        let tag = secret.sign(NOW, b"").split_once("v1=").unwrap().1.to_owned();
        for bad in [
            "",
            "t=1700000000",
            &format!("v1={tag}"),
            &format!("t=,v1={tag}"),
            &format!("t=+1700000000,v1={tag}"),
            &format!("t=99999999999999999999,v1={tag}"),
            &format!("t=1700000000,t=1700000000,v1={tag}"),
            &format!("t=1700000000,v1={}", &tag[1..]),
            &format!("t=1700000000,v1={tag}0"),
            &format!("t=1700000000,v1={}é", &tag[2..]),
            &format!("t=1700000000,v1={tag},x"),
        ] {
            assert_eq!(secret.verify(bad, b"", NOW, TOLERANCE), Err(SignatureError::Malformed), "{bad}");
        }
    }

    #[test]
    fn it_is_never_shown() {
        assert_eq!(format!("{:?}", Secret::new(b"hunter2")), "Secret(..)");
    }
}
