//! Several nodes of one organism as processes, on a server of PostgreSQL: they are killed, stopped, cut off and ended in
//! order, and what clients saw is compared with what was done.

mod kit;
#[allow(dead_code, reason = "not all of it here")]
#[path = "../../../../../tests/durable/postgres/server.rs"]
mod server;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::kit::{answer, text, wait};
use kit::{Client, Cluster, Load, Proxy, Sent, Watch};

/// A number from the environment.
fn number(variable: &str) -> Option<u32> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a whole number"))
}

/// The time of the machine's clock.
fn now() -> Duration {
    systole::runtime::clock::steady()
}

/// Checks that each acknowledged number has one reply, which says it, and was handled; returns how many were handled more than
/// once.
fn check(cluster: &Cluster, client: &Client, numbers: &[u32]) -> usize {
    for &number in numbers {
        let found = client.replies(number);
        let replies = found["replies"].as_array().unwrap();
        assert_eq!(replies.len(), 1, "{number} has one reply: {found}");
        assert!(replies[0].to_string().contains(&format!(">{number}</")), "its own: {found}");
    }
    let effects = cluster.effects();
    for number in numbers {
        assert!(effects.contains_key(number), "{number} was handled");
    }
    effects.values().filter(|(times, _)| *times > 1).count()
}

#[test]
fn a_node_takes_over_from_one_that_is_killed_and_each_message_is_answered_once() {
    let cluster = Cluster::start();
    let client = cluster.client();
    for waiting in 0..number("SYSTOLE_WAITING").unwrap_or(0) {
        let body = format!("<ask xmlns=\"urn:t\">{waiting}</ask>");
        let sent = client.send("POST", "/v1/messages", "Content-Type: application/xml\r\n", &body);
        assert!(matches!(&sent, Sent::Answer(answer) if answer.status == 202), "{sent:?}");
    }
    let rounds = number("SYSTOLE_FAILOVERS").unwrap_or(2);
    let (watch, mut times, mut numbers) = (Watch::start(&cluster), Vec::new(), Vec::new());
    for round in 0..rounds {
        let load = Load::start(&client, 3, 1_000_000 * (round + 1));
        load.more(3);
        let active = cluster.active();
        cluster.all_ready();
        let epoch = cluster.epoch();
        cluster.nodes[active].kill();
        let killed = now();
        let other = &cluster.nodes[(active + 1) % cluster.nodes.len()];
        client.of(other).insist(round);
        times.push(now() - killed);
        load.more(3);
        numbers.extend(load.end());
        numbers.push(round);
        assert!(cluster.epoch() > epoch, "the one that took over has a new epoch");
        let from = &cluster.nodes[active].name;
        let took = cluster.nodes.iter().any(|node| node.log().contains(&format!("from={from}")));
        assert!(took, "the log says from whom");
        cluster.nodes[active].start();
    }
    watch.end();
    let twice = check(&cluster, &client, &numbers);
    times.sort();
    let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
    println!(
        "{rounds} kills, {} messages answered once, {twice} handled more than once; from the kill to an answer: median {median:.1?}, \
         worst {worst:.1?}",
        numbers.len()
    );
}

#[test]
fn a_node_that_was_stopped_past_its_lease_stands_by_and_does_nothing_more() {
    let cluster = Cluster::start();
    let client = cluster.client();
    for round in 0..number("SYSTOLE_STOPS").unwrap_or(1) {
        let active = cluster.active();
        let load = Load::start(&client.of(&cluster.nodes[(active + 1) % 3]), 2, 1_000_000 * (round + 1));
        load.more(2);
        cluster.nodes[active].signal(Signal::STOP);
        let other = cluster.active_but(active);
        load.more(5);
        let epoch = cluster.epoch();
        let name = cluster.nodes[active].name.clone();
        let before = cluster.effects();
        let of_it = |effects: &std::collections::BTreeMap<u32, (usize, String)>| {
            effects.values().filter(|(_, node)| *node == name).count()
        };
        let watch = Watch::start(&cluster);
        cluster.nodes[active].signal(Signal::CONT);
        wait("the stopped node to stand by", || (cluster.nodes[active].role()? == "standby").then_some(()));
        load.more(5);
        watch.end();
        let numbers = load.end();
        // A program that ran when it was stopped is a process of its own, which was not.
        let more = of_it(&cluster.effects()).saturating_sub(of_it(&before));
        assert_eq!(more, 0, "the stopped node has handled nothing behind its lease");
        assert_eq!(cluster.epoch(), epoch, "and has not taken the log back");
        assert_eq!(cluster.nodes[other].role().as_deref(), Some("active"), "the other one goes on");
        // Its organism ends a moment after the node has stopped to work.
        let log = || cluster.nodes[active].log();
        wait("the stopped node to say that it stands by", || log().contains("the node stands by again").then_some(()));
        check(&cluster, &client, &numbers);
    }
}

#[test]
fn a_rolling_restart_loses_no_request() {
    let cluster = Cluster::start();
    let client = cluster.client();
    let (watch, load) = (Watch::start(&cluster), Load::start(&client, 4, 1_000_000));
    for _ in 0..number("SYSTOLE_RESTARTS").unwrap_or(1) {
        for node in &cluster.nodes {
            load.more(8);
            node.stop();
            load.more(8);
            node.start();
            cluster.all_ready();
        }
    }
    load.more(8);
    watch.end();
    let (failed, failures) = (load.failed.clone(), load.failures.clone());
    let numbers = load.end();
    assert_eq!(failed.load(Ordering::Relaxed), 0, "{:?}", failures.lock().unwrap());
    let twice = check(&cluster, &client, &numbers);
    assert_eq!(twice, 0, "a node that ends in order leaves nothing to be done again");
    let handed = cluster.nodes.iter().filter(|node| node.log().contains("it was handed over")).count();
    assert!(handed > 0, "the lease was handed over");
    println!("{} requests, none failed", numbers.len());
}

#[test]
fn a_server_that_crashes_is_waited_for() {
    let mut cluster = Cluster::start();
    let client = cluster.client();
    let load = Load::start(&client, 3, 1_000_000);
    let mut numbers = Vec::new();
    for round in 0..3 {
        load.more(5);
        cluster.server.crash();
        numbers.push(round);
        client.insist(round);
    }
    load.more(5);
    numbers.extend(load.end());
    check(&cluster, &client, &numbers);
}

#[test]
fn a_node_that_is_cut_off_from_the_server_stops_before_its_lease_ends_and_another_takes_over() {
    let proxies = std::cell::RefCell::new(Vec::new());
    let cluster = Cluster::with(|server, name| {
        let proxy = Proxy::start(server, name);
        let url = server.url_by("work", proxy.folder());
        proxies.borrow_mut().push(proxy);
        url
    });
    let client = cluster.client();
    let (watch, load) = (Watch::start(&cluster), Load::start(&client, 3, 1_000_000));
    for round in 0..number("SYSTOLE_CUTS").unwrap_or(1) {
        load.more(5);
        let active = cluster.active();
        proxies.borrow()[active].freeze(true);
        // Whatever the server says by now, the node itself says that it is not active before another one is.
        cluster.active_but(active);
        assert_ne!(cluster.nodes[active].role().as_deref(), Some("active"));
        client.of(&cluster.nodes[(active + 1) % 3]).insist(round);
        proxies.borrow()[active].freeze(false);
        wait("the node that was cut off to stand by", || (cluster.nodes[active].role()? == "standby").then_some(()));
    }
    load.more(5);
    watch.end();
    let numbers = load.end();
    check(&cluster, &client, &numbers);
}

#[test]
fn any_node_takes_any_request() {
    let cluster = Cluster::start();
    let (client, active) = (cluster.client(), cluster.active());
    cluster.all_ready();
    for node in &cluster.nodes {
        let at = client.of(node);
        let (_, failed) = at.insist(u32::from(node.address.port()));
        assert_eq!(failed, 0);
        // A body of many pieces, and the problem of the active node with its own status.
        let large = format!("<say xmlns=\"urn:t\">7{}</say>", " ".repeat(600_000));
        let Sent::Answer(sent) = at.send("POST", "/v1/messages?wait=10", "Content-Type: application/xml\r\n", &large)
        else {
            panic!("no answer")
        };
        assert_eq!(sent.status, 200, "{sent:?}");
        let Sent::Answer(wrong) = at.send("POST", "/v1/messages", "Content-Type: application/xml\r\n", "<x/>") else {
            panic!("no answer")
        };
        assert!(matches!(wrong.status, 403 | 404 | 422), "{wrong:?}");
        let role = text(&node.ask("/readyz").unwrap().json()["role"]).to_owned();
        let is_active = cluster.nodes[active].address == node.address;
        assert_eq!(role, if is_active { "active" } else { "standby" });
        let figures = node.ask("/metrics").unwrap().body;
        assert!(figures.contains(&format!("\nsystole_node_active {}\n", u8::from(is_active))), "{figures}");
        assert_eq!(figures.contains("systole_gateway_calls"), is_active, "{figures}");
    }
    // A long poll that is held by the active node.
    let standby = &cluster.nodes[(active + 1) % 3];
    let waits = client.of(standby).send(
        "POST",
        "/v1/messages?wait=1",
        "Content-Type: application/xml\r\n",
        "<ask xmlns=\"urn:t\">1</ask>",
    );
    assert!(matches!(&waits, Sent::Answer(answer) if answer.status == 202), "{waits:?}");
    // Nobody forwards twice.
    let hop = client.of(standby).send("GET", "/v1/contract", "Systole-Forwarded-By: x\r\n", "");
    let Sent::Answer(hop) = hop else { panic!("no answer") };
    assert_eq!((hop.status, hop.header("systole-untouched")), (421, Some("1")), "{hop:?}");
    // A chunked body.
    let mut stream = TcpStream::connect(standby.address).unwrap();
    let head = format!(
        "POST /v1/messages?wait=10 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nConnection: close\r\nContent-Type: application/xml\r\n",
        cluster.token
    );
    write!(stream, "{head}Transfer-Encoding: chunked\r\n\r\n").unwrap();
    for piece in ["<say xmlns=\"urn:t\">", "9", "</say>"] {
        write!(stream, "{:x}\r\n{piece}\r\n", piece.len()).unwrap();
    }
    write!(stream, "0\r\n\r\n").unwrap();
    let chunked = answer(stream);
    assert!(chunked.status == 200 && chunked.body.contains(">9</"), "{chunked:?}");
}

#[test]
fn a_stream_and_a_web_socket_go_through_a_node_that_stands_by() {
    let cluster = Cluster::start();
    let (client, active) = (cluster.client(), cluster.active());
    let standby = &cluster.nodes[(active + 1) % 3];
    let made = standby.systole(&["token", "new", "desk"]).output().unwrap();
    let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let open = |headers: &str| {
        let mut stream = TcpStream::connect(standby.address).unwrap();
        stream.set_read_timeout(Some(crate::kit::PATIENCE)).unwrap();
        write!(
            stream,
            "GET /v1/mailboxes/desk/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{headers}\r\n"
        )
        .unwrap();
        stream
    };
    let read_until = |stream: &mut TcpStream, what: &str| {
        let mut all = Vec::new();
        while !String::from_utf8_lossy(&all).contains(what) {
            let mut piece = [0; 4096];
            let length = stream.read(&mut piece).unwrap();
            assert!(length > 0, "no {what}: {}", String::from_utf8_lossy(&all));
            all.extend_from_slice(&piece[..length]);
        }
        String::from_utf8_lossy(&all).into_owned()
    };
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let mut events = open("");
    let mut socket = open(upgrade);
    assert!(read_until(&mut events, "\r\n\r\n").starts_with("HTTP/1.1 200"));
    assert!(read_until(&mut socket, "\r\n\r\n").starts_with("HTTP/1.1 101"));
    let sent =
        client.send("POST", "/v1/messages", "Content-Type: application/xml\r\n", "<ask xmlns=\"urn:t\">41</ask>");
    assert!(matches!(&sent, Sent::Answer(answer) if answer.status == 202), "{sent:?}");
    read_until(&mut events, ">41</");
    read_until(&mut socket, ">41</");
    // They break off with the node that had them.
    cluster.nodes[active].kill();
    let mut rest = Vec::new();
    let _ = events.read_to_end(&mut rest);
    let _ = socket.read_to_end(&mut rest);
}

#[test]
fn operators_see_the_nodes_and_a_second_process_without_a_lease_is_refused() {
    let cluster = Cluster::start();
    let active = cluster.active();
    cluster.all_ready();
    let out = cluster.nodes[0].systole(&["cluster", "--json", "--organism", "organism.yaml"]).output().unwrap();
    let state: Value = serde_json::from_slice(&out.stdout).unwrap_or_else(|_| panic!("{out:?}"));
    assert_eq!(state["lease"]["node"], cluster.nodes[active].name.as_str(), "{state}");
    assert_eq!(state["lease"]["held"], true, "{state}");
    let roles: Vec<_> = state["nodes"].as_array().unwrap().iter().map(|node| text(&node["role"])).collect();
    assert_eq!(roles.iter().filter(|role| **role == "active").count(), 1, "{state}");
    assert_eq!(roles.len(), 3, "{state}");
    let shown = cluster.nodes[0].systole(&["cluster", "--organism", "organism.yaml"]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.starts_with(&format!("active  {} ", cluster.nodes[active].name)), "{shown}");
    // Without `cluster:` it would fence the node that has the lease.
    let folder = cluster.nodes[active].path();
    let alone = std::fs::read_to_string(folder.join("organism.yaml")).unwrap();
    let alone: String =
        alone.lines().filter(|line| !line.starts_with("cluster:")).map(|line| format!("{line}\n")).collect();
    let alone = alone.replace(&cluster.nodes[active].address.port().to_string(), "0");
    std::fs::write(folder.join("alone.yaml"), alone).unwrap();
    let refused = cluster.nodes[active].systole(&["run", "alone.yaml"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains(&format!("runs on the node '{}'", cluster.nodes[active].name)), "{said}");
    assert_eq!(cluster.active(), active, "it goes on");
}
