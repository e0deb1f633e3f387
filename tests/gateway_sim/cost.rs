//! Transactions that a message takes on its way through the gateway to a polling agent and back.

use std::fs;

use crate::site::{Site, WORKER, answer, text};

/// Round trips that are counted together.
const TRIPS: usize = 50;

/// Frames of a log begin behind its header, with their own header before each page: <https://sqlite.org/fileformat2.html>,
/// section 4.1.
const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// The transactions in the log of a journal since it was last written back: frames that commit, under its present salts.
fn commits(site: &Site) -> usize {
    let log = fs::read(site.folder().join("x.journal-wal")).unwrap();
    let number = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().unwrap());
    let (page, salts) = (number(8) as usize, &log[16..24]);
    let frames = (LOG_HEADER..log.len()).step_by(FRAME_HEADER + page);
    frames.take_while(|at| &log[at + 8..at + 16] == salts).filter(|at| number(at + 4) > 0).count()
}

#[test]
fn a_round_trip_takes_four_transactions() {
    let site = Site::new();
    let (before, mut after) = (commits(&site), String::new());
    for number in 0..TRIPS {
        let sent = site.ask(number);
        let page = site.get("worker", &format!("{WORKER}/messages{after}")).is(200);
        after = format!("?ack={}", text(&page["next"]));
        let reply = format!("/v1/messages/{}/reply", text(&page["items"][0]["id"]));
        site.post("worker", &reply, None, &answer("one")).is(202);
        site.kit().settle();
        assert_eq!(text(&site.sent(&sent)["state"]), "answered");
    }
    let taken = commits(&site) - before;
    assert!((TRIPS..=4 * TRIPS).contains(&taken), "{taken} transactions for {TRIPS} round trips");
}
