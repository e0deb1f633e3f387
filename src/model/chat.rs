//! A thread of the pump as a conversation with a model.

use systole_core::core::{Body, Message, Remembered};
use systole_core::protocol::write_fault;
use systole_core::vocab::Name;

use super::prompt::{Role, Turn};

/// The turns of a conversation, of which neighbours of one role are one.
#[derive(Debug, Clone, Default)]
pub(super) struct Chat(Vec<Turn>);

impl Chat {
    /// The history of a thread and its new message as turns. The listener's own payloads are turns of its model.
    pub(super) fn of(own: &Name, history: &[Remembered], message: &Message) -> Self {
        let mut chat = Self::default();
        for Remembered { from, payload } in history {
            if from == own {
                chat.say(Role::Model, payload.as_str());
            } else {
                chat.hear(from, payload.as_str());
            }
        }
        match &message.body {
            Body::Payload { payload, .. } => chat.hear(&message.from, payload.payload().as_str()),
            Body::Fault(fault) => chat.hear(&message.from, write_fault(fault).as_str()),
        }
        chat
    }

    fn hear(&mut self, from: &Name, payload: &str) {
        self.say(Role::User, &format!("From {from}:\n{payload}"));
    }

    /// Adds a text.
    pub(super) fn say(&mut self, role: Role, text: &str) {
        match self.0.last_mut() {
            Some(last) if last.role == role => {
                last.text.push_str("\n\n");
                last.text.push_str(text);
            }
            // No provider takes a conversation that its model begins: the bounds of the context cut off what was before.
            None if role == Role::Model => {}
            _ => self.0.push(Turn { role, text: text.to_owned() }),
        }
    }

    /// The turns so far.
    pub(super) fn turns(&self) -> Vec<Turn> {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_role_are_one_turn_and_the_first_is_the_users() {
        let mut chat = Chat::default();
        chat.say(Role::Model, "lost");
        chat.hear(&Name::parse("cli").unwrap(), "<a/>");
        chat.say(Role::User, "more");
        chat.say(Role::Model, "<b/>");
        chat.say(Role::Model, "<c/>");
        chat.hear(&Name::parse("calculator").unwrap(), "<d/>");
        let turns: Vec<_> = chat.turns().into_iter().map(|turn| (turn.role, turn.text)).collect();
        assert_eq!(
            turns,
            [
                (Role::User, "From cli:\n<a/>\n\nmore".to_owned()),
                (Role::Model, "<b/>\n\n<c/>".to_owned()),
                (Role::User, "From calculator:\n<d/>".to_owned()),
            ]
        );
    }
}
