//! Failures that are retried, and those that are not.

use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine};
use systole_core::vocab::Time;

use super::peer::{Act, OK, Peer, Refusing};
use super::setup::{Sender, State, delivery, id, options, outcome, peer};
use crate::identity::KeyFile;
use crate::outbound::retry::Policy;
use crate::outbound::{Cause, DeliveryOptions, OutboundDelivery, Secret, Taken, signature};

#[tokio::test]
async fn what_breaks_on_its_way_is_tried_again() {
    for act in [
        Act::Close,
        Act::CloseAfterRequest,
        Act::Say("HTTP/1.1 200 OK\r\ncontent-le"),
        Act::Say("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n<b>"),
        Act::Say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\n<b/>\r\n"),
    ] {
        let mut peer = Peer::start([act, act, OK]).await;
        let answer =
            outcome(options(), delivery(7, &peer.url())).await.unwrap_or_else(|error| panic!("{act:?}: {error}"));
        assert_eq!((answer.taken, answer.status, &answer.body[..]), (Taken::Answered, 200, &b"<b/>"[..]));
        let requests = peer.rest();
        assert_eq!(requests.len(), if matches!(act, Act::Close) { 1 } else { 3 }, "{act:?}");
        for request in requests {
            assert_eq!(request.key(), id(7).to_string());
            assert_eq!(request.header("content-type"), Some("application/xml"));
            assert_eq!(request.body, b"<a n='7'/>");
            assert!(request.head.starts_with("POST /in?token=1 HTTP/1.1\r\n"), "{}", request.head);
        }
        let mut peer = Peer::start([act]).await;
        let error = outcome(options(), delivery(7, &peer.url())).await.unwrap_err();
        assert_eq!((error.cause, error.attempts, error.limit), (Cause::AttemptsExhausted, 3, 3), "{act:?}: {error}");
        assert!(!error.message.is_empty() && !error.to_string().contains("token"), "{error}");
        assert_eq!(peer.rest().len(), if matches!(act, Act::Close) { 0 } else { 3 }, "{act:?}");
    }
}

#[tokio::test]
async fn a_connection_that_is_refused_is_tried_again() {
    let refusing = Refusing::new();
    let error = outcome(options(), delivery(7, &refusing.url())).await.unwrap_err();
    assert_eq!((error.cause, error.attempts), (Cause::AttemptsExhausted, 3));
    assert!(error.message.contains("Connection refused"), "{error}");
    let said = error.to_string();
    let start = format!("delivery {} to peer at {}: attempts_exhausted after 3/3 attempts in ", id(7), refusing.url());
    assert!(said.starts_with(&start), "{said}");
}

#[tokio::test]
async fn a_peer_that_says_nothing_is_tried_again() {
    for act in [Act::SayAndHang(""), Act::SayAndHang("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n<b>")] {
        let mut peer = Peer::start([act]).await;
        let mut options = options();
        options.policy.read = Duration::from_millis(20);
        let error = outcome(options, delivery(7, &peer.url())).await.unwrap_err();
        assert_eq!((error.cause, error.attempts), (Cause::AttemptsExhausted, 3), "{error}");
        assert_eq!(error.message, "no byte came from the peer for 20ms");
        assert_eq!(peer.rest().len(), 3);
    }
}

#[tokio::test]
async fn a_peer_that_takes_no_body_is_tried_again() {
    let peer = Peer::start([Act::Deaf]).await;
    let mut options = options();
    options.policy.write = Duration::from_millis(50);
    options.policy.attempts = 2;
    // More bytes than the buffers of the system hold.
    let body = vec![b'x'; 64 << 20];
    let error = outcome(options, OutboundDelivery { body: body.into(), ..delivery(7, &peer.url()) }).await.unwrap_err();
    assert_eq!((error.cause, error.attempts), (Cause::AttemptsExhausted, 2), "{error}");
    assert_eq!(error.message, "the peer accepted no byte of the body for 50ms");
}

#[tokio::test]
async fn a_connection_that_never_comes_is_tried_again() {
    // TLS waits for an answer that a peer never gives.
    let peer = Peer::start([Act::Deaf]).await;
    let mut options = options();
    options.policy.connect = Duration::from_millis(20);
    let url = format!("https://{}/", peer.address);
    let error = outcome(options, delivery(7, &url)).await.unwrap_err();
    assert_eq!((error.cause, error.attempts), (Cause::AttemptsExhausted, 3), "{error}");
    assert_eq!(error.message, "there was no connection for 20ms");
}

#[tokio::test]
async fn a_status_is_an_answer() {
    for (said, status) in [
        ("HTTP/1.1 301 Moved Permanently\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n", 301),
        ("HTTP/1.1 304 Not Modified\r\n\r\n", 304),
        ("HTTP/1.1 400 Bad Request\r\ncontent-length: 3\r\n\r\nno!", 400),
        ("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n", 401),
        ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", 404),
        ("HTTP/1.1 409 Conflict\r\ncontent-length: 0\r\n\r\n", 409),
        ("HTTP/1.1 422 Unprocessable Content\r\ncontent-length: 0\r\n\r\n", 422),
        ("HTTP/1.1 429 Too Many Requests\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n", 429),
        ("HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n", 500),
        ("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n", 502),
        ("HTTP/1.1 503 Service Unavailable\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n", 503),
        ("HTTP/1.1 599 What\r\ncontent-length: 0\r\n\r\n", 599),
        // The body never comes, or not whole; the answer is there all the same.
        ("HTTP/1.1 400 Bad Request\r\ncontent-length: 100\r\n\r\nno!", 400),
    ] {
        let mut peer = Peer::start([Act::Say(said), OK]).await;
        let error = outcome(options(), delivery(7, &peer.url())).await.unwrap_err();
        assert_eq!((error.cause, error.attempts), (Cause::Rejected, 1), "{error}");
        assert!(error.message.starts_with(&format!("the peer answered {status}")), "{error}");
        assert_eq!(peer.rest().len(), 1, "{said}");
    }
}

#[tokio::test]
async fn a_refusal_that_hangs_is_a_refusal() {
    let peer = Peer::start([Act::SayAndHang("HTTP/1.1 403 Forbidden\r\ncontent-length: 9\r\n\r\nno"), OK]).await;
    let mut options = options();
    options.policy.read = Duration::from_millis(20);
    let error = outcome(options, delivery(7, &peer.url())).await.unwrap_err();
    assert_eq!((error.cause, error.attempts), (Cause::Rejected, 1), "{error}");
}

#[tokio::test]
async fn what_can_not_be_read_is_not_tried_again() {
    for (said, cause) in [
        ("SSH-2.0-OpenSSH_9.6\r\n", Cause::Unparsable),
        ("HTTP/1.1 2000 OK\r\n\r\n", Cause::Unparsable),
        ("HTTP/1.1 200 OK\r\nno header\r\n\r\n", Cause::Unparsable),
        ("HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", Cause::Unparsable),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n", Cause::Unparsable),
        ("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1\r\n\r\n{", Cause::Unparsable),
        ("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n<b/>", Cause::Unparsable),
        ("HTTP/1.1 200 OK\r\ncontent-type: Application/JSON;x=y\r\n\r\n{\"error\":\"sick\"}", Cause::PeerError),
        ("HTTP/1.1 200 OK\r\ncontent-length: 1048577\r\n\r\n", Cause::AnswerTooLarge),
    ] {
        let mut peer = Peer::start([Act::Say(said), OK]).await;
        let error = outcome(options(), delivery(7, &peer.url())).await.unwrap_err();
        assert_eq!((error.cause, error.attempts), (cause, 1), "{said}: {error}");
        assert_eq!(peer.rest().len(), 1, "{said}");
    }
}

#[tokio::test]
async fn headers_have_a_limit() {
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(1000));
    let long = format!("HTTP/1.1 200 OK\r\na: {}\r\n\r\n", "b".repeat(8 << 20));
    let endless = format!("HTTP/1.1 200 {}", "K".repeat(8 << 20));
    for said in [many, long, endless] {
        let mut peer = Peer::start([Act::Say(said.leak()), OK]).await;
        let error = outcome(options(), delivery(7, &peer.url())).await.unwrap_err();
        assert_eq!((error.cause, error.attempts), (Cause::Unparsable, 1), "{error}");
        assert_eq!(peer.rest().len(), 1);
    }
}

#[tokio::test]
async fn an_answer_is_read_up_to_its_limit() {
    let mut options = options();
    options.answer = Some(4);
    let peer = Peer::start([OK]).await;
    assert_eq!(outcome(options.clone(), delivery(7, &peer.url())).await.unwrap().body.len(), 4);
    for said in [
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n<bb/>",
        "HTTP/1.1 200 OK\r\n\r\n<bb/>",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\n<bb\r\n2\r\n/>\r\n0\r\n\r\n",
    ] {
        let peer = Peer::start([Act::Say(said)]).await;
        let error = outcome(options.clone(), delivery(7, &peer.url())).await.unwrap_err();
        assert_eq!((error.cause, error.message.as_str()), (Cause::AnswerTooLarge, "the answer has more than 4 bytes"));
    }
}

#[tokio::test]
async fn queued_is_a_success() {
    for said in [
        "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 19\r\n\r\n{\"status\":\"queued\"}",
    ] {
        let peer = Peer::start([Act::Say(said)]).await;
        assert_eq!(outcome(options(), delivery(7, &peer.url())).await.unwrap().taken, Taken::Queued);
    }
}

#[tokio::test]
async fn retry_after_is_followed_where_that_is_asked_for() {
    let busy = Act::Say("HTTP/1.1 429 Too Many Requests\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n");
    let down = Act::Say("HTTP/1.1 503 Service Unavailable\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n");
    let mut options = options();
    options.policy.retry_after = true;
    let mut peer = Peer::start([busy, down, OK]).await;
    assert!(outcome(options.clone(), delivery(7, &peer.url())).await.is_ok());
    assert_eq!(peer.rest().len(), 3);
    let peer = Peer::start([busy]).await;
    let error = outcome(options.clone(), delivery(7, &peer.url())).await.unwrap_err();
    assert_eq!((error.cause, error.attempts), (Cause::AttemptsExhausted, 3), "{error}");
    let silent = Act::Say("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n");
    let peer = Peer::start([silent]).await;
    let error = outcome(options, delivery(7, &peer.url())).await.unwrap_err();
    assert_eq!((error.cause, error.attempts), (Cause::Rejected, 1), "{error}");
}

#[tokio::test]
async fn a_redirect_leads_nowhere() {
    let other = Refusing::new();
    let text = format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", other.url());
    let peer = Peer::start([Act::Say(text.leak())]).await;
    let error = outcome(options(), delivery(7, &peer.url())).await.unwrap_err();
    assert_eq!((error.cause, error.attempts), (Cause::Rejected, 1), "{error}");
    assert!(error.message.contains("307"), "{error}");
}

/// The waits of the default policy, on a clock that runs ahead while nothing happens.
#[tokio::test(start_paused = true)]
async fn the_waits_are_those_of_the_policy() {
    let refusing = Refusing::new();
    let mut options = options();
    options.policy = Policy::default().jitter(0.0);
    let sender = Sender::start(options);
    let mut handle = sender.send(delivery(7, &refusing.url()));
    let mut waits = Vec::new();
    let mut before: Option<Time> = None;
    for _ in 1..5 {
        let next = |state: &State| matches!(state, State::BackingOff { until } if Some(*until) > before);
        let State::BackingOff { until } = handle.wait_for(next).await else { unreachable!("it was waited for") };
        waits.extend(before.map(|before| until.since(before).as_secs()));
        before = Some(until);
    }
    assert_eq!(waits, [2, 4, 8]);
    let error = handle.outcome().await.unwrap_err();
    assert_eq!((error.cause, error.attempts, error.elapsed.as_secs()), (Cause::AttemptsExhausted, 5, 15), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_budget_ends_the_attempt_that_runs() {
    let peer = Peer::start([Act::SayAndHang("")]).await;
    let mut options = options();
    options.policy.budget = Duration::from_secs(20);
    let error = outcome(options, delivery(7, &peer.url())).await.unwrap_err();
    assert_eq!((error.cause, error.attempts, error.elapsed.as_secs()), (Cause::TotalBudgetExhausted, 1, 20), "{error}");
    assert_eq!(error.message, "the attempt was ended after 20.0s in all");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_the_budget_does_not_allow_is_not_begun() {
    let refusing = Refusing::new();
    let mut options = options();
    options.policy = Policy::default().jitter(0.0).budget(Duration::from_secs(10));
    let error = outcome(options, delivery(7, &refusing.url())).await.unwrap_err();
    assert_eq!((error.cause, error.attempts, error.elapsed.as_secs()), (Cause::TotalBudgetExhausted, 4, 7), "{error}");
    assert!(error.message.contains("Connection refused"), "{error}");
}

#[tokio::test]
async fn a_delivery_is_signed_with_the_secret_of_its_target() {
    let secret = Secret::new(b"between the two of us");
    let options = DeliveryOptions { secrets: [(peer(), secret.clone())].into(), ..options() };
    let mut peer = Peer::start([Act::CloseAfterRequest, OK]).await;
    let sender = Sender::start(options);
    sender.deliver(OutboundDelivery { signed: true, ..delivery(7, &peer.url()) }).await.unwrap();
    for request in peer.rest() {
        let header = request.header("systole-signature").unwrap();
        let at: u64 = header.strip_prefix("t=").and_then(|rest| rest.split_once(',')).unwrap().0.parse().unwrap();
        let now = Time::from_nanos(at * 1_000_000_000);
        secret.verify(header, &request.body, now, signature::TOLERANCE).unwrap();
    }
    sender.deliver(delivery(8, &peer.url())).await.unwrap();
    let unsigned = peer.next().await;
    for header in ["systole-signature", "webhook-id", "webhook-signature", "content-digest", "signature"] {
        assert_eq!(unsigned.header(header), None, "{header}");
    }
    let unknown = OutboundDelivery { signed: true, target: "other".parse().unwrap(), ..delivery(9, &peer.url()) };
    let error = sender.deliver(unknown).await.unwrap_err();
    assert_eq!((error.cause, error.message.as_str()), (Cause::NoSecret, "there is no secret to sign with for other"));
    assert!(peer.rest().is_empty(), "it was not sent without");
}

/// The parts of a signature by the identity or the secret of its sender, as RFC 9421 has them: the base, and the value.
fn signed_parts(request: &super::script::Request, url: &str) -> (String, Vec<u8>) {
    let header =
        |name: &str| request.header(name).unwrap_or_else(|| panic!("no {name} in {}", request.head)).to_owned();
    let params = header("signature-input").strip_prefix("systole=").unwrap().to_owned();
    let named = params.strip_prefix('(').and_then(|rest| rest.split_once(')')).unwrap().0;
    let mut base = String::new();
    for name in named.split(' ').map(|name| name.trim_matches('"')) {
        let value = match name {
            "@method" => "POST".to_owned(),
            "@target-uri" => url.to_owned(),
            header_name => header(header_name),
        };
        base.push_str(&format!("\"{name}\": {value}\n"));
    }
    base.push_str(&format!("\"@signature-params\": {params}"));
    let value = header("signature");
    let value = value.strip_prefix("systole=:").and_then(|rest| rest.strip_suffix(':')).unwrap();
    let digest = ring::digest::digest(&ring::digest::SHA256, &request.body);
    assert_eq!(header("content-digest"), format!("sha-256=:{}:", BASE64_STANDARD.encode(digest.as_ref())));
    (base, BASE64_STANDARD.decode(value).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_retry_keeps_the_id_of_a_webhook_and_renews_its_time() {
    let key = b"between the two of us";
    let mut options = DeliveryOptions { secrets: [(peer(), Secret::new(key))].into(), ..options() };
    options.policy = Policy::default().jitter(0.0);
    let mut peer = Peer::start([Act::CloseAfterRequest, Act::CloseAfterRequest, OK]).await;
    let sender = Sender::start(options);
    sender.deliver(OutboundDelivery { signed: true, ..delivery(7, &peer.url()) }).await.unwrap();
    let mac = |bytes: &[u8]| {
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key);
        BASE64_STANDARD.encode(ring::hmac::sign(&key, bytes).as_ref())
    };
    let mut times = Vec::new();
    for request in peer.rest() {
        assert_eq!(request.header("webhook-id"), Some(&*id(7).to_string()));
        let at = request.header("webhook-timestamp").unwrap().to_owned();
        let signed = [format!("{}.{at}.", id(7)).as_bytes(), &request.body].concat();
        assert_eq!(request.header("webhook-signature"), Some(&*format!("v1,{}", mac(&signed))));
        let (base, value) = signed_parts(&request, &peer.url());
        assert_eq!(mac(base.as_bytes()), BASE64_STANDARD.encode(value), "{base}");
        assert!(base.ends_with(&format!(";created={at};keyid=\"peer\";alg=\"hmac-sha256\"")), "{base}");
        times.push(at.parse::<u64>().unwrap());
    }
    // Waits of 1 and 2 s, as seconds.
    assert_eq!(times.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>(), [1, 2]);
}

#[tokio::test]
async fn the_identity_of_the_organism_signs_requests_with_a_secret_and_without() {
    let file = std::env::temp_dir().join(format!("systole-test-{}-outbound-keys", std::process::id()));
    let mut keys = KeyFile::open(&file).unwrap();
    keys.add(Time::default()).unwrap();
    std::fs::remove_file(&file).unwrap();
    let identity = keys.identity().unwrap();
    let public = identity.keys().get(identity.id()).unwrap().point;
    let secrets = [(peer(), Secret::new(b"between the two of us"))].into();
    let options = DeliveryOptions { secrets, identity: Some(identity.into()), ..options() };
    let mut peer = Peer::start([OK, OK]).await;
    let sender = Sender::start(options);
    for signed in [true, false] {
        sender.deliver(OutboundDelivery { signed, ..delivery(7, &peer.url()) }).await.unwrap();
        let request = peer.next().await;
        assert_eq!(request.header("webhook-signature").is_some(), signed);
        let (base, value) = signed_parts(&request, &peer.url());
        assert!(base.ends_with(";keyid=\"1970-01-01\";alg=\"ecdsa-p256-sha256\""), "{base}");
        let key = ring::signature::UnparsedPublicKey::new(&ring::signature::ECDSA_P256_SHA256_FIXED, public);
        key.verify(base.as_bytes(), &value).unwrap();
        key.verify(base.replace("POST", "PUT").as_bytes(), &value).unwrap_err();
    }
}

#[tokio::test]
async fn an_answer_without_a_body_to_read_is_its_head() {
    let mut options = options();
    options.answer = None;
    for said in [
        "HTTP/1.1 200 OK\r\ncontent-length: 1048577\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\n\r\n{\"error\":\"sick\"}",
    ] {
        let mut peer = Peer::start([Act::SayAndHang(said)]).await;
        let answer = outcome(options.clone(), delivery(7, &peer.url())).await.unwrap();
        assert_eq!((answer.status, &answer.body[..]), (200, &b""[..]), "{said}");
        assert_eq!(peer.rest().len(), 1, "{said}");
    }
    let peer = Peer::start([Act::SayAndHang("HTTP/1.1 403 Forbidden\r\ncontent-length: 9\r\n\r\nno")]).await;
    let error = outcome(options, delivery(7, &peer.url())).await.unwrap_err();
    assert_eq!((error.cause, &error.message[..]), (Cause::Rejected, "the peer answered 403 Forbidden"));
}
