//! Acts of operators: threads are cancelled, listeners paused and resumed.

use systole_core::core::*;
use systole_core::vocab::ThreadId;

use super::harness::*;
use super::payloads::*;

fn tell(world: &mut World, operation: impl Fn() -> Operation) -> Result<(), OperationError> {
    world.tell(|| Input::Operate { ticket: 7, operation: operation(), act: None });
    world.operated.pop().expect("it is answered")
}

fn cancel(world: &mut World, root: ThreadId, thread: ThreadId) -> Result<(), OperationError> {
    tell(world, || Operation::Cancel { root, thread, why: Cancellation::Operator })
}

fn open(world: &World, path: &str) -> ThreadId {
    let threads = world.cores.iter().flat_map(|core| core.snapshot().threads);
    threads.into_iter().find(|thread| thread.path.to_string() == path).expect("it is open").id
}

#[test]
fn a_thread_is_cancelled_with_all_below_it_and_its_caller_gets_a_fault() {
    let mut world = Setup::new(vec![boss(|boss| boss.accepts_faults = true), worker(|_| {})]).build();
    let root = world.send("alice", letter("ask", 0).label("l"));
    world.finish(world.invocation("boss"), vec![call("ping", 1)]);
    let thread = open(&world, "root/boss/worker");
    assert_eq!(cancel(&mut world, root, thread), Ok(()));
    let fault = fault_of(world.message(world.invocation("boss")));
    assert_eq!((fault.code.as_str(), &*fault.message), ("cancelled", "an operator cancelled it"));
    assert_eq!(world.runs("worker"), 0, "its handler is aborted");
    assert_eq!(cancel(&mut world, root, thread), Err(OperationError::NotOpen(thread)), "once");
    world.finish(world.invocation("boss"), vec![reply("told", 1)]);
    assert_eq!(world.said(), ["boss: told 1 [l]"]);
}

#[test]
fn a_conversation_is_cancelled_call_by_call() {
    let mut world = Setup::new(vec![boss(|_| {}), worker(|_| {})]).build();
    let root = world.send("alice", letter("ask", 0).label("a"));
    world.send("alice", letter("ask", 1).label("b").thread(root));
    world.finish(world.invocation_with("boss", 0), vec![call("ping", 1)]);
    assert_eq!(cancel(&mut world, root, root), Ok(()));
    assert_eq!(world.said(), ["boss: !cancelled [a]", "boss: !cancelled [b]"]);
    assert_eq!((world.paths(), world.closed.contains(&root)), (vec![], true));
    assert_eq!(cancel(&mut world, root, root), Err(OperationError::NotOpen(root)));
    world.check_end();
}

#[test]
fn the_messages_of_a_paused_listener_wait_until_it_is_resumed() {
    let mut world = Setup::new(vec![server("echo", &["ask"], &["told"]).concurrency(2)]).build();
    let listener = world.listener_id("echo");
    world.send("alice", letter("ask", 0).label("running"));
    world.tell(|| Input::ListenerPaused { listener, paused: true });
    world.send("alice", letter("ask", 1).label("waits"));
    world.send("alice", letter("ask", 2).label("late").deadline(world.now.after(secs(5))));
    world.finish(world.invocation("echo"), vec![reply("told", 0)]);
    world.sleep(secs(60));
    assert_eq!(world.said(), ["echo: told 0 [running]", "echo: !timeout [late]"]);
    // The end of a rest resumes nothing.
    world.tell(|| Input::ListenerRests { listener, rests: true });
    world.tell(|| Input::ListenerRests { listener, rests: false });
    assert_eq!(world.runs("echo"), 0);
    world.tell(|| Input::ListenerPaused { listener, paused: false });
    world.tell(|| Input::ListenerPaused { listener, paused: false });
    world.finish(world.invocation("echo"), vec![reply("told", 1)]);
    assert_eq!(world.said(), ["echo: told 1 [waits]"]);
}

#[test]
fn what_waits_for_a_paused_listener_is_work_also_beside_a_question_that_nobody_can_answer() {
    let mut world =
        Setup::new(vec![server("echo", &["ask"], &["told"]), server("person", &["job"], &["done"])]).build();
    let (echo, person) = (world.listener_id("echo"), world.listener_id("person"));
    world.send("alice", letter("job", 0));
    world.tell(|| Input::ListenerUnattended { listener: person });
    assert!(world.is_idle(), "only a person could go on");
    world.tell(|| Input::ListenerPaused { listener: echo, paused: true });
    world.send("alice", letter("ask", 1).label("waits"));
    assert!(!world.is_idle(), "an operator can go on");
    world.tell(|| Input::ListenerPaused { listener: echo, paused: false });
    world.finish(world.invocation("echo"), vec![reply("told", 1)]);
    assert_eq!(world.said(), ["echo: told 1 [waits]"]);
    assert!(world.is_idle());
    world.finish(world.invocation("person"), vec![reply("done", 0)]);
}
