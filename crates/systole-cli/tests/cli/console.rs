//! The console of a running program, as a browser asks for it: who gets in, what each may see and do, and that foreign text stays
//! text. `scripts/console` goes through it with a real browser.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::kit::Scratch;
use crate::kit::waiting::until;

const ORGANISM: &str = r#"organism: { name: court }
durability: process
journal: court.journal
gateway: { listen: "127.0.0.1:0", console: true }
llm: { backends: [{ name: script, provider: scripted, script: script.yaml }] }
clients: [{ name: shop, calls: ["{urn:t}ask", "{urn:t}say", "{urn:t}hang"] }]
listeners:
  - name: judge
    human: { people: [ada, operator] }
    schemas: [thing.xsd]
    accepts: ["{urn:t}ask"]
    replies: ["{urn:t}verdict"]
  - name: parrot
    echo: true
    accepts: ["{urn:t}say"]
  - name: teller
    model: { instructions: Tell stories. }
    accepts: ["{urn:t}hang"]
    replies: ["{urn:t}say"]
"#;

/// A model that stays with its first word, which is no text for a page.
const SCRIPT: &str = "- { when: [short], answer: \"<say xmlns='urn:t'>once</say>\" }\n- { pace: 10h, answer: \"<script>alert(1)</script>\\u202e and more\" }\n";

const VERDICT: &str = "<verdict xmlns=\"urn:t\"><ok>true</ok><note>x</note></verdict>";

/// A running organism with its console; it is killed when the test drops it.
struct Court {
    folder: Scratch,
    child: Child,
    address: String,
    /// The link of `--open`, without its scheme and address.
    link: String,
}

impl Drop for Court {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer to a browser.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn cookie(&self) -> String {
        let (_, cookie) = self.head.split_once("set-cookie: ").unwrap_or_else(|| panic!("no cookie: {}", self.head));
        cookie.split(';').next().unwrap().to_owned()
    }
}

impl Court {
    fn opens(name: &str) -> Self {
        let folder = Scratch::new(&format!("console-{name}"));
        fs::write(folder.join("organism.yaml"), ORGANISM).unwrap();
        fs::write(folder.join("script.yaml"), SCRIPT).unwrap();
        fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/run/thing.xsd"), folder.join("thing.xsd"))
            .unwrap();
        let (child, address, link) = Self::start(&folder);
        Self { folder, child, address, link }
    }

    fn start(folder: &Scratch) -> (Child, String, String) {
        let log = fs::File::create(folder.join("log")).unwrap();
        let mut run = folder.systole(&["run", "organism.yaml", "--open"]);
        let child = run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let url = until("the link of the console", || {
            let log = fs::read_to_string(folder.join("log")).unwrap();
            let line = log.lines().find(|line| line.contains("the console: "))?;
            log.ends_with('\n').then(|| line.split_once("http://").unwrap().1.to_owned())
        });
        let (address, link) = url.split_once('/').unwrap();
        (child, address.to_owned(), format!("/{link}"))
    }

    fn restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        (self.child, self.address, self.link) = Self::start(&self.folder);
    }

    fn request(&self, method: &str, path: &str, head: &str, body: impl AsRef<[u8]>) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (host, body) = (&self.address, body.as_ref());
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{head}Connection: close\r\nContent-Length: {length}\r\n\r\n"
        )
        .unwrap();
        stream.write_all(body).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    fn get(&self, cookie: &str, path: &str) -> Answer {
        self.request("GET", path, &format!("Cookie: {cookie}\r\n"), "")
    }

    /// Sends a form as a page of the console does.
    fn post(&self, cookie: &str, path: &str, form: &str) -> Answer {
        let head = format!(
            "Cookie: {cookie}\r\nOrigin: http://{}\r\nContent-Type: application/x-www-form-urlencoded\r\n",
            self.address
        );
        self.request("POST", path, &head, form)
    }

    fn token(&self, name: &str) -> String {
        self.folder.done(&["token", "new", name]).trim().to_owned()
    }

    fn sign_in(&self, token: &str) -> Answer {
        self.post("", "/login", &format!("token={token}"))
    }

    /// Sends a message as the client.
    fn send(&self, token: &str, message: impl AsRef<[u8]>) {
        let sent = self.request("POST", "/v1/messages", &format!("Authorization: Bearer {token}\r\n"), message);
        assert_eq!(sent.status, 202, "{}", sent.body);
    }

    /// The ids behind a prefix in a page.
    fn ids(&self, cookie: &str, path: &str, prefix: &str) -> Vec<String> {
        let page = self.get(cookie, path).body;
        let mut ids: Vec<_> = page.split(prefix).skip(1).map(|rest| rest[..36].to_owned()).collect();
        ids.dedup();
        ids
    }
}

#[test]
fn a_link_signs_in_once_and_its_cookie_is_good_for_pages_until_the_next_start_and_for_nothing_else() {
    let mut court = Court::opens("link");
    let stranger = court.get("", "/dead-letters?fault=route");
    assert_eq!(stranger.status, 303);
    assert!(stranger.head.contains("location: /login?then=%2Fdead%2Dletters%3Ffault%3Droute"), "{}", stranger.head);
    // A look at the head takes no link, and no page of others is led to: browsers leave tabs out.
    assert_eq!(court.request("HEAD", &court.link, "", "").status, 200);
    let first = court.get("", &format!("{}&then=/%09/evil.example", court.link));
    assert!(!format!("{}{}", first.head, first.body).contains("evil"), "{}{}", first.head, first.body);
    let cookie = first.cookie();
    assert!(first.status == 200 && first.head.contains("HttpOnly; SameSite=Strict"), "{}", first.head);
    assert_eq!(court.get("", &court.link).status, 403, "a link is good once");
    for path in ["/", "/questions", "/dead-letters", "/mailboxes", "/tasks", "/listeners", "/models", "/acts"] {
        let page = court.get(&cookie, path);
        assert!(page.status == 200 && page.head.contains("default-src 'self'"), "{path}: {}", page.head);
        assert!(page.head.contains("no-store") && page.body.len() < 50 << 10, "{path}");
    }
    assert_eq!(court.get(&cookie, "/v1/admin/listeners").status, 401, "a cookie is no token");
    assert_eq!(court.get(&cookie, "/conversations/no-id").status, 404);
    let mut forged = cookie.clone();
    let at = cookie.find('=').unwrap() + 1;
    forged.replace_range(at..=at, if &cookie[at..=at] == "9" { "8" } else { "9" });
    assert_eq!(court.get(&forged, "/").status, 303);
    let link = court.link.clone();
    court.restart();
    assert_eq!(court.get(&cookie, "/").status, 303, "what a link of an earlier start has opened is over");
    assert_eq!(court.get("", &link).status, 403, "a link of an earlier start is none");
}

#[test]
fn a_session_ends_when_its_browser_signs_out_whoever_keeps_its_cookie_and_over_a_restart() {
    let mut court = Court::opens("session");
    let ada = court.token("ada");
    let (first, second) = (court.sign_in(&ada).cookie(), court.sign_in(&ada).cookie());
    let link = court.get("", &court.link).cookie();
    let name = |cookie: &str| cookie.split_once('=').unwrap().0.to_owned();
    assert_eq!([name(&second), name(&link)], [name(&first), name(&first)]);
    for cookie in [&first, &link] {
        assert_eq!(court.get(cookie, "/questions").status, 200);
        let out = court.post(cookie, "/logout", "");
        assert!(out.status == 303 && out.head.contains("Max-Age=0"), "{}", out.head);
        assert_eq!(court.get(cookie, "/questions").status, 303);
    }
    // Another browser of the same token stays signed in, over a restart, too.
    assert_eq!(court.get(&second, "/questions").status, 200);
    court.restart();
    assert_eq!((court.get(&first, "/questions").status, court.get(&second, "/questions").status), (303, 200));
    let admin = court.get("", &court.link).cookie();
    let acts = court.get(&admin, "/acts").body;
    assert!(acts.matches("sign-out").count() >= 2 && acts.contains("ada") && acts.contains("system"), "{acts}");
    // Browsers send the cookies of one host to all its ports.
    let other = Court::opens("session-other");
    let theirs = other.sign_in(&other.token("ada")).cookie();
    assert_ne!(name(&theirs), name(&second));
    assert_eq!(court.get(&format!("{theirs}; {second}"), "/questions").status, 200);
    court.folder.done(&["token", "revoke", "ada"]);
    assert_eq!(court.get(&second, "/questions").status, 303);
}

#[test]
fn bytes_of_a_form_that_are_no_utf_8_are_refused_with_their_place() {
    let court = Court::opens("utf8");
    let (shop, ada) = (court.token("shop"), court.token("ada"));
    court.send(&shop, "<ask xmlns='urn:t'>guilty?</ask>");
    let cookie = court.sign_in(&ada).cookie();
    let admin = court.get("", &court.link).cookie();
    let question = until("the question", || court.ids(&cookie, "/questions", "/questions/").pop());
    for (cookie, path, form, place) in [
        (
            &cookie,
            format!("/questions/{question}"),
            "deed=answer&text=a%FFb",
            "field 'text' is no UTF-8 text: byte 2 is wrong",
        ),
        (
            &cookie,
            format!("/questions/{question}"),
            "de%FFed=answer",
            "the name of field 1 is no UTF-8 text: byte 3 is wrong",
        ),
        (&admin, "/act".into(), "act=retry&edit=%C3", "field 'edit' is no UTF-8 text: byte 1 is wrong"),
        (&admin, "/act".into(), "act=cancel&filter=text%3D%25ff", "field 'text' is no UTF-8 text: byte 1 is wrong"),
        (&admin, "/check".into(), "text=%ED%A0%80", "field 'text' is no UTF-8 text: byte 1 is wrong"),
        (&admin, "/login".into(), "token=%80", "field 'token' is no UTF-8 text: byte 1 is wrong"),
    ] {
        let refused = court.post(cookie, &path, form);
        let text = refused.body.replace("&#39;", "'");
        assert!(refused.status == 400 && text.contains(place), "{form}: {} {text}", refused.status);
    }
    for path in ["/?text=%FF", "/dead-letters?from=a%FF"] {
        assert_eq!(court.get(&admin, path).status, 400, "{path}");
    }
    let token = format!("Authorization: Bearer {ada}\r\n");
    assert_eq!(court.request("GET", "/v1/questions?listener=%FF", &token, "").status, 400);
    assert!(court.get(&cookie, "/questions").body.contains(&question), "it still waits");
}

#[test]
fn a_message_that_was_repaired_shows_its_bytes_before_and_behind_the_repair() {
    let court = Court::opens("repaired");
    let cookie = court.get("", &court.link).cookie();
    let message = |raw: &[u8], at: &str| {
        court.send(&court.token("shop"), raw);
        let conversation =
            until("the conversation", || court.ids(&cookie, &format!("/?text={at}"), "href=\"/conversations/").pop());
        let messages = court.ids(&cookie, &format!("/conversations/{conversation}"), "href=\"/messages/");
        court.get(&cookie, &format!("/messages/{}", messages[0])).body
    };
    let page = message(b"<say xmlns=urn:t>salt & pepper</say>", "salt");
    for part in [
        "As it came, 36 bytes",
        "<mark title=\"1:23 stray-ampersand\">&amp;<small>stray-ampersand</small></mark>",
        "<small>attribute-quotes</small>",
        "<h3>After the repair</h3><pre tabindex=\"0\">&lt;say xmlns=",
        "&lt;say xmlns=&quot;urn:t&quot;&gt;salt &amp;amp; pepper&lt;/say&gt;",
        "1:23 stray-ampersand",
    ] {
        assert!(page.contains(part), "no {part} in {page}");
    }
    // Bytes that the events don't have whole can't be repaired again.
    let long = message(format!("<say xmlns='urn:t'>oats & {}</say>", "x".repeat(5000)).as_bytes(), "oats");
    for part in
        ["As it came, 5032 bytes", "<small>stray-ampersand</small>", "the event has the first 4 KiB of 5032 bytes"]
    {
        assert!(long.contains(part), "no {part} in {long}");
    }
    // The places of changes are those of bytes that a page can't show.
    let foreign =
        message(b"<?xml version='1.0' encoding='windows-1252'?><say xmlns='urn:t'>caf\xe9 & rye</say>", "rye");
    assert!(foreign.contains("nothing is marked here") && !foreign.contains("<mark"), "{foreign}");
    let many = message(format!("<say xmlns='urn:t'>{}emmer</say>", "& ".repeat(300)).as_bytes(), "emmer");
    assert!(many.matches("<li class=\"chip\">").count() == 200 && many.contains("and 100 more"), "{many}");
    let whole = message(b"<say xmlns='urn:t'>wheat</say>", "wheat");
    assert!(whole.contains("No repair of this message") && !whole.contains("<mark"), "{whole}");
}

#[test]
fn a_person_sees_their_questions_alone_and_is_out_when_their_token_is_revoked() {
    let court = Court::opens("person");
    let (shop, ada) = (court.token("shop"), court.token("ada"));
    court.send(&shop, "<ask xmlns='urn:t'>guilty?</ask>");
    for (token, why) in [("syt_0", "unknown"), (&*shop, "is for admins and people")] {
        let refused = court.sign_in(token);
        assert!(refused.status == 403 && refused.body.contains(why), "{}", refused.body);
    }
    let cookie = court.sign_in(&ada).cookie();
    assert!(!cookie.contains(&ada) && court.get(&cookie, "/").head.contains("location: /questions"));
    for path in ["/acts", "/listeners", "/dead-letters"] {
        assert_eq!(court.get(&cookie, path).status, 403, "{path}");
    }
    assert_eq!(court.post(&cookie, "/act", "act=pause&listener=judge").status, 403);
    let question = until("the question", || court.ids(&cookie, "/questions", "/questions/").pop());
    let path = format!("/questions/{question}");
    let refused = court.post(&cookie, &path, "deed=answer&text=%3Cverdict%3E%3Cok%3Emaybe%3C/ok%3E%3C/verdict%3E");
    assert_eq!(refused.status, 422);
    assert!(refused.body.contains("maybe") && refused.body.contains("&lt;ok&gt;maybe&lt;/ok&gt;"), "{}", refused.body);
    let judged = court.post(&cookie, &path, &format!("deed=preview&text={}", VERDICT.replace('"', "'")));
    assert!(judged.status == 200 && judged.body.contains("&lt;ok&gt;true&lt;/ok&gt;"), "{}", judged.body);
    assert_eq!(court.post(&cookie, &path, &format!("deed=answer&text={VERDICT}")).status, 303);
    assert!(court.get(&cookie, "/questions").body.contains("No question waits for you."));
    // The second answer learns of the first.
    let late = court.post(&cookie, &path, &format!("deed=answer&text={VERDICT}"));
    assert!(late.status == 409 && late.body.contains("ada"), "{}", late.body);
    court.folder.done(&["token", "revoke", "ada"]);
    assert_eq!(court.get(&cookie, "/questions").status, 303);
}

#[test]
fn a_form_asks_for_each_part_of_an_answer_and_says_at_each_what_is_wrong() {
    let court = Court::opens("form");
    let (shop, ada) = (court.token("shop"), court.token("ada"));
    court.send(&shop, "<ask xmlns='urn:t'>guilty?</ask>");
    let cookie = court.sign_in(&ada).cookie();
    let question = until("the question", || court.ids(&cookie, "/questions", "/questions/").pop());
    let path = format!("/questions/{question}");
    let of = "form=%7Burn%3At%7Dverdict";
    assert!(court.get(&cookie, &path).body.contains(&format!("{path}?{of}")));
    let empty = court.get(&cookie, &format!("{path}?{of}")).body;
    for field in ["name=\"field verdict/ok=\"", "name=\"field verdict/note=\"", "Go on"] {
        assert!(empty.contains(field), "no {field} in {empty}");
    }
    let fields = |ok: &str, deed: &str| {
        let form = format!("{of}&deed={deed}&field+verdict/ok%3D={ok}&field+verdict/note%3D=a%0D%0A%3Cb%3E");
        court.post(&cookie, &path, &form)
    };
    for deed in ["fill", "send"] {
        let wrong = fields("maybe", deed);
        assert_eq!(wrong.status, if deed == "fill" { 200 } else { 422 });
        assert!(wrong.body.contains("found 'maybe', expected true or false"), "{}", wrong.body);
        assert!(wrong.body.contains("a\n&lt;b&gt;</textarea>"), "what was written stays: {}", wrong.body);
    }
    let whole = fields("true", "fill");
    let payload = "&lt;verdict xmlns=&quot;urn:t&quot;&gt;&lt;ok&gt;true&lt;/ok&gt;&lt;note&gt;a\n&amp;lt;b&amp;gt;";
    assert!(whole.status == 200 && whole.body.contains(payload), "{}", whole.body);
    let other = court.post(&cookie, &path, "form=%7Burn%3At%7Dask&deed=send");
    assert!(other.status == 400 && other.body.contains("is not answered by such a payload"), "{}", other.body);
    assert_eq!(fields("true", "send").status, 303);
    assert!(court.get(&cookie, "/questions").body.contains("No question waits for you."));
}

#[test]
fn a_listener_shows_its_contract_and_its_work() {
    let court = Court::opens("listener");
    let cookie = court.get("", &court.link).cookie();
    let shop = court.token("shop");
    court.send(&shop, "<say xmlns='urn:t'>hi</say>");
    let page = until("the message in the figures", || {
        let page = court.get(&cookie, "/listeners/parrot").body;
        // The slot is free a little after the handler is counted.
        (page.contains("1 returned") && page.contains("0 of ")).then_some(page)
    });
    for part in ["{urn:t}say", "targetNamespace=&quot;urn:t&quot;", "Replies with"] {
        assert!(page.contains(part), "no {part} in {page}");
    }
    let organism = court.get(&cookie, "/listeners").body;
    for part in ["aria-label=\"Who may call whom\"", "shop may call judge: {urn:t}ask", "href=\"/listeners/parrot\""] {
        assert!(organism.contains(part), "no {part} in {organism}");
    }
    assert_eq!(court.get(&cookie, "/listeners/nobody").status, 404);
}

#[test]
fn what_acts_comes_from_a_page_of_this_address() {
    let court = Court::opens("origin");
    let cookie = court.get("", &court.link).cookie();
    let form = "act=pause&listener=parrot";
    for origin in ["", "Origin: http://evil.example\r\n", "Origin: null\r\n"] {
        let head = format!("Cookie: {cookie}\r\n{origin}");
        for path in ["/act", "/check", "/logout", "/login", "/questions/x"] {
            assert_eq!(court.request("POST", path, &head, form).status, 403, "{path} {origin}");
        }
        let upgrade = "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
        assert_eq!(court.request("GET", "/live", &format!("{head}{upgrade}"), "").status, 403, "{origin}");
    }
    assert!(court.get(&cookie, "/acts").body.contains("Nobody has acted."));
    assert_eq!(court.post(&cookie, "/act", &format!("{form}&back=//evil.example")).status, 303);
    let acts = court.get(&cookie, "/acts").body;
    assert!(acts.contains("pause") && acts.contains("parrot") && acts.contains("system"), "{acts}");
    let back = court.post(&cookie, "/act", "act=resume&listener=parrot&back=//evil.example").head;
    assert!(back.contains("location: /\r\n"), "{back}");
}

#[test]
fn foreign_text_shows_as_text() {
    let court = Court::opens("hostile");
    let shop = court.token("shop");
    let cookie = court.get("", &court.link).cookie();
    let hostile = [
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "&lt;img src=x onerror=alert(1)&gt;",
        "&lt;/pre&gt;&lt;/article&gt;&lt;h1&gt;gone",
        "' onmouseover='alert(1)",
        "\u{202e}drowssap",
        "a\u{200b}b\u{e0041}c",
    ];
    for text in hostile {
        court.send(&shop, format!("<say xmlns='urn:t'>{text}</say>"));
    }
    let all = || court.ids(&cookie, "/?listener=parrot&state=ended", "href=\"/conversations/");
    let conversations = until("all conversations", || Some(all()).filter(|ids| ids.len() == hostile.len()));
    let mut seen = String::new();
    for conversation in conversations {
        seen += &court.get(&cookie, &format!("/conversations/{conversation}")).body;
        for message in court.ids(&cookie, &format!("/conversations/{conversation}"), "href=\"/messages/") {
            let page = court.get(&cookie, &format!("/messages/{message}")).body;
            // The text to be edited is there as it is.
            let (head, rest) = page.split_once("<textarea").unwrap();
            let (edit, rest) = rest.split_once("</textarea>").unwrap();
            assert!(!edit.contains("</") && !edit.contains("<img"), "{edit}");
            seen.extend([head, rest]);
        }
    }
    for gone in ["<script>alert", "<img src=x", "<h1>gone", "\u{202e}", "\u{200b}", "\u{e0041}"] {
        assert!(!seen.contains(gone), "{gone:?}");
    }
    for shown in ["&amp;lt;script&amp;gt;alert(1)", "\\u{202e}", "\\u{200b}"] {
        assert!(seen.contains(shown), "{shown:?}");
    }
}

#[test]
fn a_conversation_and_its_thread_show_what_a_model_writes_as_text() {
    let court = Court::opens("draft");
    court.send(&court.token("shop"), "<hang xmlns='urn:t'/>");
    let cookie = court.get("", &court.link).cookie();
    let id = until("the conversation", || court.ids(&cookie, "/", "/conversations/").first().cloned());
    let page = until("its draft", || {
        let page = court.get(&cookie, &format!("/conversations/{id}")).body;
        page.contains("id=\"draft-1\"").then_some(page)
    });
    let shown = "&lt;script&gt;alert(1)&lt;/script&gt;\\u{202e}";
    assert!(page.contains("teller</strong> <span class=\"soft\">writes</span>") && page.contains(shown), "{page}");
    assert!(page.contains(" s so far</td>"), "each branch shows its time: {page}");
    assert!(!page.contains("<script>"), "{page}");
    let threads = court.ids(&cookie, &format!("/conversations/{id}"), "/threads/");
    let shows = |thread: &String| court.get(&cookie, &format!("/threads/{thread}")).body.contains(shown);
    assert_eq!(threads.iter().filter(|thread| shows(thread)).count(), 1, "the thread that writes it");
}

#[test]
fn a_filter_of_conversations_and_dead_letters_leaves_out_what_has_a_hyphen() {
    let court = Court::opens("without");
    let (shop, cookie) = (court.token("shop"), court.get("", &court.link).cookie());
    for message in
        ["<ask xmlns='urn:t'>guilty?</ask>", "<say xmlns='urn:t'>hello</say>", "<hang xmlns='urn:t'>short</hang>"]
    {
        court.send(&shop, message);
    }
    let of = |filter: &str| court.ids(&cookie, &format!("/?{filter}"), "href=\"/conversations/");
    let [judge, parrot, teller] = ["judge", "parrot", "teller"]
        .map(|name| until(name, || Some(of(&format!("listener={name}"))).filter(|ids| ids.len() == 1)).remove(0));
    let newest_first = |ids: &[&String]| {
        let all = of("");
        let wanted = all.into_iter().filter(|id| ids.contains(&id));
        wanted.collect::<Vec<_>>()
    };
    for (filter, expected) in [
        ("listener=-parrot", &[&judge, &teller][..]),
        ("listener=-parrot+-judge", &[&teller]),
        ("payload=-{urn:t}say&listener=-teller", &[&judge]),
        ("listener=parrot+-judge&fault=-failed", &[&parrot]),
    ] {
        assert_eq!(of(filter), newest_first(expected), "{filter}");
    }
    let page = court.get(&cookie, "/?listener=-parrot").body;
    assert!(page.contains("name=\"listener\" value=\"-parrot\""), "the form keeps it: {page}");
    assert!(page.contains("name=\"filter\" value=\"listener=-parrot&amp;\""), "and so do the acts: {page}");
    assert_eq!(court.get(&cookie, "/?fault=-because").status, 422);
    assert_eq!(court.get(&cookie, "/dead-letters?fault=-failed&listener=-judge").status, 200);
    // An act on all that match is about the open ones that are not left out.
    until("the model's end", || (of("state=ended&listener=teller").len() == 1).then_some(()));
    court.send(&shop, "<ask xmlns='urn:t'>again?</ask>");
    until("the second question", || (of("listener=judge").len() == 2).then_some(()));
    let cancelled = court.post(&cookie, "/act", "act=cancel&filter=listener=-parrot%26").body;
    assert!(cancelled.contains("2 done, 0 without an effect") && cancelled.contains(&judge), "{cancelled}");
}

#[test]
fn an_ended_conversation_shows_the_time_of_each_branch_and_the_use_of_its_model_by_day() {
    let court = Court::opens("days");
    let (shop, cookie) = (court.token("shop"), court.get("", &court.link).cookie());
    let models = court.get(&cookie, "/models").body;
    assert!(models.contains("The journal has no request to a model of these days."), "{models}");
    for _ in 0..2 {
        court.send(&shop, "<hang xmlns='urn:t'>short</hang>");
    }
    let ended = || court.ids(&cookie, "/?state=ended&listener=teller", "href=\"/conversations/");
    let ids = until("both ends", || Some(ended()).filter(|ids| ids.len() == 2));
    let page = court.get(&cookie, &format!("/conversations/{}", ids[0])).body;
    assert!(page.contains("<th scope=\"col\">Took</th>") && !page.contains("so far</td>"), "{page}");
    let took = |row: &str| {
        let cells: Vec<_> = row.split("</td>").collect();
        cells[5].rsplit('>').next().unwrap().strip_suffix(" s").is_some_and(|seconds| seconds.parse::<f64>().is_ok())
    };
    let rows: Vec<_> = page.split("<tr id=\"t-").skip(1).collect();
    assert!(rows.len() >= 2 && rows.iter().all(|row| took(row)), "{page}");
    // Both requests are those of one day, but for a midnight between them.
    let models = court.get(&cookie, "/models").body;
    let (_, days) = models.split_once("<tbody id=\"days\">").unwrap();
    let (days, _) = days.split_once("</tbody>").unwrap();
    let column = |at: usize| {
        let cells =
            days.split("<tr>").skip(1).map(|row| row.split("</td>").nth(at).unwrap().rsplit('>').next().unwrap());
        cells.map(str::to_owned).collect::<Vec<_>>()
    };
    let sum = |at: usize| column(at).iter().map(|count| count.parse::<u64>().unwrap()).sum::<u64>();
    assert!(column(1).iter().all(|listener| listener == "teller"), "{days}");
    assert_eq!((sum(2), sum(3)), (2, 2), "messages and requests: {days}");
    assert!(sum(4) > 0 && sum(5) > 0, "tokens: {days}");
    assert!(models.contains("The journal has no count of refusals and repairs"), "{models}");
}

#[test]
fn an_operator_acts_in_bulk_and_sees_the_outcome_of_each() {
    let court = Court::opens("bulk");
    let shop = court.token("shop");
    let cookie = court.get("", &court.link).cookie();
    for _ in 0..3 {
        court.send(&shop, "<ask xmlns='urn:t'>guilty?</ask>");
    }
    court.send(&shop, "<say xmlns='urn:t'>hello</say>");
    let open = || court.ids(&cookie, "/?state=open&listener=judge", "href=\"/conversations/");
    let asked = until("three questions", || Some(open()).filter(|ids| ids.len() == 3));
    let ended = until("an end", || court.ids(&cookie, "/?state=ended", "href=\"/conversations/").pop());
    assert_eq!(court.post(&cookie, "/act", "act=cancel").status, 400, "nothing is checked");
    let many: String = (0..1001).map(|id| format!("&id={id}")).collect();
    assert_eq!(court.post(&cookie, "/act", &format!("act=cancel{many}")).status, 400, "too many");
    // One that has ended fails, and leaves the other one.
    let some = court.post(&cookie, "/act", &format!("act=cancel&id={}&id={ended}", asked[0])).body;
    assert!(some.contains("1 done, 1 without an effect") && some.contains(&ended), "{some}");
    let all = court.post(&cookie, "/act", "act=cancel&filter=listener=judge%26").body;
    assert!(all.contains("2 done, 0 without an effect"), "{all}");
    assert!(open().is_empty());
    let edited = "<say xmlns='urn:t'>bye</say>";
    assert_eq!(court.post(&cookie, "/check", "text=<say xmlns='urn:t'><b/></say>").status, 422);
    assert_eq!(court.post(&cookie, "/check", &format!("text={edited}")).status, 200);
    let retried = court.post(&cookie, "/act", &format!("act=retry&id={ended}&edit={edited}"));
    assert_eq!(retried.status, 303, "{}", retried.body);
    let (_, path) = retried.head.split_once("location: ").unwrap();
    let path = path.lines().next().unwrap();
    until("the retried conversation", || court.get(&cookie, path).body.contains("bye").then_some(()));
}
