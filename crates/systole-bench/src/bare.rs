//! References of case (c): the same hops without a pump.

use actix::{Actor, Context, Handler, Message};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::latency::Latencies;
use super::load::{Load, LoadError, Scale};

/// Tasks that each send message after message to one actor and await its result.
pub(super) struct ActixSend {
    tasks: u64,
    sends: u64,
}

impl ActixSend {
    pub(super) fn start(scale: Scale, tasks: u64, sends: u64) -> Self {
        Self { tasks: scale.of(tasks), sends }
    }
}

impl Load for ActixSend {
    fn round(&mut self, _: &mut Latencies) -> Result<u64, LoadError> {
        let (tasks, sends) = (self.tasks, self.sends);
        let system = actix::System::new();
        system.block_on(async move {
            let capacity = usize::try_from(tasks).unwrap_or(usize::MAX);
            let actor = Sink { capacity }.start();
            // Polling the root future of a block_on has costs that a task doesn't have.
            let all = actix::spawn(async move {
                let senders = (0..tasks).map(|_| {
                    let actor = actor.clone();
                    actix::spawn(async move {
                        for _ in 0..sends {
                            if actor.send(Token).await.is_err() {
                                return false;
                            }
                        }
                        true
                    })
                });
                let senders: Vec<_> = senders.collect();
                for sender in senders {
                    if !sender.await.unwrap_or(false) {
                        return Err(LoadError::Lost);
                    }
                }
                Ok(())
            });
            all.await.unwrap_or(Err(LoadError::Lost))
        })?;
        Ok(tasks * sends)
    }
}

/// Two tasks that pass tokens to each other through channels.
pub(super) struct TokioMpsc {
    tokens: u64,
    hops: u64,
}

impl TokioMpsc {
    pub(super) fn start(scale: Scale, tokens: u64, hops_of_each: u64) -> Self {
        let tokens = scale.of(tokens);
        Self { tokens, hops: tokens * hops_of_each }
    }
}

impl Load for TokioMpsc {
    fn round(&mut self, _: &mut Latencies) -> Result<u64, LoadError> {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let (to_left, left) = unbounded_channel();
        let (to_right, right) = unbounded_channel();
        for token in 0..self.tokens {
            to_left.send(Box::new(token)).map_err(|_| LoadError::Lost)?;
        }
        let hops = self.hops / 2;
        runtime.block_on(async move {
            let left = tokio::spawn(pass(left, to_right, hops));
            let right = tokio::spawn(pass(right, to_left, hops));
            let passed = left.await.unwrap_or(0) + right.await.unwrap_or(0);
            if passed == 0 { Err(LoadError::Lost) } else { Ok(passed) }
        })
    }
}

/// Passes on up to `hops` tokens. Returns the number passed.
async fn pass(mut from: UnboundedReceiver<Box<u64>>, to: UnboundedSender<Box<u64>>, hops: u64) -> u64 {
    let mut passed = 0;
    while passed < hops {
        let Some(token) = from.recv().await else { break };
        passed += 1;
        if to.send(token).is_err() {
            break;
        }
    }
    passed
}

struct Sink {
    capacity: usize,
}

#[derive(Message)]
#[rtype(result = "()")]
struct Token;

impl Actor for Sink {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(self.capacity);
    }
}

impl Handler<Token> for Sink {
    type Result = ();

    fn handle(&mut self, _: Token, _: &mut Context<Self>) {}
}
