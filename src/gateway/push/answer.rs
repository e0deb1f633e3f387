//! Verdict on a message by the end of its delivery.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use systole_core::mailbox::Settlement;

use crate::outbound::{Cause, DeliveryOutcome, Said, Undelivered};

/// Consequence of the end of a delivery for its message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The message ends.
    End(Settlement),
    /// The listener has the message, and will answer later.
    Awaits,
}

/// Judges the end of a delivery; `read` extracts the reply from a body.
pub(super) fn judge(outcome: DeliveryOutcome, read: impl FnOnce(Bytes) -> Result<Option<Bytes>, String>) -> Verdict {
    match outcome {
        Ok(answer) => match answer.said() {
            Said::Reply(body) => Verdict::End(match read(body) {
                Ok(Some(reply)) => Settlement::Reply(reply),
                Ok(None) => Settlement::Silent,
                Err(why) => Settlement::Fail(refused(&why).into()),
            }),
            Said::Nothing => Verdict::End(Settlement::Silent),
            Said::Later => Verdict::Awaits,
        },
        Err(undelivered) => Verdict::End(Settlement::Fail(told(&undelivered).into())),
    }
}

/// Text for the caller of a listener whose answer is refused.
pub(super) fn refused(why: &str) -> String {
    without_addresses(&format!("the listener's answer: {why}"))
}

/// Text for the caller. The address of the listener and the network's error are for the operator alone: the log has
/// them (`a delivery was given up`).
fn told(undelivered: &Undelivered) -> String {
    let Undelivered { target, cause, message, attempts, limit, elapsed, .. } = undelivered;
    let why = match cause {
        // The words of the listener, or a description of its answer.
        Cause::Rejected | Cause::PeerError | Cause::Unparsable | Cause::AnswerTooLarge => without_addresses(message),
        Cause::AttemptsExhausted => "all attempts failed".to_owned(),
        Cause::TotalBudgetExhausted => "all attempts failed, and the time for them is over".to_owned(),
        Cause::CircuitOpen => "earlier attempts failed, and its circuit is open for a while".to_owned(),
        Cause::AddressRefused => "its address is not allowed".to_owned(),
        Cause::NoSecret => "there is no secret to sign with".to_owned(),
        Cause::Bug => "the request could not be made".to_owned(),
    };
    format!("not delivered to {target}: {cause} after {attempts}/{limit} attempts in {elapsed:.1?}: {why}")
}

/// A text in which IP addresses, with or without a port, are left out.
fn without_addresses(text: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, ':' | '.' | '[' | ']' | '_');
    let mut shown = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (run, behind) = rest.split_at(rest.find(|c| !is_part(c)).unwrap_or(rest.len()));
        // The end of a sentence, or of a name before a text.
        let bare = run.trim_end_matches([':', '.']);
        // A name may stand before an IPv4 address.
        let starts = std::iter::once(0).chain(bare.match_indices(':').map(|(at, _)| at + 1));
        let mut found = starts.filter(|at| names_address(&bare[*at..]) && (*at == 0 || bare[*at..].contains('.')));
        match found.next() {
            Some(at) => shown.extend([&run[..at], "(address)", &run[bare.len()..]]),
            None if names_address(run) => shown += "(address)",
            None => shown += run,
        }
        let next = behind.chars().next().map_or(0, char::len_utf8);
        shown += &behind[..next];
        rest = &behind[next..];
    }
    shown
}

fn names_address(text: &str) -> bool {
    let bracketed = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let address = bracketed.unwrap_or(text).parse::<IpAddr>();
    // `::` stands in many texts.
    address.is_ok_and(|address| text.len() > 2 || address.is_ipv4()) || text.parse::<SocketAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use systole_core::vocab::MessageId;

    use super::*;
    use crate::outbound::{DeliveryAnswer, Taken};

    fn judge(outcome: DeliveryOutcome) -> Verdict {
        super::judge(outcome, |body| Ok(Some(body)))
    }

    fn answer(status: u16, taken: Taken, body: &'static str) -> DeliveryOutcome {
        Ok(DeliveryAnswer { taken, status, content_type: None, body: body.into() })
    }

    #[test]
    fn each_end_of_a_delivery_is_one_of_its_message() {
        let reply = |body: &'static str| Verdict::End(Settlement::Reply(body.into()));
        assert_eq!(judge(answer(200, Taken::Answered, "<a/>")), reply("<a/>"));
        assert_eq!(judge(answer(204, Taken::Answered, "")), Verdict::End(Settlement::Silent));
        assert_eq!(judge(answer(200, Taken::Answered, " \r\n")), Verdict::End(Settlement::Silent));
        assert_eq!(judge(answer(202, Taken::Queued, "")), Verdict::Awaits);
        assert_eq!(judge(answer(202, Taken::Queued, "later")), Verdict::Awaits);
    }

    fn undelivered(cause: Cause, message: &str) -> Undelivered {
        Undelivered {
            id: MessageId::from_uuid(uuid::Uuid::from_u128(7)),
            target: "worker".parse().unwrap(),
            url: "https://hooks.example/T0/secret".into(),
            cause,
            message: message.into(),
            attempts: 1,
            limit: 5,
            elapsed: Duration::from_millis(100),
        }
    }

    #[test]
    fn a_failure_says_what_and_why_but_not_where() {
        let told = "not delivered to worker: rejected after 1/5 attempts in 100.0ms: the peer answered 500";
        let said = undelivered(Cause::Rejected, "the peer answered 500");
        assert_eq!(judge(Err(said)), Verdict::End(Settlement::Fail(told.into())));
    }

    #[test]
    fn whatever_a_delivery_fails_of_its_caller_hears_of_no_address() {
        let addresses = ["10.1.2.3", "10.1.2.3:8080", "[fd00::7]:80", "fd00::7", "::ffff:10.1.2.3", "[::1]"];
        for cause in Cause::ALL {
            for address in addresses {
                for message in [
                    format!("{address} is private"),
                    format!("tcp connect to {address}: refused"),
                    format!("at {address}."),
                ] {
                    let told = told(&undelivered(cause, &message));
                    assert!(!told.contains(address) && !told.contains("hooks.example"), "{told}");
                    assert!(!told.contains("10.1.2.3") && !told.contains("fd00"), "{told}");
                }
            }
        }
        let said = "the peer answered 500: 3.5 of sqlx::Error at 12:30, dead beef: see 1.2.3";
        assert_eq!(without_addresses(said), said);
        assert_eq!(without_addresses("at 10.0.0.1: no."), "at (address): no.");
        assert_eq!(without_addresses("host:10.0.0.1:80 http://10.0.0.1:80/x"), "host:(address) http://(address)/x");
    }
}
