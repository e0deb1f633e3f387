//! The machine against a list of what was done, in random histories with restarts.

use proptest::prelude::*;

use super::*;

/// Parties: two people who may answer, one who may not, and an operator.
const PARTIES: usize = 4;

fn answerer(index: usize) -> Answerer {
    let name = ["ada", "bob", "eve"].get(index).map_or_else(Name::system, |name| name.parse().unwrap());
    Answerer { name, is_operator: index == 3 }
}

fn addressees(operators: bool) -> Arc<Addressees> {
    let people = ["ada", "bob"].map(|name| name.parse().unwrap()).into();
    Arc::new(Addressees { people, operators })
}

#[derive(Debug, Clone)]
enum Step {
    Act(usize, QuestionAct),
    Withdraw,
    /// The process ends, and the organism starts again.
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let act = prop_oneof![
        2 => Just(QuestionAct::Show),
        1 => Just(QuestionAct::Announce),
        1 => (1..9_u32).prop_map(|attempts| QuestionAct::TryToAnnounce(Attempts { attempts, spent: 7 })),
        4 => any::<bool>().prop_map(|over| QuestionAct::Claim { over }),
        3 => Just(QuestionAct::Release),
        1 => Just(QuestionAct::Answer { text: "<a/>".into() }),
        1 => Just(QuestionAct::Decline { reason: "no".into() }),
    ];
    let step = prop_oneof![
        12 => (0..PARTIES, act).prop_map(|(by, act)| Step::Act(by, act)),
        1 => Just(Step::Withdraw),
        2 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 0..40)
}

/// The rules, written down once more: who has it, and whether it is over.
#[derive(Debug, Default)]
struct Model {
    holder: Option<usize>,
    over: bool,
}

impl Model {
    fn takes(&self, by: usize, act: &QuestionAct, operators: bool) -> bool {
        let may_answer = if by == 3 { operators } else { by < 2 };
        let held_by_other = self.holder.is_some_and(|holder| holder != by);
        match act {
            QuestionAct::Show => may_answer || by == 3,
            QuestionAct::Announce | QuestionAct::TryToAnnounce(_) => by == 3 && !self.over,
            _ if self.over => false,
            QuestionAct::Release => (self.holder == Some(by) && may_answer) || (by == 3 && self.holder.is_some()),
            QuestionAct::Claim { over } => may_answer && (*over || !held_by_other),
            QuestionAct::Answer { .. } | QuestionAct::Decline { .. } => may_answer && !held_by_other,
        }
    }
}

proptest! {
    #[test]
    fn a_question_ends_once_by_a_party_that_may_and_a_restart_changes_nothing(
        steps in steps(), operators in any::<bool>(),
    ) {
        let addressees = addressees(operators);
        let mut question = Question::new(addressees.clone());
        let (mut model, mut kept) = (Model::default(), Vec::new());
        for (now, step) in (1..).zip(steps) {
            match step {
                Step::Act(by, act) => {
                    let taken = question.handle(act.clone(), &answerer(by), Time::from_nanos(now));
                    prop_assert_eq!(taken.is_ok(), model.takes(by, &act, operators), "{:?} {:?} {:?}", taken, act, model);
                    let Ok(record) = taken else { continue };
                    match act {
                        QuestionAct::Show => prop_assert!(record.is_none()),
                        QuestionAct::Announce => prop_assert!(question.is_announced()),
                        QuestionAct::TryToAnnounce(attempts) => prop_assert_eq!(question.attempts(), attempts),
                        QuestionAct::Claim { .. } => model.holder = Some(by),
                        QuestionAct::Release => model.holder = None,
                        QuestionAct::Answer { .. } | QuestionAct::Decline { .. } => model.over = true,
                    }
                    // As the journal has it.
                    kept.extend(record.map(|record| serde_json::to_string(&record).unwrap()));
                }
                Step::Withdraw => {
                    question.withdraw();
                    prop_assert_eq!(question.state(), &QuestionState::Withdrawn);
                    return Ok(());
                }
                // Its message is over, too.
                Step::Restart if model.over => return Ok(()),
                Step::Restart => {
                    let records: Vec<QuestionNote> =
                        kept.iter().map(|kept| serde_json::from_str(kept).unwrap()).collect();
                    let (before, is_announced) = (question.state().clone(), question.is_announced());
                    let attempts = question.attempts();
                    question = Question::recover(addressees.clone(), &records);
                    prop_assert_eq!((question.is_announced(), question.attempts()), (is_announced, attempts));
                    // That it was shown is of one run.
                    let open = [QuestionState::Waiting, QuestionState::Shown];
                    prop_assert!(
                        *question.state() == before || open.contains(&before) && open.contains(question.state())
                    );
                }
            }
            prop_assert_eq!(question.state().is_over(), model.over);
            let holder = match question.state() {
                QuestionState::Claimed { by, .. } => Some(by.clone()),
                _ => None,
            };
            if !model.over {
                prop_assert_eq!(holder, model.holder.map(|holder| answerer(holder).name));
            }
        }
    }
}

#[test]
fn a_later_answer_learns_who_gave_the_first() {
    let mut question = Question::new(addressees(false));
    let answer = || QuestionAct::Answer { text: "<a/>".into() };
    question.handle(answer(), &answerer(0), Time::from_nanos(1)).unwrap();
    let late = question.handle(answer(), &answerer(1), Time::from_nanos(2)).unwrap_err().to_string();
    assert!(late.starts_with("the question was answered by ada at 1970-01-01T00:00:00"), "{late}");
    let foreign = question.handle(answer(), &answerer(2), Time::from_nanos(3));
    assert_eq!(foreign, Err(QuestionRefusal::NotAddressed), "it is told nothing");
}

#[test]
fn a_person_who_lost_the_right_loses_the_claim() {
    let claim = QuestionNote { by: "carl".parse().unwrap(), at: 1, done: Done::Claimed };
    assert_eq!(Question::recover(addressees(false), [&claim]).state(), &QuestionState::Shown);
}

#[test]
fn claims_are_bounded_and_answers_are_not() {
    let (mut question, ada) = (Question::new(addressees(false)), answerer(0));
    for _ in 0..CHANGES / 2 {
        question.handle(QuestionAct::Claim { over: false }, &ada, Time::from_nanos(1)).unwrap();
        question.handle(QuestionAct::Release, &ada, Time::from_nanos(1)).unwrap();
    }
    let claim = question.handle(QuestionAct::Claim { over: false }, &ada, Time::from_nanos(1));
    assert_eq!(claim, Err(QuestionRefusal::TooOften));
    question.handle(QuestionAct::Answer { text: "<a/>".into() }, &ada, Time::from_nanos(1)).unwrap();
}
