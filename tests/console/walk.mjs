// Goes through the console of a running organism with a real browser, as an operator and as a person do, and checks what they see.
// `scripts/console` starts it: node walk.mjs SYSTOLE FOLDER PICTURES.
import { execFileSync, spawn } from "node:child_process";
import { openSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [systole, folder, pictures] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const deadline = 30_000;
let checks = 0;

function check(holds, what) {
  checks += 1;
  if (!holds) throw new Error(what);
}

async function until(what, look) {
  for (const end = Date.now() + deadline; Date.now() < end; await new Promise((go) => setTimeout(go, 50))) {
    const found = await look();
    if (found) return found;
  }
  throw new Error(`waited ${deadline / 1000} s for ${what}`);
}

const token = (name) => execFileSync(systole, ["token", "new", name], { cwd: folder, stdio: ["ignore", "pipe", "ignore"] }).toString().trim();

// A running organism, with the link into its console.
async function start() {
  const log = `${folder}/log`;
  writeFileSync(log, "");
  const child = spawn(systole, ["run", "organism.yaml", "--open"], { cwd: folder, stdio: ["ignore", "ignore", openSync(log, "w")] });
  const link = await until("the link into the console", () => /the console: (\S+)\n/.exec(readFileSync(log, "utf8"))?.[1]);
  return { child, link, base: new URL(link).origin };
}

async function end(child) {
  const ended = new Promise((done) => child.once("exit", done));
  child.kill("SIGKILL");
  await ended;
}

async function send(base, as, message) {
  const sent = await fetch(`${base}/v1/messages`, { method: "POST", body: message, headers: { authorization: `Bearer ${as}`, "content-type": "application/xml" } });
  check(sent.status === 202, `a message is taken: ${sent.status}`);
}

// A page in a tab. Errors of its script and of its policy fail the walk; refusals, and the end of a WebSocket with its server, belong to it.
async function open(context, url) {
  const page = await context.newPage();
  page.on("pageerror", (error) => { throw new Error(`${url}: ${error.message}`); });
  page.on("console", (message) => { if (message.type() === "error" && !/WebSocket|status of (422|403)/.test(message.text())) throw new Error(`${url}: ${message.text()}`); });
  page.on("dialog", (dialog) => { if (dialog.type() !== "prompt") throw new Error(`${url}: a dialog says ${dialog.message()}`); });
  await page.goto(url);
  return page;
}

async function accessible(page, name) {
  const { violations } = await page.evaluate(`${axe}; axe.run()`);
  check(violations.length === 0, `${name}: ${violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html)}`).join("\n")}`);
}

const live = (page) => page.waitForFunction(() => document.getElementById("live").textContent === "live", null, { timeout: deadline });
const shows = (page, text) => page.getByText(text).first().waitFor({ timeout: deadline });

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
let organism = await start();
try {
  const [shop, ada] = [token("shop"), token("ada")];
  const operator = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await open(operator, organism.link);
  await page.waitForURL(`${organism.base}/`);
  await live(page);

  // A conversation comes onto the page by itself, and its tree grows.
  const base = organism.base;
  await send(base, shop, "<order xmlns='urn:example:walk'><text>a piano</text></order>");
  const row = page.locator("#conversations tr").first();
  await row.waitFor({ timeout: deadline });
  await row.locator("a.id").click();
  await shows(page, "boss");
  await live(page);
  const tree = page.url();
  await page.screenshot({ path: `${pictures}/console-conversation.png` });
  await accessible(page, "a conversation");

  // A person signs in by their token, on a narrow screen in the dark, and sees their question alone.
  const person = await browser.newContext({ viewport: { width: 360, height: 740 }, colorScheme: "dark" });
  let hers = await open(person, `${base}/`);
  check(hers.url().startsWith(`${base}/login`), `a stranger is asked to sign in: ${hers.url()}`);
  await accessible(hers, "the form to sign in");
  await hers.fill("#token", ada);
  await hers.click("button");
  await hers.waitForURL(`${base}/questions`, { timeout: deadline });
  await hers.locator("#questions a").first().click();
  await hers.fill("#text", "<verdict xmlns='urn:example:walk'>perhaps</verdict>");
  await hers.waitForFunction(() => document.getElementById("judged").textContent.includes("perhaps"), null, { timeout: deadline });
  check(await hers.locator("#judged.good").count() === 0, "a wrong answer is judged while it is written");
  await hers.screenshot({ path: `${pictures}/console-question.png` });
  await accessible(hers, "a question");
  check(await hers.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "a question fits a screen of 360 px");

  // The organism is killed; the question still waits, and she is still signed in.
  await end(organism.child);
  organism = await start();
  hers = await open(person, `${organism.base}/questions`);
  check(!hers.url().includes("/login"), "a browser stays signed in over a restart");
  await hers.locator("#questions a").first().click();
  await hers.fill("#text", "<verdict xmlns='urn:example:walk'>true</verdict>");
  await hers.locator("#judged.good").waitFor({ timeout: deadline });
  await hers.locator("a.chip", { hasText: "verdict" }).click();
  await hers.click("button[value=send]");
  await shows(hers, "nothing was sent: answer every question");
  await hers.selectOption("#field-0", "true");
  await accessible(hers, "the form of an answer");
  check(await hers.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "a form fits a screen of 360 px");
  await hers.click("button[value=send]");
  await shows(hers, "No question waits for you.");

  // The operator sees the end without a reload, retries with another order, and finds it by its text.
  const kept = tree.replace(base, "");
  const out = await open(operator, organism.base + kept);
  check(out.url().includes("/login"), "what a link has opened ends with its start");
  const again = await open(operator, `${organism.link}&then=${encodeURIComponent(kept)}`);
  await again.waitForURL(organism.base + kept, { timeout: deadline });
  await live(again);
  await shows(again, "answer to the client");
  await again.locator("article a", { hasText: "message" }).first().click();
  await again.fill("#edit", "<order xmlns='urn:example:walk'><text>a harp</text></order>");
  await again.locator("#judged.good").waitFor({ timeout: deadline });
  await again.screenshot({ path: `${pictures}/console-message.png` });
  await accessible(again, "a message");
  await again.click("button[value=retry]");
  await shows(again, "a harp");
  await again.goto(`${organism.base}/?text=harp`);
  check(await again.locator("#conversations tr").count() === 1, "a search finds the conversation of the harp alone");

  // A message that had to be repaired shows its bytes as they came, after the repair and as canonical XML.
  await send(organism.base, shop, "<order xmlns=urn:example:walk><text>salt & pepper</order>");
  await again.goto(`${organism.base}/?text=pepper`);
  await again.locator("#conversations a.id").first().click();
  await again.locator("article a", { hasText: "message" }).first().click();
  await shows(again, "As it came");
  check(await again.locator(".three pre").count() === 3, "a repaired message has three columns");
  check(await again.locator("mark small", { hasText: "stray-ampersand" }).count() === 1, "each repair is marked and named");
  await again.screenshot({ path: `${pictures}/console-repaired.png`, fullPage: true });
  await accessible(again, "a repaired message");
  await again.setViewportSize({ width: 360, height: 740 });
  check(await again.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "three columns fit a screen of 360 px");
  await again.setViewportSize({ width: 1280, height: 800 });

  // Payloads of attackers show as text: no dialog, no element, no request of theirs.
  const attacks = readFileSync(new URL("attacks.txt", import.meta.url), "utf8").split("\n").filter(Boolean);
  for (const attack of attacks) {
    const text = attack.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
    await send(organism.base, shop, `<note xmlns='urn:example:walk'>${text}</note>`);
  }
  await again.goto(`${organism.base}/?listener=parrot&state=ended`);
  await live(again);
  await again.waitForFunction((count) => document.querySelectorAll("#conversations tr").length === count, attacks.length, { timeout: deadline });
  for (const link of await again.locator("#conversations a.id").evaluateAll((links) => links.map((link) => link.href))) {
    await again.goto(link);
    await again.locator("pre").first().waitFor();
    const foreign = await again.evaluate(() => document.querySelectorAll("pre *, article script, article img, article iframe, article style, article a:not([href^='/messages/'])").length);
    check(foreign === 0, `${link}: foreign text is text`);
  }

  // Bulk: those that are checked, by keys, and all that a filter finds.
  for (let count = 0; count < 3; count += 1) await send(organism.base, shop, "<order xmlns='urn:example:walk'><text>many</text></order>");
  await again.goto(`${organism.base}/?state=open&listener=boss`);
  await again.waitForFunction(() => document.querySelectorAll("#conversations tr").length >= 4, null, { timeout: deadline });
  await again.keyboard.press("j");
  await again.keyboard.press("x");
  check(await again.locator("#conversations input:checked").count() === 1, "j and x check a row");
  await again.click("#all");
  await again.screenshot({ path: `${pictures}/console-conversations.png` });
  await accessible(again, "conversations");
  await again.getByText("Cancel checked").click();
  await shows(again, "done, 0 without an effect");
  await again.goto(`${organism.base}/?state=open&listener=boss`);
  check(await again.locator("#conversations tr").count() === 0, "all are cancelled");

  for (const path of ["questions", "dead-letters", "mailboxes", "tasks", "schedules", "listeners", "listeners/boss", "models", "acts"]) {
    await again.goto(`${organism.base}/${path}`);
    await live(again);
    await accessible(again, path);
    if (path === "listeners") await again.screenshot({ path: `${pictures}/console-organism.png` });
  }

  // Without script: a page, a filter and an act.
  const signedIn = await operator.storageState();
  const plain = await browser.newContext({ javaScriptEnabled: false, storageState: signedIn });
  const bare = await plain.newPage();
  await bare.goto(`${organism.base}/listeners`);
  await bare.locator("button[aria-label='Pause parrot']").click();
  check(await bare.locator("button[aria-label='Resume parrot']").count() === 1, "an act works without script");
  await bare.getByRole("button", { name: "Reload" }).click();
  check(await bare.getByRole("heading", { name: "Version 1" }).count() === 1, "the organism has changed");
  check(await bare.locator("button[aria-label='Resume parrot']").count() === 1, "what was paused stays so");

  // Who signs out is out, with every copy of the cookie.
  await bare.getByText("Sign out").click();
  await again.goto(`${organism.base}/acts`);
  check(again.url().includes("/login"), "the session is over on the server");
  console.log(`console: ${checks} checks, all passed`);
} finally {
  await browser.close();
  await end(organism.child).catch(() => {});
}
