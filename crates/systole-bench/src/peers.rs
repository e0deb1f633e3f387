//! References of case (a): the conversation of two hops, written with other libraries as their documentation does it.
//!
//! None of them checks a message against a contract, and none keeps order, bounds or deadlines: they show what the pump
//! adds. Each runs on one OS thread, decodes and encodes the message at each hop, and has as many conversations in
//! flight as the case.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use actix::dev::ToEnvelope;
use actix::{Actor as _, Addr, ResponseFuture};
use ractor::rpc::CallResult;
use ractor::{ActorProcessingErr, ActorRef, RpcReplyPort};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, oneshot};

use super::latency::Latencies;
use super::load::{Load, LoadError, Scale};
use super::messages::Note;
use super::stopwatch;

/// A future of an answer; `None` if the peer lost the message.
type Answer = Pin<Box<dyn Future<Output = Option<Vec<u8>>>>>;

/// The load: `count` conversations, `window` of them at a time.
pub(super) struct TwoHopOf<P> {
    count: u64,
    window: usize,
    peer: PhantomData<P>,
}

impl<P: Peer> TwoHopOf<P> {
    pub(super) fn start(scale: Scale, count: u64, window: usize) -> Self {
        Self { count: scale.of(count), window, peer: PhantomData }
    }
}

/// Two actors of a library: a front that asks a back.
pub(super) trait Peer: Sized + 'static {
    /// The format of the messages.
    type Format: Format;

    /// Starts the actors on the present OS thread.
    fn start() -> impl Future<Output = Option<Self>>;

    /// Sends a message to the front.
    fn ask(&self, message: Vec<u8>) -> Answer;
}

impl<P: Peer> Load for TwoHopOf<P> {
    fn round(&mut self, latencies: &mut Latencies) -> Result<u64, LoadError> {
        let (count, window) = (self.count, self.window);
        let message = P::Format::encode(&Note::sample()).ok_or(LoadError::Lost)?;
        // It has a tokio runtime of one OS thread, which the others use, too.
        let system = actix::System::new();
        system.block_on(async move {
            let peer = P::start().await.ok_or(LoadError::Lost)?;
            let mut open: VecDeque<(Duration, tokio::task::JoinHandle<Option<Vec<u8>>>)> = VecDeque::new();
            for _ in 0..count {
                if open.len() == window {
                    answered(&mut open, latencies).await?;
                }
                open.push_back((stopwatch::wall(), actix::spawn(peer.ask(message.clone()))));
            }
            while !open.is_empty() {
                answered(&mut open, latencies).await?;
            }
            Ok(4 * count)
        })
    }
}

/// Waits for the answer of the oldest conversation.
async fn answered(
    open: &mut VecDeque<(Duration, tokio::task::JoinHandle<Option<Vec<u8>>>)>,
    latencies: &mut Latencies,
) -> Result<(), LoadError> {
    let Some((sent, answer)) = open.pop_front() else { return Ok(()) };
    answer.await.ok().flatten().ok_or(LoadError::Lost)?;
    latencies.add(stopwatch::wall() - sent);
    Ok(())
}

/// A format of messages, by serde.
pub(super) trait Format: 'static {
    fn encode<T: Serialize>(value: &T) -> Option<Vec<u8>>;
    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T>;

    /// The work of a listener: a message in, the same message out.
    fn pass(bytes: &[u8]) -> Option<Vec<u8>> {
        Self::encode(&Self::decode::<Note>(bytes)?)
    }
}

/// JSON, by `serde_json`.
pub(super) struct Json;

impl Format for Json {
    fn encode<T: Serialize>(value: &T) -> Option<Vec<u8>> {
        serde_json::to_vec(value).ok()
    }

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
        serde_json::from_slice(bytes).ok()
    }
}

/// XML, by `quick_xml`.
pub(super) struct Xml;

impl Format for Xml {
    fn encode<T: Serialize>(value: &T) -> Option<Vec<u8>> {
        quick_xml::se::to_string(value).ok().map(String::into_bytes)
    }

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
        quick_xml::de::from_reader(bytes).ok()
    }
}

/// A message, as bytes, for the actor `To`.
pub(super) struct Ask(Vec<u8>);

/// Actors of actix, with JSON.
pub(super) struct Actix(Addr<ActixFront>);

pub(super) struct ActixFront(Addr<ActixBack>);
struct ActixBack;

impl actix::Message for Ask {
    type Result = Option<Vec<u8>>;
}

impl actix::Actor for ActixFront {
    type Context = actix::Context<Self>;
}

impl actix::Actor for ActixBack {
    type Context = actix::Context<Self>;
}

impl actix::Handler<Ask> for ActixFront {
    type Result = ResponseFuture<Option<Vec<u8>>>;

    fn handle(&mut self, Ask(message): Ask, _: &mut Self::Context) -> Self::Result {
        let back = self.0.clone();
        Box::pin(async move { Json::pass(&send(&back, Json::pass(&message)?).await?) })
    }
}

impl actix::Handler<Ask> for ActixBack {
    type Result = Option<Vec<u8>>;

    fn handle(&mut self, Ask(message): Ask, _: &mut Self::Context) -> Self::Result {
        Json::pass(&message)
    }
}

async fn send<A>(actor: &Addr<A>, message: Vec<u8>) -> Option<Vec<u8>>
where
    A: actix::Handler<Ask>,
    A::Context: ToEnvelope<A, Ask>,
{
    actor.send(Ask(message)).await.ok().flatten()
}

impl Peer for Actix {
    type Format = Json;

    async fn start() -> Option<Self> {
        Some(Self(ActixFront(ActixBack.start()).start()))
    }

    fn ask(&self, message: Vec<u8>) -> Answer {
        let front = self.0.clone();
        Box::pin(async move { send(&front, message).await })
    }
}

/// Actors of kameo, with JSON.
pub(super) struct Kameo(kameo::actor::ActorRef<KameoFront>);

pub(super) struct KameoFront(kameo::actor::ActorRef<KameoBack>);
struct KameoBack;

impl kameo::Actor for KameoFront {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(front: Self, _: kameo::actor::ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(front)
    }
}

impl kameo::Actor for KameoBack {
    type Args = Self;
    type Error = Infallible;

    async fn on_start(back: Self, _: kameo::actor::ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(back)
    }
}

impl kameo::message::Message<Ask> for KameoFront {
    type Reply = kameo::reply::DelegatedReply<Option<Vec<u8>>>;

    async fn handle(&mut self, Ask(message): Ask, ctx: &mut kameo::message::Context<Self, Self::Reply>) -> Self::Reply {
        let back = self.0.clone();
        ctx.spawn(async move { Json::pass(&back.ask(Ask(Json::pass(&message)?)).await.ok().flatten()?) })
    }
}

impl kameo::message::Message<Ask> for KameoBack {
    type Reply = Option<Vec<u8>>;

    async fn handle(&mut self, Ask(message): Ask, _: &mut kameo::message::Context<Self, Self::Reply>) -> Self::Reply {
        Json::pass(&message)
    }
}

impl Peer for Kameo {
    type Format = Json;

    async fn start() -> Option<Self> {
        use kameo::actor::Spawn;
        Some(Self(KameoFront::spawn(KameoFront(KameoBack::spawn(KameoBack)))))
    }

    fn ask(&self, message: Vec<u8>) -> Answer {
        let front = self.0.clone();
        Box::pin(async move { front.ask(Ask(message)).await.ok().flatten() })
    }
}

/// Actors of ractor, with JSON.
pub(super) struct Ractor(ActorRef<RactorAsk>);

/// A message with the port of its answer.
pub(super) struct RactorAsk(Vec<u8>, RpcReplyPort<Option<Vec<u8>>>);

struct RactorFront;
struct RactorBack;

impl ractor::Actor for RactorFront {
    type Msg = RactorAsk;
    type State = ActorRef<RactorAsk>;
    type Arguments = ActorRef<RactorAsk>;

    async fn pre_start(
        &self,
        _: ActorRef<RactorAsk>,
        back: ActorRef<RactorAsk>,
    ) -> Result<ActorRef<RactorAsk>, ActorProcessingErr> {
        Ok(back)
    }

    async fn handle(
        &self,
        _: ActorRef<RactorAsk>,
        RactorAsk(message, port): RactorAsk,
        back: &mut ActorRef<RactorAsk>,
    ) -> Result<(), ActorProcessingErr> {
        let back = back.clone();
        tokio::spawn(async move {
            let answer = async { Json::pass(&call(&back, Json::pass(&message)?).await?) };
            // The caller waits for it.
            let _ = port.send(answer.await);
        });
        Ok(())
    }
}

impl ractor::Actor for RactorBack {
    type Msg = RactorAsk;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<RactorAsk>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        _: ActorRef<RactorAsk>,
        RactorAsk(message, port): RactorAsk,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        // The caller waits for it.
        let _ = port.send(Json::pass(&message));
        Ok(())
    }
}

async fn call(actor: &ActorRef<RactorAsk>, message: Vec<u8>) -> Option<Vec<u8>> {
    match actor.call(|port| RactorAsk(message, port), None).await {
        Ok(CallResult::Success(answer)) => answer,
        _ => None,
    }
}

impl Peer for Ractor {
    type Format = Json;

    async fn start() -> Option<Self> {
        let (back, _) = ractor::Actor::spawn(None, RactorBack, ()).await.ok()?;
        let (front, _) = ractor::Actor::spawn(None, RactorFront, back).await.ok()?;
        Some(Self(front))
    }

    fn ask(&self, message: Vec<u8>) -> Answer {
        let front = self.0.clone();
        Box::pin(async move { call(&front, message).await })
    }
}

/// Tasks and channels of tokio, with XML by quick-xml's serde.
pub(super) struct Tokio(mpsc::UnboundedSender<TokioAsk>);

type TokioAsk = (Vec<u8>, oneshot::Sender<Option<Vec<u8>>>);

async fn through(task: &mpsc::UnboundedSender<TokioAsk>, message: Vec<u8>) -> Option<Vec<u8>> {
    let (answer, answered) = oneshot::channel();
    task.send((message, answer)).ok()?;
    answered.await.ok().flatten()
}

impl Peer for Tokio {
    type Format = Xml;

    async fn start() -> Option<Self> {
        let (to_front, mut front) = mpsc::unbounded_channel::<TokioAsk>();
        let (to_back, mut back) = mpsc::unbounded_channel::<TokioAsk>();
        tokio::spawn(async move {
            while let Some((message, answer)) = front.recv().await {
                let back = to_back.clone();
                tokio::spawn(async move {
                    let passed = async { Xml::pass(&through(&back, Xml::pass(&message)?).await?) };
                    // The caller waits for it.
                    let _ = answer.send(passed.await);
                });
            }
        });
        tokio::spawn(async move {
            while let Some((message, answer)) = back.recv().await {
                let _ = answer.send(Xml::pass(&message));
            }
        });
        Some(Self(to_front))
    }

    fn ask(&self, message: Vec<u8>) -> Answer {
        let front = self.0.clone();
        Box::pin(async move { through(&front, message).await })
    }
}
