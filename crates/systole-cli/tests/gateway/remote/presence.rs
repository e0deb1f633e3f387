//! Presence of agents: states at the gateway, and reactions of agents.

use std::time::Duration;

use serde_json::json;
use systole::remote::{AgentState, LeaseDelivery, LoopEnd, LoopOptions, PollDelivery, Presence, run_agent_loop};

use super::setup::{Seen, mailbox, stay_here};
use crate::kit::{Site, text};

#[tokio::test]
async fn an_agent_hears_what_it_is() {
    let mut site = Site::new();
    let worker = site.party("worker");
    let boss = site.who(&site.token(&["boss", "--kind", "admin"]));
    let agent = mailbox(&worker, "worker");
    agent.register("poll").await.unwrap();
    assert_eq!(agent.heartbeat().await.unwrap(), AgentState::Active);
    let paused = boss.post("/v1/listeners/worker/pause", "").is(200).json();
    assert_eq!(paused, json!({ "name": "worker", "state": "paused" }));
    assert_eq!(agent.heartbeat().await.unwrap(), AgentState::Paused);
    assert_eq!(mailbox(&site.party("other"), "other").heartbeat().await.unwrap(), AgentState::Active);
    let resumed = boss.post("/v1/listeners/worker/resume", "").is(200).json();
    assert_eq!(text(&resumed["state"]), "active");
    assert_eq!(agent.heartbeat().await.unwrap(), AgentState::Active);
    // An agent with an unknown token is removed, and so is one whose listener is no longer declared.
    assert_eq!(mailbox(&worker, "stranger").heartbeat().await.unwrap_err().status(), Some(403));
    assert_eq!(mailbox(&boss, "stranger").heartbeat().await.unwrap(), AgentState::Removed);
    assert!(site.systole(&["token", "revoke", "worker"]).output().unwrap().status.success());
    assert_eq!(agent.heartbeat().await.unwrap(), AgentState::Removed);
    // A gateway that can't be reached gives no state.
    site.kill();
    agent.heartbeat().await.unwrap_err();
    site.start();
}

#[tokio::test]
async fn a_pause_outlives_whatever_happens_to_the_organism() {
    let mut site = Site::new();
    stay_here(&site);
    let (worker, other) = (site.party("worker"), site.party("other"));
    let boss = site.who(&site.token(&["boss", "--kind", "admin"]));
    let (agent, idle) = (mailbox(&worker, "worker"), mailbox(&other, "other"));
    // A repeated pause is no mistake.
    for _ in 0..2 {
        boss.post("/v1/listeners/worker/pause", "").is(200);
    }
    for killed in [true, false, true] {
        if killed {
            site.kill()
        } else {
            site.stop()
        }
        site.start();
        // A registration of the agent doesn't end the pause either.
        agent.register("poll").await.unwrap();
        assert_eq!(agent.heartbeat().await.unwrap(), AgentState::Paused);
        assert_eq!(idle.heartbeat().await.unwrap(), AgentState::Active);
    }
    let mut poll = PollDelivery::new(agent.clone());
    let end = run_agent_loop(&mut poll, &Seen::default().echo(), &agent, LoopOptions::default()).await;
    assert_eq!(end, LoopEnd::Paused);
    for _ in 0..2 {
        boss.post("/v1/listeners/worker/resume", "").is(200);
        assert_eq!(agent.heartbeat().await.unwrap(), AgentState::Active);
        site.kill();
        site.start();
    }
    assert_eq!(agent.heartbeat().await.unwrap(), AgentState::Active);
}

#[test]
fn only_an_admin_lets_agents_rest() {
    let site = Site::new();
    let (ada, worker, other) = (site.party("ada"), site.party("worker"), site.party("other"));
    let boss = site.who(&site.token(&["boss", "--kind", "admin"]));
    for verb in ["pause", "resume"] {
        for who in [&ada, &worker, &other] {
            who.post(&format!("/v1/listeners/worker/{verb}"), "").problem(403, "forbidden");
        }
        boss.post(&format!("/v1/listeners/nobody/{verb}"), "").problem(404, "not_found");
        boss.post(&format!("/v1/listeners/worker/{verb}"), r#"{"x":1}"#).problem(400, "bad_request");
        boss.post(&format!("/v1/listeners/worker/{verb}?x=1"), "").problem(400, "bad_request");
    }
    ada.post("/v1/listeners/worker/heartbeat", "").problem(403, "forbidden");
    other.post("/v1/listeners/worker/heartbeat", "").problem(403, "forbidden");
    worker.post("/v1/listeners/worker/heartbeat", "[]").problem(400, "bad_request");
    worker.get("/v1/listeners/worker/heartbeat").problem(405, "method_not_allowed");
    boss.post("/v1/listeners/worker/heartbeat", "{}").is(200);
}

#[tokio::test]
async fn an_agent_ends_when_it_is_told_to() {
    let site = Site::new();
    let worker = site.party("worker");
    let boss = site.who(&site.token(&["boss", "--kind", "admin"]));
    let agent = mailbox(&worker, "worker");
    let handler = Seen::default().echo();
    let at_once = || LoopOptions::default().heartbeat(Duration::ZERO);
    boss.post("/v1/listeners/worker/pause", "").is(200);
    let mut poll = PollDelivery::new(agent.clone());
    assert_eq!(run_agent_loop(&mut poll, &handler, &agent, at_once()).await, LoopEnd::Paused);
    boss.post("/v1/listeners/worker/resume", "").is(200);
    assert!(site.systole(&["token", "revoke", "worker"]).output().unwrap().status.success());
    let mut lease = LeaseDelivery::new(agent.clone());
    assert_eq!(run_agent_loop(&mut lease, &handler, &agent, at_once()).await, LoopEnd::Removed);
}
