//! The examples with a gateway, run as in their READMEs.

use std::process::Command;

#[test]
fn agents_in_shell_and_in_python_and_any_command_answer() {
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/remote/demo.sh");
    let run = Command::new("sh").arg(demo).env("SYSTOLE", env!("CARGO_BIN_EXE_systole")).output().unwrap();
    let said = String::from_utf8(run.stdout).unwrap();
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    let replies: Vec<_> = said.lines().collect();
    assert_eq!(replies.len(), 3, "{said}");
    let sum = r#"<sum xmlns="urn:example:calculator:v1" value="42"></sum>"#;
    assert!(replies[0].contains("<from>calculator</from><to>ada</to>") && replies[0].contains(sum), "{said}");
    let shouted = r#"<shouted xmlns="urn:example:shout:v1">AT&amp;T ROCKS!</shouted>"#;
    assert!(replies[1].contains("<from>shouter</from><to>ada</to>") && replies[1].contains(shouted), "{said}");
    let shouted = r#"<shouted xmlns="urn:example:shout:v1">any command!</shouted>"#;
    assert!(replies[2].contains("<from>shouter</from><to>ada</to>") && replies[2].contains(shouted), "{said}");
}

#[test]
fn a_note_rides_on_responses_until_it_is_confirmed() {
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/notices/demo.sh");
    let run = Command::new("sh").arg(demo).env("SYSTOLE", env!("CARGO_BIN_EXE_systole")).output().unwrap();
    let said = String::from_utf8(run.stdout).unwrap();
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines.len(), 4, "{said}");
    let token = |line: &str| line.split("begin ").nth(1).unwrap()[..36].to_owned();
    assert!(lines[..2].iter().all(|line| line.contains("lunch at noon?") && line.contains(">hello</say>")), "{said}");
    assert_ne!(token(lines[0]), token(lines[1]), "after the kill it came under a new token");
    assert!(lines[2].starts_with(&format!("{{\"confirmed\":[{{\"token\":\"{}\"", token(lines[1]))), "{said}");
    assert!(!lines[3].contains("lunch") && lines[3].contains(">hello</say>"), "{said}");
}

#[test]
fn a_task_waits_for_its_job_and_outlives_a_kill() {
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/jobs/demo.sh");
    let run = Command::new("sh").arg(demo).env("SYSTOLE", env!("CARGO_BIN_EXE_systole")).output().unwrap();
    let said = String::from_utf8(run.stdout).unwrap();
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    let found = r#"{"items":[{"name":"reviews","description":"Reads drafts.","skills":["read"]}],"has_more":false}"#;
    assert_eq!(said.lines().nth(1), Some(found), "{said}");
    assert!(said.contains("# Pending tasks of reviews: 1") && said.contains("> Read chapter 3."), "{said}");
    let task = said.lines().last().unwrap();
    let done = [r#""status":"completed""#, r#""attempts":1"#, r#""text":"half of it""#, r#""result":"Two typos.""#];
    assert!(done.iter().all(|part| task.contains(part)), "{said}");
}

#[test]
fn people_approve_over_http_and_from_a_second_process_after_a_kill() {
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/approvals/demo.sh");
    let run = Command::new("sh").arg(demo).env("SYSTOLE", env!("CARGO_BIN_EXE_systole")).output().unwrap();
    let said = String::from_utf8(run.stdout).unwrap();
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    let parts =
        [r#""state":"answered","by":"ada""#, "was answered by ada at ", "declined by system", "too dear", ">paid<"];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
}
