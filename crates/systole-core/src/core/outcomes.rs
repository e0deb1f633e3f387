//! The outcomes of a group of awaited calls, counted as they come: whether the group is decided is known without
//! looking at all of them for each.

use super::io::{Answer, Join, Settled};
use crate::vocab::{Fault, FaultCode};

/// The result of a group of awaited calls.
pub(super) type GroupResult = Result<Vec<Settled>, Fault>;

/// The outcomes so far, by the index of the call.
#[derive(Debug)]
pub(super) struct Outcomes {
    places: Vec<Option<Result<Answer, Fault>>>,
    /// Outcomes that are replies.
    replies: usize,
    /// Calls without an outcome.
    open: usize,
}

impl Outcomes {
    /// Makes the outcomes of so many calls, none of which has one.
    pub(super) fn new(calls: usize) -> Self {
        Self { places: vec![None; calls], replies: 0, open: calls }
    }

    /// Keeps the outcome of a call; `None` if there is no such call, or it has one already.
    pub(super) fn settle(&mut self, index: u32, outcome: Result<Answer, Fault>) -> Option<&Result<Answer, Fault>> {
        let place = self.places.get_mut(index as usize).filter(|place| place.is_none())?;
        self.replies += usize::from(outcome.is_ok());
        self.open -= 1;
        Some(place.insert(outcome))
    }

    /// Takes the result of the group out, once it is fixed.
    pub(super) fn decide(&mut self, join: Join) -> Option<Result<Vec<Settled>, Fault>> {
        let calls = self.places.len();
        let needed = match join {
            Join::Settled => return (self.open == 0).then(|| Ok(self.take(false))),
            Join::All => calls,
            Join::First => 1.min(calls),
            Join::Quorum(n) => n as usize,
        };
        if self.replies >= needed {
            return Some(Ok(self.take(true)));
        }
        if self.replies + self.open >= needed {
            return None;
        }
        let first_fault = self.places.iter().flatten().find_map(|outcome| outcome.as_ref().err()).cloned();
        let unreachable = || Fault::new(FaultCode::Failed, format!("{needed} replies were awaited from {calls} calls"));
        Some(Err(first_fault.unwrap_or_else(unreachable)))
    }

    fn take(&mut self, only_replies: bool) -> Vec<Settled> {
        let all = (0..).zip(std::mem::take(&mut self.places));
        let settled = all.filter_map(|(index, outcome)| Some(Settled { index, outcome: outcome? }));
        settled.filter(|settled| !only_replies || settled.outcome.is_ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use systole_xml::schema::{Catalog, Validator, own_schema};

    use super::*;
    use crate::protocol::boot_qname;

    fn fault(text: &str) -> Result<Answer, Fault> {
        Err(Fault::new(FaultCode::Failed, text))
    }

    fn reply() -> Result<Answer, Fault> {
        let boot = own_schema(&boot_qname()).and_then(|schema| schema.example()).unwrap();
        let payload = Validator::new(Arc::new(Catalog::new())).validate(boot.clone()).unwrap();
        Ok(Answer { from: "callee".parse().unwrap(), payload })
    }

    fn outcomes<const N: usize>(all: [Option<Result<Answer, Fault>>; N]) -> Outcomes {
        let mut outcomes = Outcomes::new(N);
        for (index, outcome) in (0..).zip(all) {
            outcome.map(|outcome| outcomes.settle(index, outcome).unwrap());
        }
        outcomes
    }

    #[test]
    fn the_first_fault_ends_all_but_not_the_others() {
        let mut outcomes = outcomes([None, Some(fault("b")), None]);
        assert_eq!(outcomes.decide(Join::All).unwrap().unwrap_err().message.as_ref(), "b");
        assert!(outcomes.decide(Join::First).is_none());
        assert!(outcomes.decide(Join::Quorum(2)).is_none());
        assert!(outcomes.decide(Join::Settled).is_none());
    }

    #[test]
    fn a_quorum_fails_once_it_is_out_of_reach() {
        let mut one_open = outcomes([Some(fault("a")), None, Some(fault("c"))]);
        assert!(one_open.decide(Join::Quorum(2)).unwrap().is_err());
        assert!(one_open.decide(Join::First).is_none());
        let mut all = outcomes([Some(fault("a")), Some(fault("b"))]);
        assert!(all.decide(Join::First).unwrap().is_err());
        assert_eq!(all.decide(Join::Settled).unwrap().unwrap().len(), 2);
    }

    #[test]
    fn no_calls_are_decided_at_once() {
        assert!(outcomes([]).decide(Join::All).unwrap().unwrap().is_empty());
        assert!(outcomes([]).decide(Join::First).unwrap().unwrap().is_empty());
        assert!(outcomes([]).decide(Join::Quorum(1)).unwrap().is_err());
    }

    #[test]
    fn a_call_has_one_outcome() {
        let mut outcomes = outcomes([Some(fault("a")), None]);
        assert!(outcomes.settle(0, fault("b")).is_none());
        assert!(outcomes.settle(2, fault("c")).is_none());
        assert!(outcomes.decide(Join::Settled).is_none());
        assert!(outcomes.settle(1, fault("d")).is_some());
        let settled = outcomes.decide(Join::Settled).unwrap().unwrap();
        assert_eq!(settled[0].outcome.as_ref().unwrap_err().message.as_ref(), "a");
    }

    /// The indices of the calls in a result, or the fault; each time by a look at all of them.
    fn looked_at(join: Join, places: &[Option<bool>]) -> Option<Result<Vec<u32>, String>> {
        let count = |wanted| places.iter().filter(|place| **place == wanted).count();
        let (replies, open) = (count(Some(true)), count(None));
        let of = |is: fn(&Option<bool>) -> bool| (0..).zip(places).filter(move |one| is(one.1)).map(|(index, _)| index);
        let needed = match join {
            Join::Settled => return (open == 0).then(|| Ok(of(|_| true).collect())),
            Join::All => places.len(),
            Join::First => places.len().min(1),
            Join::Quorum(n) => n as usize,
        };
        let fault = of(|place| *place == Some(false)).next().map(|index: u32| index.to_string());
        let missing = || format!("{needed} replies were awaited from {} calls", places.len());
        match () {
            () if replies >= needed => Some(Ok(of(|place| *place == Some(true)).collect())),
            () if replies + open >= needed => None,
            () => Some(Err(fault.unwrap_or_else(missing))),
        }
    }

    proptest! {
        /// Counts decide as a look at all outcomes would.
        #[test]
        fn counts_decide_as_a_look_at_all_does(
            join in prop_oneof![Just(Join::All), Just(Join::First), (0u32..6).prop_map(Join::Quorum), Just(Join::Settled)],
            calls in 0usize..6,
            settles in proptest::collection::vec((0u32..7, any::<bool>()), 0..9),
        ) {
            let good = reply();
            let mut outcomes = Outcomes::new(calls);
            let mut places = vec![None; calls];
            for step in std::iter::once(None).chain(settles.into_iter().map(Some)) {
                if let Some((index, replies)) = step {
                    let outcome = if replies { good.clone() } else { fault(&index.to_string()) };
                    let place = places.get_mut(index as usize).filter(|place| place.is_none());
                    prop_assert_eq!(outcomes.settle(index, outcome).is_some(), place.is_some());
                    place.map(|place| place.replace(replies));
                }
                let decided = outcomes.decide(join);
                let seen = decided.map(|result| match result {
                    Ok(settled) => Ok(settled.iter().map(|settled| settled.index).collect::<Vec<_>>()),
                    Err(fault) => Err(fault.message.to_string()),
                });
                prop_assert_eq!(&seen, &looked_at(join, &places));
                if seen.is_some() {
                    break;
                }
            }
        }
    }
}
