//! Helpers of the tests of deliveries.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use systole::outbound::retry::Policy;
use systole::outbound::{CircuitPolicy, DeliveryOptions, DeliveryOutcome, Guard, Outbound, OutboundDelivery};
use systole::vocab::MessageId;
use uuid::Uuid;

/// A folder for an outbox, removed with this value.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("outbound-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn outbox(&self) -> PathBuf {
        self.0.join("outbox")
    }

    pub(crate) async fn start(&self, options: DeliveryOptions) -> Outbound {
        Outbound::start(&self.outbox(), options).await.unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Options of three attempts without waits, to this machine, without time limits.
pub(crate) fn options() -> DeliveryOptions {
    let policy = Policy::default().attempts(3).base(Duration::from_millis(1)).cap(Duration::from_millis(2)).jitter(0.0);
    let guard = Guard::new().allow("127.0.0.0/8".parse().unwrap());
    let circuit = CircuitPolicy::default().failures(0);
    DeliveryOptions::default().policy(policy).guard(guard).circuit(circuit)
}

/// Options as [`options`], with a wait that allows no second attempt within a test.
pub(crate) fn patient() -> DeliveryOptions {
    let mut options = options();
    options.policy.base = Duration::from_secs(400);
    options.policy.cap = options.policy.base;
    options
}

pub(crate) fn id(number: u128) -> MessageId {
    MessageId::from_uuid(Uuid::from_u128(number))
}

pub(crate) fn delivery(number: u128, url: &str) -> OutboundDelivery {
    OutboundDelivery::new(id(number), "peer".parse().unwrap(), url, format!("<a n='{number}'/>"))
}

/// The end of a delivery.
pub(crate) async fn deliver(outbound: &Outbound, delivery: OutboundDelivery) -> DeliveryOutcome {
    outbound.send(delivery).await.unwrap().outcome().await.unwrap()
}

/// The end of the only delivery of an outbox.
pub(crate) async fn outcome(options: DeliveryOptions, delivery: OutboundDelivery) -> DeliveryOutcome {
    let folder = Folder::new();
    let outbound = folder.start(options).await;
    deliver(&outbound, delivery).await
}
