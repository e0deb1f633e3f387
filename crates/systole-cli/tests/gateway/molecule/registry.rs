//! The id of a workspace as Python makes it, and a registration whose body never comes.

use std::process::Command;

use super::office::{SCOUT, office};

#[test]
fn an_id_is_what_python_makes_of_the_name() {
    let script = "import uuid; print(uuid.uuid5(uuid.NAMESPACE_URL, 'urn:systole:workspace:scout'))";
    let made = Command::new("python3").args(["-c", script]).output().unwrap();
    assert_eq!(String::from_utf8(made.stdout).unwrap().trim(), SCOUT);
}

#[test]
fn nothing_of_a_registration_without_a_token_is_read() {
    // The body never comes.
    let request = b"POST /registry/register HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n";
    let site = office();
    let answer = crate::kit::answer(site.who("").connect_and(request)).is(200);
    assert_eq!(answer.json()["status"], "unverified");
}
