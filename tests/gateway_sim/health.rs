//! Readiness: whether a small message of any client is taken.

use crate::kit::{Answer, Site, Who, ask};

/// Two clients, or one, whose messages wait for a listener with one slot.
const ORGANISM: &str = r#"organism: { name: full }
durability: process
limits: { LIMIT }
gateway: { listen: "127.0.0.1:0", requests: 1000000 }
clients:
  - { name: ada, calls: ["{urn:t}ask"] }
  - { name: bob, calls: ["{urn:t}ask"] }
listeners:
  - name: worker
    remote: { mode: poll }
    schemas: [t.xsd]
    accepts: ["{urn:t}ask"]
    replies: ["{urn:t}answer"]
    concurrency: 1
"#;

#[test]
fn an_organism_that_refuses_small_messages_is_not_ready() {
    let one = ORGANISM.replace("  - { name: bob, calls: [\"{urn:t}ask\"] }\n", "");
    for (organism, limit) in
        [&one, ORGANISM].into_iter().flat_map(|one| [(one, "queue: 32"), (one, "queue_bytes: 32KiB")])
    {
        let site = Site::of(&organism.replace("LIMIT", limit));
        let clients = if organism == ORGANISM { vec!["ada", "bob"] } else { vec!["ada"] };
        let clients: Vec<_> = clients.into_iter().map(|name| site.party(name)).collect();
        let ready = || site.stranger().get("/readyz");
        // Each until it is refused; the last quarter is for those who hold little.
        for client in &clients {
            ready().is(200);
            let refused: Option<Answer> =
                (0..200).map(|number| client.post("/v1/messages", &ask(number))).find(|sent| sent.status != 202);
            refused.expect("it is full").problem(503, "overload");
        }
        let not_ready = ready();
        assert_eq!(not_ready.header("retry-after"), Some("1"), "{limit}");
        not_ready.problem(503, "overload");
        // The listener takes all that waits.
        let worker = site.party("worker");
        let mut after = String::new();
        while ready().status != 200 {
            let page = worker.get(&format!("/v1/mailboxes/worker/messages?wait=60{after}")).is(200).json();
            after = format!("&ack={}", page["next"].as_str().unwrap());
        }
        let has_room = |client: &Who| client.post("/v1/messages", &ask(7)).status == 202;
        assert!(clients.iter().any(has_room), "{limit}: there is room for a client");
    }
}
