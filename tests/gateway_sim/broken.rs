//! An organism that can't go on: no call acknowledges a change, and health reports it.

use axum::http::Method;

use crate::site::{Call, Site, WORKER, answer, ask};

#[test]
fn an_organism_that_can_not_go_on_says_so_at_every_call() {
    let site = Site::new();
    site.ask(1);
    let item = site.lease("{}").remove(0);
    let id = crate::site::text(&item["id"]);
    for path in ["/livez", "/readyz"] {
        site.get("ada", path).is(200);
    }
    site.lose_the_journal();
    let lease = format!("{WORKER}/lease");
    let (reply, redrive) = (format!("/v1/messages/{id}/reply"), format!("{WORKER}/dead/redrive"));
    let calls = [
        ("ada", "/v1/messages", ask(2)),
        ("worker", &*reply, answer("one")),
        ("worker", &*lease, "{}".to_owned()),
        ("worker", &*redrive, "{}".to_owned()),
        ("boss", "/v1/listeners/worker/pause", "{}".to_owned()),
        ("ada", "/v1/jobs/reviews/tasks", r#"{"description":"Read."}"#.to_owned()),
        // Once more, when the failure is known.
        ("ada", "/v1/messages", ask(2)),
        ("worker", &*reply, answer("one")),
    ];
    for (who, path, body) in calls {
        let told = site.call(&Call { who, method: Method::POST, path, key: None, body: &body });
        assert!([500, 503].contains(&told.status.as_u16()), "{path}: {told:?}");
        for path in ["/livez", "/readyz"] {
            site.get("ada", path).is(503);
        }
    }
    assert_eq!(site.metric("systole_gateway_waiters"), 0);
}
