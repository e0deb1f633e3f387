//! What the end of a delivery means for its message.

use crate::mailbox::Settlement;
use crate::outbound::{Cause, Outcome, Said, Undelivered};

/// What becomes of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It ends.
    End(Settlement),
    /// Its listener has it, and will answer.
    Awaits,
    /// Nothing: whoever ended the delivery sees to the message.
    Leave,
}

/// Reads the end of a delivery.
pub(super) fn judge(outcome: Outcome) -> Verdict {
    match outcome {
        Ok(answer) => match answer.said() {
            // It is judged as any reply is, by the pump.
            Said::Reply(reply) => Verdict::End(Settlement::Reply(reply)),
            Said::Nothing => Verdict::End(Settlement::Silent),
            Said::Later => Verdict::Awaits,
        },
        Err(Undelivered { cause: Cause::Cancelled, .. }) => Verdict::Leave,
        Err(undelivered) => Verdict::End(Settlement::Fail(told(&undelivered).into())),
    }
}

/// What the caller is told: where the listener is, is none of its business.
fn told(undelivered: &Undelivered) -> String {
    let Undelivered { target, cause, message, attempts, limit, elapsed, .. } = undelivered;
    format!("not delivered to {target}: {cause} after {attempts}/{limit} attempts in {elapsed:.1?}: {message}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::outbound::{Answer, Taken};
    use crate::vocab::MessageId;

    fn answer(status: u16, taken: Taken, body: &'static str) -> Outcome {
        Ok(Answer { taken, status, content_type: None, body: body.into() })
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

    #[test]
    fn a_failure_says_what_and_why_but_not_where() {
        let undelivered = |cause| Undelivered {
            id: MessageId::from_uuid(uuid::Uuid::from_u128(7)),
            target: "worker".parse().unwrap(),
            url: "https://hooks.example/T0/secret".into(),
            cause,
            message: "the peer answered 500".into(),
            attempts: 1,
            limit: 5,
            elapsed: Duration::from_millis(100),
        };
        let told = "not delivered to worker: rejected after 1/5 attempts in 100.0ms: the peer answered 500";
        assert_eq!(judge(Err(undelivered(Cause::Rejected))), Verdict::End(Settlement::Fail(told.into())));
        assert_eq!(judge(Err(undelivered(Cause::Cancelled))), Verdict::Leave);
    }
}
