//! Content models in one line, in the notation of DTDs (XML 1.0, section 3.2.1).

use std::fmt::Write;

use crate::schema::model::{Order, Particle, Term};

/// Maximum number of bytes, about.
const MOST: usize = 1_000;

/// The content model of a particle, cut if it is long.
pub(super) fn outline(particle: &Particle) -> String {
    let mut out = String::new();
    write(&mut out, particle);
    out
}

fn write(out: &mut String, particle: &Particle) {
    match &particle.term {
        Term::Element(element) => out.push_str(&element.local),
        Term::Any(_) => out.push_str("ANY"),
        Term::Group(order, parts) => {
            let between = match order {
                Order::Sequence => ", ",
                Order::Choice => " | ",
                Order::All => " & ",
            };
            out.push('(');
            for (index, part) in parts.iter().enumerate() {
                if index > 0 {
                    out.push_str(between);
                }
                if out.len() > MOST {
                    out.push('…');
                    break;
                }
                write(out, part);
            }
            out.push(')');
        }
    }
    let _ = match (particle.min, particle.max) {
        (1, Some(1)) => Ok(()),
        (0, Some(1)) => write!(out, "?"),
        (0, None) => write!(out, "*"),
        (1, None) => write!(out, "+"),
        (min, None) => write!(out, "{{{min},}}"),
        (min, Some(max)) => write!(out, "{{{min},{max}}}"),
    };
}
