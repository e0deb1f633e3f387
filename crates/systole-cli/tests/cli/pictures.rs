//! The pictures of `docs/`, made from the code: the threads of `examples/swarm` as its events tell them, and the rungs of the
//! ladder. `UPDATE_GOLDEN=1` writes them.

use std::any::type_name;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use serde_json::Value;
use systole_xml::ladder::{Canonical, Envelope, Raw, Repaired};
use systole_xml::schema::{Element, Validated};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Shapes and texts of a picture.
#[derive(Default)]
struct Picture {
    outlines: String,
    arrows: String,
    texts: String,
}

impl Picture {
    fn rect(&mut self, (x, y): (usize, usize), (width, height): (usize, usize), more: &str) {
        let _ = writeln!(
            self.outlines,
            "    <rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"6\"{more}/>"
        );
    }

    fn path(&mut self, path: &str, more: &str) {
        let _ = writeln!(self.outlines, "    <path d=\"{path}\"{more}/>");
    }

    /// Draws the head of an arrow: its point, and the way from there to its base.
    fn head(&mut self, (x, y): (usize, usize), base: &str) {
        let _ = write!(self.arrows, "M{x} {y}{base}z");
    }

    fn text(&mut self, (x, y): (usize, usize), text: &str) {
        let _ = writeln!(self.texts, "    <text x=\"{x}\" y=\"{y}\">{text}</text>");
    }

    fn small(&mut self, (x, y): (usize, usize), text: &str) {
        let _ = writeln!(self.texts, "    <text x=\"{x}\" y=\"{y}\" font-size=\"12\">{text}</text>");
    }

    /// Compares the picture with that of the book.
    fn is_in_the_book(&self, file: &str, (width, height): (usize, usize), title: &str) {
        let Self { outlines, arrows, texts } = self;
        let svg = format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="14" fill="#7b7b7b" role="img">
  <title>{title}</title>
  <g fill="none" stroke="#7b7b7b" stroke-width="1.5">
{outlines}  </g>
  <path d="{arrows}"/>
  <g text-anchor="middle">
{texts}  </g>
</svg>
"##
        );
        let path = format!("{ROOT}/docs/pictures/{file}");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            return fs::write(path, svg).unwrap();
        }
        assert!(
            svg == fs::read_to_string(path).unwrap(),
            "docs/pictures/{file} differs: UPDATE_GOLDEN=1 writes\n{svg}"
        );
    }
}

const TO_RIGHT: &str = "l-9-5v10";
const TO_LEFT: &str = "l9-5v10";
const DOWN: &str = "l-5-9h10";
const UP: &str = "l-5 9h10";
const DASHED: &str = " stroke-dasharray=\"5 4\"";

/// The name of a type, without its path and its parameters.
fn name_of<T>() -> &'static str {
    type_name::<T>().split('<').next().and_then(|path| path.rsplit("::").next()).unwrap()
}

#[test]
fn the_way_of_a_message() {
    // Each step of the ladder, with the rung to which it leads.
    let steps = [
        (["parse, or", "repair"], name_of::<Repaired>()),
        (["canonical", "form"], name_of::<Canonical>()),
        (["envelope", ""], name_of::<Envelope>()),
        (["contract", "and schema"], name_of::<Validated<Element>>()),
    ];
    let ladder = fs::read_to_string(format!("{ROOT}/crates/systole-xml/src/ladder/mod.rs")).unwrap();
    let rungs = steps.iter().fold(format!("`{}`", name_of::<Raw>()), |rungs, (_, rung)| format!("{rungs} -> `{rung}`"));
    assert!(ladder.lines().next().unwrap().replace("<T>", "").contains(&rungs), "the ladder has these rungs: {rungs}");

    let mut picture = Picture::default();
    let two = |picture: &mut Picture, x: usize, y: usize, lines: [&str; 2]| match lines {
        [line, ""] => picture.text((x, y + 5), line),
        [first, second] => {
            picture.text((x, y - 4), first);
            picture.text((x, y + 14), second);
        }
    };
    picture.rect((10, 45), (130, 50), "");
    two(&mut picture, 75, 70, ["bytes of a client", "or a listener"]);
    picture.small((160, 62), name_of::<Raw>());
    let (first, wide, gap) = (192, 96, 18);
    let end = first + steps.len() * (wide + gap);
    picture.text((first + (end - first - gap) / 2, 20), "the trust ladder");
    picture.rect((first - 12, 28), (end - first + 6, 90), DASHED);
    for (at, (lines, rung)) in steps.into_iter().enumerate() {
        let x = first + at * (wide + gap);
        picture.rect((x, 45), (wide, 50), "");
        two(&mut picture, x + wide / 2, 70, lines);
        picture.small((x + wide / 2, 111), rung);
        let from = if at == 0 { 140 } else { x - gap };
        picture.path(&format!("M{from} 70H{}", x - 8), "");
        picture.head((x, 70), TO_RIGHT);
    }
    let (ladder_end, mailbox) = (end - 6, end + 44);
    picture.path(&format!("M{} 70H{}", end - gap, mailbox - 8), "");
    picture.head((mailbox, 70), TO_RIGHT);
    picture.rect((mailbox, 45), (170, 50), "");
    two(&mut picture, mailbox + 85, 70, ["mailbox of a thread,", "then its turn"]);
    picture.path(&format!("M{0} 95V157", mailbox + 85), "");
    picture.head((mailbox + 85, 165), DOWN);
    picture.rect((mailbox, 165), (170, 50), "");
    picture.text((mailbox + 85, 195), "handler");
    picture.path(&format!("M{mailbox} 190H75V103"), "");
    picture.head((75, 95), UP);
    let middle = (first - 12 + ladder_end) / 2;
    picture.text((middle, 208), "its emissions: replies and calls");
    picture.path(&format!("M{middle} 118v20"), "");
    picture.head((middle, 146), DOWN);
    picture.text((middle, 162), "refused at any rung: a fault for the sender");
    picture.is_in_the_book(
        "message.svg",
        (mailbox + 180, 240),
        "The way of a message: bytes of a client or a listener go up the trust ladder, rung by rung, wait in the mailbox of a \
         thread, and get to a handler, whose emissions go the same way. A refusal at any rung is a fault for the sender.",
    );
}

/// A thread of a conversation.
struct Node {
    path: String,
    /// The payloads of the call that opened it, and of its answer.
    call: String,
    answer: String,
    parent: Option<usize>,
    /// The middle of its box, from above.
    y: usize,
}

/// The threads of a run, in the order in which they were opened, and the client that asked.
fn threads(events: &[Value]) -> (Vec<Node>, String) {
    let of = |name: &'static str| events.iter().filter(move |event| event["event"] == name);
    let local = |event: Option<&Value>| {
        let payload = event.and_then(|event| event["payload"].as_str()).unwrap_or_default();
        payload.rsplit('}').next().unwrap_or_default().to_owned()
    };
    let mut nodes: Vec<Node> = Vec::new();
    for event in of("thread-opened") {
        let path = event["path"].as_str().unwrap();
        let parent = path.rsplit_once('/').map(|(above, _)| nodes.iter().position(|node| node.path == above).unwrap());
        let call = local(of("delivered").find(|event| event["path"] == path));
        let answer = local(of("emitted").rfind(|event| event["path"] == path));
        nodes.push(Node { path: path.to_owned(), call, answer, parent, y: 0 });
    }
    (nodes, of("injected").next().unwrap()["from"].as_str().unwrap().to_owned())
}

#[test]
fn the_threads_of_the_swarm() {
    let output = Command::new(env!("CARGO_BIN_EXE_systole"))
        .args(["run", "examples/swarm/organism.yaml", "examples/swarm/question.xml", "--until-idle", "--json"])
        .current_dir(ROOT)
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    let events: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (mut nodes, client) = threads(&events);

    // From right to left, for a thread stands in the middle of its children.
    let children = |nodes: &[Node], parent| (0..nodes.len()).filter(|&at| nodes[at].parent == Some(parent)).collect();
    let mut leaves = 0;
    for at in 0..nodes.len() {
        let below: Vec<usize> = children(&nodes, at);
        if below.is_empty() {
            nodes[at].y = 31 + 58 * leaves;
            leaves += 1;
        }
    }
    for at in (0..nodes.len()).rev() {
        let below: Vec<usize> = children(&nodes, at);
        if let [first, .., last] | [first @ last] = below[..] {
            nodes[at].y = (nodes[first].y + nodes[last].y) / 2;
        }
    }
    let depth = |node: &Node| node.path.matches('/').count();
    let columns = 1 + nodes.iter().map(depth).max().unwrap();
    let width = |column| {
        let paths = nodes.iter().filter(|node| depth(node) == column).map(|node| 34 + 7 * node.path.len());
        paths.max().unwrap().max(130)
    };
    let left: Vec<usize> =
        (0..columns).map(|column| 10 + (0..column).map(|before| width(before) + 130).sum::<usize>()).collect();

    let mut picture = Picture::default();
    for (at, node) in nodes.iter().enumerate() {
        let (x, y, wide) = (left[depth(node)], node.y, width(depth(node)));
        let below: Vec<usize> = children(&nodes, at);
        let high = if below.is_empty() { 42 } else { 50 };
        picture.rect((x, y - high / 2), (wide, high), "");
        if node.parent.is_none() {
            picture.text((x + wide / 2, y - 3), &node.path);
            picture.small((x + wide / 2, y + 15), &format!("of the client {client}"));
        } else {
            picture.text((x + wide / 2, y + 5), &node.path);
        }
        let (Some(first), Some(last)) = (below.first(), below.last()) else { continue };
        // Calls leave by one line and answers come back by another.
        let right = x + wide;
        let (out, back, end) = (right + 60, right + 70, right + 130);
        for child in below.iter().map(|&child| &nodes[child]) {
            let (call, answer) = (child.y - 7, child.y + 9);
            picture.path(&format!("M{right} {}H{out}V{call}H{}", y - 7, end - 8), "");
            picture.head((end, call), TO_RIGHT);
            picture.small((end - 32, call - 6), &child.call);
            picture.path(&format!("M{end} {answer}H{back}"), DASHED);
            picture.small((end - 32, answer + 15), &child.answer);
        }
        picture.path(
            &format!("M{back} {}V{}M{back} {}H{}", nodes[*first].y + 9, nodes[*last].y + 9, y + 9, right + 8),
            DASHED,
        );
        picture.head((right, y + 9), TO_LEFT);
    }
    let (wide, high) = (left[columns - 1] + width(columns - 1) + 10, 58 * leaves + 18);
    picture.small((200, high - 25), "solid: calls, each opens a thread; dashed: answers");
    picture.is_in_the_book(
        "threads.svg",
        (wide, high),
        "The thread tree of examples/swarm: each box is a thread, named by its path from the root; each solid arrow is a call, \
         which opens a thread, and each dashed one its answer, which goes to the parent.",
    );
}
