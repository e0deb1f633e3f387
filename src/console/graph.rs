//! The graph of who may call whom, as a drawing.

use std::collections::{BTreeMap, HashMap, VecDeque};

use maud::{Markup, html};
use systole_core::core::Blueprint;
use systole_core::vocab::QName;

use crate::terminal::Escaped;

/// Width and height of a box, and the distances from one box to the next.
const BOX: (usize, usize) = (150, 28);
const STEP: (usize, usize) = (220, 42);
const MARGIN: usize = 12;
/// Reach of the bend of an arrow.
const BEND: usize = 35;
/// Most parties that are drawn.
const MOST: usize = 150;
/// Characters of a name in its box.
const NAME: usize = 20;

/// A client or a listener.
struct Party {
    name: String,
    is_client: bool,
    /// Column and row.
    at: (usize, usize),
}

/// The listeners that accept some payloads, with those that each accepts, in order of name.
pub(super) fn callees(blueprint: &Blueprint, payloads: &[QName]) -> BTreeMap<String, Vec<String>> {
    let mut callees = BTreeMap::<_, Vec<_>>::new();
    for payload in payloads {
        for (_, contract) in blueprint.listeners().filter(|(_, contract)| contract.accepts.contains(payload)) {
            callees.entry(contract.name.to_string()).or_default().push(payload.to_string());
        }
    }
    callees
}

/// Draws the clients and listeners of an organism, with an arrow from each to those that it may call. A column has the parties
/// that are one call further from the clients. Nothing if there are too many; the tables of the page tell the same in words.
pub(super) fn graph(blueprint: &Blueprint) -> Markup {
    let clients = blueprint.clients().map(|(_, client)| (client.name.to_string(), true, &client.calls));
    let listeners = blueprint.listeners().map(|(_, contract)| (contract.name.to_string(), false, &contract.calls));
    let all: Vec<_> = clients.chain(listeners).collect();
    if all.len() > MOST {
        return html! {};
    }
    let first_listener = all.iter().take_while(|(_, is_client, _)| *is_client).count();
    let places: HashMap<_, _> =
        all.iter().enumerate().skip(first_listener).map(|(place, (name, ..))| (name.clone(), place)).collect();
    let calls: Vec<Vec<_>> = all
        .iter()
        .map(|(.., payloads)| {
            let callees = callees(blueprint, payloads).into_iter();
            callees.filter_map(|(name, payloads)| Some((*places.get(&name)?, payloads))).collect()
        })
        .collect();
    let columns = columns(first_listener, &calls);
    let mut rows = BTreeMap::<usize, usize>::new();
    let parties = all.into_iter().zip(columns).map(|((name, is_client, _), column)| {
        let row = rows.entry(column).or_default();
        let at = (column, *row);
        *row += 1;
        Party { name, is_client, at }
    });
    let parties: Vec<_> = parties.collect();
    let width = rows.keys().max().map_or(0, |column| corner((*column, 0)).0 + BOX.0 + BEND) + MARGIN;
    let height = rows.values().max().map_or(0, |rows| rows * STEP.1) + MARGIN;
    html! {
        div.drawing {
            svg role="img" aria-label="Who may call whom" width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } {
                defs {
                    marker #arrow viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto" {
                        path d="M0 0L8 4L0 8z" {}
                    }
                }
                @for (from, calls) in calls.iter().enumerate() {
                    @for (to, payloads) in calls {
                        path.call d=(path(parties[from].at, parties[*to].at)) marker-end="url(#arrow)" {
                            title { (parties[from].name) " may call " (parties[*to].name) ": " (payloads.join(", ")) }
                        }
                    }
                }
                @for Party { name, is_client, at } in &parties {
                    @let (x, y) = corner(*at);
                    g.party.client[*is_client] {
                        title { (Escaped::line(name)) }
                        rect x=(x) y=(y) width=(BOX.0) height=(BOX.1) rx="4" {}
                        text x=(x + BOX.0 / 2) y=(y + BOX.1 / 2 + 4) { (cut(name)) }
                    }
                }
            }
        }
    }
}

/// The column of each party: how many calls it is away from the clients. One that no client reaches stands behind them as
/// one that starts by itself.
fn columns(first_listener: usize, calls: &[Vec<(usize, Vec<String>)>]) -> Vec<usize> {
    let mut columns = vec![None; calls.len()];
    let mut next = VecDeque::new();
    let clients = (0..first_listener).map(|client| (client, 0));
    for (start, column) in clients.chain((first_listener..calls.len()).map(|listener| (listener, 1))) {
        // All clients begin at once.
        if columns[start].is_none() {
            columns[start] = Some(column);
            next.push_back(start);
        }
        if start + 1 < first_listener {
            continue;
        }
        while let Some(party) = next.pop_front() {
            let column = columns[party].unwrap_or_default() + 1;
            for (callee, _) in &calls[party] {
                if columns[*callee].is_none() {
                    columns[*callee] = Some(column);
                    next.push_back(*callee);
                }
            }
        }
    }
    columns.into_iter().map(Option::unwrap_or_default).collect()
}

fn corner((column, row): (usize, usize)) -> (usize, usize) {
    (MARGIN + column * STEP.0, MARGIN + row * STEP.1)
}

/// A curve from the right side of a box to the left side of one further right, else to the right side.
fn path(from: (usize, usize), to: (usize, usize)) -> String {
    let ((x, y), (to_x, to_y)) = (corner(from), corner(to));
    let (x, y) = (x + BOX.0, y + BOX.1 / 2);
    let is_onward = to.0 > from.0;
    let (end, bend) = if is_onward { (to_x, to_x.saturating_sub(BEND)) } else { (to_x + BOX.0, to_x + BOX.0 + BEND) };
    // One that calls itself has an arrow that leaves above the place where it comes back.
    let (y, to_y) = if from == to { (y - 7, y + 7) } else { (y, to_y + BOX.1 / 2) };
    format!("M{x} {y}C{} {y} {bend} {to_y} {end} {to_y}", x + BEND)
}

/// The beginning of a name that is too long for its box.
fn cut(name: &str) -> String {
    match name.char_indices().nth(NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_party_stands_as_far_from_the_clients_as_it_takes_calls_to_reach_it() {
        let calls = [&[2][..], &[3], &[3], &[2, 4], &[], &[6], &[]];
        let calls = calls.map(|callees| callees.iter().map(|callee| (*callee, Vec::new())).collect());
        assert_eq!(columns(2, &calls), [0, 0, 1, 1, 2, 1, 2]);
        let none: [Vec<_>; 2] = Default::default();
        assert_eq!(columns(0, &none), [1, 1]);
    }

    #[test]
    fn an_arrow_ends_at_the_side_that_it_comes_from() {
        assert_eq!(path((0, 0), (1, 1)), "M162 26C197 26 197 68 232 68");
        assert_eq!(path((1, 1), (0, 0)), "M382 68C417 68 197 26 162 26");
        assert_eq!(path((0, 0), (0, 0)), "M162 19C197 19 197 33 162 33");
    }
}
