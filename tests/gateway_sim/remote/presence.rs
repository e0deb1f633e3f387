//! Presence of agents: states at the gateway, and reactions of agents.

use std::time::Duration;

use serde_json::json;
use systole::remote::{AgentState, LeaseDelivery, LoopEnd, LoopOptions, PollDelivery, Presence, run_agent_loop};

use super::setup::{Seen, mailbox};
use crate::kit::{Site, text};

#[test]
fn an_agent_hears_what_it_is() {
    let mut site = Site::new();
    let worker = site.party("worker");
    let boss = site.admin();
    let agent = mailbox(&worker, "worker");
    site.run(agent.register("poll")).unwrap();
    assert_eq!(site.run(agent.heartbeat()).unwrap(), AgentState::Active);
    let paused = boss.post("/v1/listeners/worker/pause", "").is(200).json();
    assert_eq!(paused, json!({ "name": "worker", "state": "paused" }));
    assert_eq!(site.run(agent.heartbeat()).unwrap(), AgentState::Paused);
    assert_eq!(site.run(mailbox(&site.party("other"), "other").heartbeat()).unwrap(), AgentState::Active);
    let resumed = boss.post("/v1/listeners/worker/resume", "").is(200).json();
    assert_eq!(text(&resumed["state"]), "active");
    assert_eq!(site.run(agent.heartbeat()).unwrap(), AgentState::Active);
    // An agent with an unknown token is removed, and so is one whose listener is no longer declared.
    assert_eq!(site.run(mailbox(&worker, "stranger").heartbeat()).unwrap_err().status(), Some(403));
    assert_eq!(site.run(mailbox(&boss, "stranger").heartbeat()).unwrap(), AgentState::Removed);
    site.revoke("worker");
    assert_eq!(site.run(agent.heartbeat()).unwrap(), AgentState::Removed);
    // A gateway that can't be reached gives no state.
    site.kill();
    site.run(agent.heartbeat()).unwrap_err();
    site.start();
}

#[test]
fn a_pause_outlives_whatever_happens_to_the_organism() {
    let mut site = Site::new();
    let (worker, other) = (site.party("worker"), site.party("other"));
    let boss = site.admin();
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
        site.run(agent.register("poll")).unwrap();
        assert_eq!(site.run(agent.heartbeat()).unwrap(), AgentState::Paused);
        assert_eq!(site.run(idle.heartbeat()).unwrap(), AgentState::Active);
    }
    let mut poll = PollDelivery::new(agent.clone());
    let end = site.run(run_agent_loop(&mut poll, &Seen::default().echo(), &agent, LoopOptions::default()));
    assert_eq!(end, LoopEnd::Paused);
    for _ in 0..2 {
        boss.post("/v1/listeners/worker/resume", "").is(200);
        assert_eq!(site.run(agent.heartbeat()).unwrap(), AgentState::Active);
        site.kill();
        site.start();
    }
    assert_eq!(site.run(agent.heartbeat()).unwrap(), AgentState::Active);
}

#[test]
fn only_an_admin_lets_agents_rest() {
    let site = Site::new();
    let (ada, worker, other) = (site.party("ada"), site.party("worker"), site.party("other"));
    let boss = site.admin();
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

#[test]
fn an_agent_ends_when_it_is_told_to() {
    let site = Site::new();
    let worker = site.party("worker");
    let boss = site.admin();
    let agent = mailbox(&worker, "worker");
    let handler = Seen::default().echo();
    let at_once = || LoopOptions::default().heartbeat(Duration::ZERO);
    boss.post("/v1/listeners/worker/pause", "").is(200);
    let mut poll = PollDelivery::new(agent.clone());
    assert_eq!(site.run(run_agent_loop(&mut poll, &handler, &agent, at_once())), LoopEnd::Paused);
    boss.post("/v1/listeners/worker/resume", "").is(200);
    site.revoke("worker");
    let mut lease = LeaseDelivery::new(agent.clone());
    assert_eq!(site.run(run_agent_loop(&mut lease, &handler, &agent, at_once())), LoopEnd::Removed);
}
