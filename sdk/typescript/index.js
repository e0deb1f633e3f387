/**
 * Listeners of Systole in TypeScript and JavaScript: functions in a process that stays (`worker: [node, agent.mjs]`,
 * docs/worker.md). It needs Node 20 and nothing else.
 *
 *     const Add = payload("{urn:example:numbers:v1}add", { a: t.int, b: t.int });
 *     const Sum = payload("{urn:example:numbers:v1}sum", { value: t.attribute(t.int) });
 *
 *     listener(Add, async ({ a, b }) => Sum({ value: a + b }));
 *     run();
 *
 * A function gets a payload as an object, or its XML where it is registered by a name, and returns its emissions: an object
 * that a payload made, XML, a list of either, or nothing. The output of a script goes to the log. With `json: true` at the
 * listener payloads are JSON, `{ name: … }`, in place of XML (docs/json.md).
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { closeSync, constants, fstatSync, openSync, writeSync } from "node:fs";
import { Socket } from "node:net";

/** A fault: the answer to a call that failed. */
export class Fault extends Error {
  constructor({ code, message, retryable = false, rule, example }) {
    super(`${code}: ${message}${rule ? ` (${rule})` : ""}`);
    Object.assign(this, { name: "Fault", code, reason: message, retryable, rule, example });
  }
}

/** The message and the label of the call that a fault answered. */
const answered = new WeakMap();

const KIND = Symbol("systole.payload");
const payloads = new Map();
const functions = new Map();
const current = new AsyncLocalStorage();

// Fields: how a value is written and read as text, or the fields of an element, and where it stands.

const wrong = (where, what, found) => new TypeError(`${where} has to be ${what}, not ${found}`);
const shown = (value) =>
  typeof value === "string" ? JSON.stringify(value) : Object(value) === value ? typeof value : String(value);

/** A type of text: the noun for it, a test of its values, and how a text is parsed (undefined if it is none) and written. */
const simple = (what, is, parse, write = String, schema = { type: "string" }) => ({
  schema,
  write: (value, where) => {
    if (!is(value)) throw wrong(where, what, shown(value));
    return write(value);
  },
  read: (text, where) => {
    const value = parse(collapsed(text), text);
    if (value === undefined) throw wrong(where, what, shown(text));
    return value;
  },
});
/** A text without the white space of XML around it: JavaScript trims more. */
const collapsed = (text) => text.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, "");
const INTEGER = /^[-+]?\d+$/;
const NUMBER = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i;
const BOOLEANS = new Map([["true", true], ["1", true], ["false", false], ["0", false]]);
const UNBOUNDED = new Map([["INF", Infinity], ["+INF", Infinity], ["-INF", -Infinity], ["NaN", NaN]]);
const integer = (text) => (INTEGER.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined);
const float = (text) => (NUMBER.test(text) ? Number(text) : UNBOUNDED.get(text));
const floatText = (value) => (Number.isFinite(value) ? String(value) : String(value).replace("Infinity", "INF"));
const oneOf = (...values) => {
  if (!values.length || values.some((one) => typeof one !== "string"))
    throw new TypeError('t.oneOf takes one or more strings, such as t.oneOf("a", "b")');
  return simple(
    `one of ${values.map(shown).join(", ")}`,
    (value) => values.includes(value),
    (text, whole) => [whole, text].find((one) => values.includes(one)),
    String,
    { enum: values },
  );
};

/** The types of fields. */
export const t = {
  text: simple("a string", (value) => typeof value === "string", (_, whole) => whole),
  int: simple("an integer of at most 2^53 - 1 (t.bigint has no limit)", Number.isSafeInteger, integer, String, { type: "integer" }),
  bigint: simple(
    "a bigint",
    (value) => typeof value === "bigint",
    (text) => (INTEGER.test(text) ? BigInt(text.replace("+", "")) : undefined),
    String,
    { type: "integer" },
  ),
  float: simple("a number", (value) => typeof value === "number", float, floatText, { type: "number" }),
  bool: simple("true or false", (value) => typeof value === "boolean", (text) => BOOLEANS.get(text), String, { type: "boolean" }),
  oneOf,
  object: (fields) => ({ fields }),
  choice: (choices) => ({ choices }),
  optional: (field) => ({ ...field, optional: true }),
  list: (field) => ({ ...field, list: true, isDoubled: field?.list }),
  attribute: (field) => ({ ...field, place: "attribute" }),
  content: (field) => ({ ...field, place: "content" }),
  named: (name, field) => ({ ...field, name }),
};

// Names without a colon, and namespaces (Namespaces in XML 1.0).
const FIRST =
  "A-Z_a-z\\u{c0}-\\u{d6}\\u{d8}-\\u{f6}\\u{f8}-\\u{2ff}\\u{370}-\\u{37d}\\u{37f}-\\u{1fff}\\u{200c}\\u{200d}\\u{2070}-\\u{218f}" +
  "\\u{2c00}-\\u{2fef}\\u{3001}-\\u{d7ff}\\u{f900}-\\u{fdcf}\\u{fdf0}-\\u{fffd}\\u{10000}-\\u{effff}";
const NAME = new RegExp(`^[${FIRST}][-.0-9\\u{b7}\\u{300}-\\u{36f}\\u{203f}\\u{2040}${FIRST}]*$`, "u");
const NAMESPACE = /^[^\u{0}-\u{20}{}<>\u{d800}-\u{dfff}\u{fffe}\u{ffff}]*$/u;
const RESERVED = ["http://www.w3.org/XML/1998/namespace", "http://www.w3.org/2000/xmlns/"];

/** A character that XML doesn't have, a lone surrogate among them. */
const NO_CHARACTER = /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/u;

/** Declares a payload by its name and its fields; the function that it returns makes a value of it. */
export function payload(name, fields) {
  const [, namespace, local] = /^\{(.*?)\}(.*)$/s.exec(string("the name of a payload", name)) ?? [, "", name];
  if (!NAMESPACE.test(namespace) || RESERVED.includes(namespace))
    throw new TypeError(`${shown(namespace)} is no namespace: write a URI, such as {urn:example:orders:v1}order`);
  if (payloads.has(`{${namespace}}${local}`)) throw new TypeError(`${name} is a payload that was declared: write another name`);
  limitName("the payload", local, "an element");
  declare(local, fields);
  const kind = Object.assign((value) => Object.defineProperty({ ...value }, KIND, { value: kind }), {
    qname: `{${namespace}}${local}`,
    fields,
    encode: (value) => element(local, { fields }, value, namespace && ` xmlns="${quoted(namespace)}"`),
    decode: (xml) => kind(object(local, fields, parse(xml))),
    encodeJson: (value) => ({ [namespace ? kind.qname : local]: jsonOf({ fields }, value, local) }),
    decodeJson: (json) => kind(object(local, fields, foundIn(Object.values(json)[0]))),
  });
  payloads.set(kind.qname, kind);
  return kind;
}

function limitName(where, name, what) {
  if (!NAME.test(name)) throw new TypeError(`${where}: ${shown(name)} is no name of ${what} in XML: write letters, digits, - and _`);
}

/** Refuses fields that can't be written. */
function declare(where, fields, known = new Set()) {
  if (known.has(fields)) return;
  known.add(fields);
  // A literal { __proto__: t.text } has that type as its prototype, and no field.
  const above = Object.getPrototypeOf(Object(fields)) ?? {};
  if (Object.hasOwn(Object(fields), "__proto__") || ["write", "fields", "choices"].some((key) => key in above))
    throw new TypeError(`${where}.__proto__ is no field of an object: write t.named("__proto__", …) behind another key`);
  if (Object(fields) !== fields || Array.isArray(fields) || typeof fields === "function" || typeof fields.write === "function" || fields.list === true)
    throw new TypeError(`${where} needs an object of fields, such as { a: t.text }, not ${Array.isArray(fields) ? "an array" : shown(fields)}`);
  const places = new Map();
  for (const [key, field] of Object.entries(fields)) {
    const at = `${where}.${key}`;
    if (field?.qname) throw new TypeError(`${at} is a payload, and an element in it has no namespace of its own: write t.object({ … })`);
    if (field?.fields) declare(at, field.fields, known);
    else if (field?.choices) declareChoices(at, field, known);
    else if (!field?.write) throw new TypeError(`${at} has no type: write one of t, such as t.text`);
    if (field.isDoubled) throw new TypeError(`${at} is a list of lists: write t.list(t.object({ … })) with a list in it`);
    if (field.place && (!field.write || field.list)) throw new TypeError(`${at} is elements, but its place holds one text`);
    if (field.place === "content" && field.optional)
      throw new TypeError(`${at}: an element without a text reads as an empty one: write t.content without t.optional`);
    if (field.list && field.optional)
      throw new TypeError(`${at}: a list that is missing and an empty one are both nothing in the XML: write t.list without t.optional`);
    for (const name of names(key, field)) {
      if (field.place !== "content") limitName(at, name, field.place ? "an attribute" : "an element");
      if (field.place === "attribute" && name === "xmlns") throw new TypeError(`${at}: xmlns declares a namespace: write another name`);
      const place = { attribute: `the attribute ${name}`, content: "the text of the element" }[field.place] ?? `<${name}>`;
      if (places.has(place)) throw new TypeError(`${at}: ${places.get(place)} is ${place}, too: write another name`);
      places.set(place, at);
    }
  }
}

function declareChoices(where, { choices, name }, known) {
  if (Object(choices) !== choices || Array.isArray(choices) || !Object.keys(choices).length)
    throw new TypeError(`${where}: t.choice takes an object of one field or more, such as t.choice({ a: t.text, b: t.int })`);
  if (name !== undefined) throw new TypeError(`${where} has no element of its own: name its choices`);
  declare(where, choices, known);
  const other = Object.entries(choices).find(([, one]) => one.place || one.list || one.optional || one.choices);
  if (other) throw new TypeError(`${where}.${other[0]} is one element of a choice: write t.object or a type of text`);
}

/** The names of the elements that a field may be. */
const names = (key, { name, choices }) =>
  choices ? Object.entries(choices).map(([key, { name }]) => name ?? key) : [name ?? key];

/** Encodes a payload as XML; a text is XML already. */
export function encode(value) {
  if (typeof value === "string") return limitText("the XML", value);
  const kind = value?.[KIND];
  if (!kind) throw new TypeError("no payload: make it with the function that payload() returned, or write XML; an object needs `json: true` at the listener");
  return kind.encode(value);
}

function element(name, field, value, attributes = "", where = name) {
  if (field.choices) return chosen(field.choices, value, where);
  if (!field.fields) return `<${name}>${escaped(written(field, value, where))}</${name}>`;
  if (Object(value) !== value) throw wrong(where, "an object", shown(value));
  const other = Object.keys(value).find((key) => value[key] !== undefined && !Object.hasOwn(field.fields, key));
  if (other !== undefined) throw new TypeError(`${where} has no field ${other}: write ${Object.keys(field.fields).join(", ")}`);
  let content = "";
  for (const [key, inner] of Object.entries(field.fields)) {
    // A field may have the name of a method of every object.
    const found = Object.hasOwn(value, key) || !(key in Object.prototype) ? value[key] : undefined;
    const at = `${where}.${key}`;
    if (found === undefined || found === null) {
      if (inner.optional || inner.list) continue;
      throw new TypeError(`${at} is missing`);
    }
    const as = inner.name ?? key;
    if (inner.list && !Array.isArray(found)) throw wrong(at, "an array", shown(found));
    if (inner.place === "attribute") attributes += ` ${as}="${quoted(written(inner, found, at))}"`;
    else if (inner.place === "content") content += escaped(written(inner, found, at));
    else if (!inner.list) content += element(as, inner, found, "", at);
    else for (let n = 0; n < found.length; n++) content += element(as, inner, found[n], "", `${at}[${n}]`);
  }
  return `<${name}${attributes}>${content}</${name}>`;
}

/** Encodes a payload as JSON that names it; an object with one property is such JSON already. */
export function encodeJson(value) {
  const kind = value?.[KIND];
  if (kind) return kind.encodeJson(value);
  if (Object(value) !== value || Array.isArray(value) || Object.keys(value).length !== 1)
    throw new TypeError("no payload as JSON: make it with the function that payload() returned, or write { name: … }");
  return value;
}

/** The JSON of an element: a bare text where there is nothing else. Takes what `element` takes. */
function jsonOf(field, value, where) {
  if (!field.fields) return jsonScalar(field, value, where);
  // The errors of the fields are those of the XML.
  element("element", field, value, "", where);
  const fields = Object.entries(field.fields);
  if (fields.length === 1 && fields[0][1].place === "content") return jsonScalar(fields[0][1], value[fields[0][0]], where);
  // Elements of a choice that may be repeated have an order, which properties don't keep.
  const ordered = fields.some(([, inner]) => inner.choices && inner.list) ? [] : undefined;
  const out = ordered ? { $: ordered } : {};
  for (const [key, inner] of fields) {
    const found = Object.hasOwn(value, key) || !(key in Object.prototype) ? value[key] : undefined;
    if (found === undefined || found === null) continue;
    const at = `${where}.${key}`;
    const name = inner.name ?? key;
    const put = (name, json) => Object.defineProperty(out, name, { value: json, enumerable: true });
    if (inner.place === "attribute") put(`@${name}`, jsonScalar(inner, found, at));
    else if (inner.place === "content") put("$", jsonScalar(inner, found, at));
    else {
      const children = (inner.list ? found : [found]).map((one) => jsonChild(name, inner, one, at));
      if (ordered) ordered.push(...children.map(([name, json]) => ({ [name]: json })));
      else if (inner.list) children.length && put(name, children.map(([, json]) => json));
      else children.forEach(([name, json]) => put(name, json));
    }
  }
  return out;
}

/** The name and the JSON of a child element. */
function jsonChild(name, field, value, where) {
  if (!field.choices) return [name, jsonOf(field, value, where)];
  const [key] = Object.keys(value).filter((key) => value[key] !== undefined);
  const choice = field.choices[key];
  return [choice.name ?? key, jsonOf(choice, value[key], `${where}.${key}`)];
}

/** A value as JSON has it without loss, or else its text. */
function jsonScalar(field, value, where) {
  const text = written(field, value, where);
  if (typeof value === "boolean" || (typeof value === "number" && Number.isFinite(value))) return value;
  return typeof value === "bigint" && Number.isSafeInteger(Number(value)) ? Number(value) : text;
}

/** The contracts of all payloads that the program declares, as JSON Schema; their namespace is the `$id`. */
export function jsonSchema() {
  const names = [...payloads.keys()].map((qname) => /^\{(.*)\}(.*)$/s.exec(qname).slice(1));
  const namespaces = new Set(names.map(([namespace]) => namespace));
  if (!names.length) throw new TypeError("the program has no payloads: declare them by payload()");
  if (namespaces.size > 1)
    throw new TypeError(`a document has payloads of one namespace, and these are of several: ${[...namespaces].join(", ")}`);
  const kinds = [...payloads.values()];
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    ...(names[0][0] && { $id: names[0][0] }),
    $defs: Object.fromEntries(names.map(([, local], at) => [local, schemaOf(local, kinds[at])])),
  };
}

function schemaOf(where, field) {
  if (field.choices) throw new TypeError(`${where}: a choice has no JSON Schema here: write optional fields, or an .xsd file`);
  if (!field.fields) return field.schema;
  const fields = Object.entries(field.fields);
  if (fields.length === 1 && fields[0][1].place === "content") return fields[0][1].schema;
  const schema = { type: "object", properties: {}, required: [], additionalProperties: false };
  for (const [key, inner] of fields) {
    if (inner.place === "content")
      throw new TypeError(`${where}.${key}: a text beside other fields has no JSON Schema here: write a field with a name, or an .xsd file`);
    const name = `${inner.place === "attribute" ? "@" : ""}${inner.name ?? key}`;
    const one = schemaOf(`${where}.${key}`, inner);
    schema.properties[name] = inner.list ? { type: "array", items: one } : one;
    if (!inner.list && !inner.optional) schema.required.push(name);
  }
  return schema;
}

/** The text of a value of a field, in characters that XML has. */
function written(field, value, where) {
  const text = field.write(value, where);
  const code = NO_CHARACTER.exec(text)?.[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
  if (code) throw new TypeError(`${where}: XML has no character U+${code}: remove it, or write base64`);
  return text;
}

/** The element of a choice, an object that has one of them. */
function chosen(choices, value, where) {
  const keys = Object(value) === value ? Object.keys(value).filter((key) => value[key] !== undefined) : [];
  const [key] = keys;
  if (keys.length !== 1 || !Object.hasOwn(choices, key)) {
    const what = `an object with one of ${Object.keys(choices).join(", ")}`;
    throw wrong(where, what, keys.length ? `one with ${keys.join(" and ")}` : shown(value));
  }
  const field = choices[key];
  return element(field.name ?? key, field, value[key], "", `${where}.${key}`);
}

/** Half of a surrogate pair without the other half: it is no character, and no line to the pump can have it. */
const LONE = /\p{Surrogate}/u;

/** Refuses such a half, with its place. */
function limitText(where, text) {
  const at = text.search(LONE);
  if (at < 0) return text;
  const before = text.slice(0, at).split("\n");
  throw new TypeError(
    `${where}: line ${before.length}, column ${[...before.at(-1)].length + 1}: ` +
      `U+${text.charCodeAt(at).toString(16).toUpperCase()} is half of a surrogate pair, and no character: remove it, or replace it (toWellFormed())`,
  );
}

/** A text for people, in which such a half is shown as it is written in JSON. */
const legible = (text) => text.replace(new RegExp(LONE, "gu"), (half) => `\\u${half.charCodeAt(0).toString(16)}`);

/** The first characters of a text for people, whole ones. */
const clipped = (text, most = SENTENCE) => (text.length > most ? text.slice(0, most).replace(/[\ud800-\udbff]$/, "") : text);

const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#xD;", "\n": "&#xA;", "\t": "&#x9;" };
const escaped = (text) => text.replace(/[&<>\r]/g, (one) => ENTITIES[one]);
const quoted = (text) => text.replace(/[&<>"\r\n\t]/g, (one) => ENTITIES[one]);
const NAMED = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };
const plain = (text) =>
  text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (_, hex, decimal, name) =>
    name ? NAMED[name] : String.fromCodePoint(hex ? parseInt(hex, 16) : Number(decimal)),
  );

function object(where, fields, found) {
  const value = {};
  for (const [key, field] of Object.entries(fields)) {
    const name = field.name ?? key;
    const at = `${where}.${key}`;
    const as = names(key, field);
    // Names in JSON say nothing of the namespace.
    const children = found.children.filter((child) => as.includes(child.name) && child.namespace === found.namespace);
    const read = (one) => valueOf(at, field, one);
    const attribute = found.attributes.get(name);
    if (field.list) value[key] = children.map(read);
    else if (field.place === "content") value[key] = read(found);
    else if (field.place === "attribute" && attribute !== undefined) value[key] = field.read(attribute, at);
    else if (!field.place && children.length === 1) value[key] = read(children[0]);
    else if (!field.place && children.length) throw wrong(at, "one element (t.list takes any number)", children.length);
    else if (!field.optional) throw new TypeError(`${at} is missing: t.optional takes none`);
  }
  return value;
}

function valueOf(where, field, found) {
  if (field.fields) return object(where, field.fields, found);
  if (!field.choices) return field.read(found.text, where);
  const [key, chosen] = Object.entries(field.choices).find(([key, one]) => found.name === (one.name ?? key));
  return { [key]: valueOf(`${where}.${key}`, chosen, found) };
}

/** Parses the XML of a payload of the pump, which is canonical. */
function parse(xml) {
  const root = { children: [], text: "", prefixes: new Map([["", ""]]) };
  const open = [root];
  for (const [, text, end, name, inner, closed] of xml.matchAll(
    /([^<]+)|<(?:!--.*?--|\?.*?\?|(\/)?([^\s/>]+)((?:\s+[^\s=]+="[^"]*")*)\s*(\/)?)>/gs,
  )) {
    const parent = open.at(-1);
    if (text) parent.text += plain(text);
    else if (end) open.pop();
    else if (name) {
      const found = { children: [], text: "", attributes: new Map(), prefixes: parent.prefixes };
      for (const [, key, value] of inner.matchAll(/([^\s=]+)="([^"]*)"/g)) {
        const prefix = key === "xmlns" ? "" : key.startsWith("xmlns:") ? key.slice(6) : undefined;
        if (prefix === undefined) found.attributes.set(key, plain(value));
        else found.prefixes = new Map(found.prefixes).set(prefix, plain(value));
      }
      const [local, prefix] = name.split(":").reverse();
      Object.assign(found, { name: local, namespace: found.prefixes.get(prefix ?? "") });
      parent.children.push(found);
      if (!closed) open.push(found);
    }
  }
  return root.children[0];
}

/** What `parse` finds in the XML, of the JSON of an element. */
function foundIn(json) {
  const found = { children: [], text: "", attributes: new Map() };
  const child = (key, json) => found.children.push({ ...foundIn(json), name: localOf(key) });
  if (Array.isArray(json)) found.text = json.map((one) => foundIn(one).text).join(" ");
  else if (Object(json) !== json) found.text = json === null ? "" : String(json);
  else
    for (const [key, value] of Object.entries(json)) {
      if (key.startsWith("@")) found.attributes.set(key.slice(1), foundIn(value).text);
      else if (key !== "$") (Array.isArray(value) ? value : [value]).forEach((one) => child(key, one));
      else if (!Array.isArray(value)) found.text = foundIn(value).text;
      else
        for (const item of value)
          if (typeof item === "string") found.text += item;
          else Object.entries(item).forEach(([key, one]) => child(key, one));
    }
  return found;
}

const localOf = (name) => name.slice(name.lastIndexOf("}") + 1);

/** What is declared for a payload: by its name, or by its local name in whatever namespace. */
const declared = (known, name) => known.get(name) ?? known.get(`{}${localOf(name)}`);

/** The payload of JSON that names it: a local name stands for that of any namespace. */
function declaredJson(json) {
  const [name] = Object.keys(json);
  if (name.startsWith("{")) return declared(payloads, name);
  return [...payloads.values()].find(({ qname }) => localOf(qname) === name);
}

/** Registers a function for a payload, or for a name: `listener("{namespace}name", xml => …)`; a name without a namespace is that
 * of a payload in whatever namespace. */
export function listener(what, handle) {
  const kind = typeof what === "string" ? undefined : what;
  const name = kind ? kind.qname : what;
  if (typeof name !== "string") throw wrong("the first argument of listener()", "a payload or a name", shown(name));
  if (typeof handle !== "function") throw wrong(`the listener of ${name}`, "a function", shown(handle));
  if (functions.has(name)) throw new TypeError(`${name} has a listener: write one function for it`);
  functions.set(name.startsWith("{") ? name : `{}${name}`, { handle, kind });
  return handle;
}

/** The message that the calling function handles. */
export function message() {
  const found = current.getStore();
  if (!found) throw new Error("no message is handled here");
  return found;
}

/** Calls another listener and awaits the reply, a value of the payload `reply` if that is given; throws a `Fault`. */
export function call(request, { to, reply } = {}) {
  if (reply !== undefined && payloads.get(reply?.qname) !== reply)
    throw wrong("reply", "a payload that was declared", shown(reply));
  return unheard(worker.call(message(), worker.encode(request), to === undefined ? to : limitText("to", string("to", to)), reply));
}

/** A promise that may reject before it is awaited, or that is never awaited: neither ends the process. */
function unheard(promise) {
  promise.catch(() => {});
  return promise;
}

function string(what, value) {
  if (typeof value !== "string") throw new TypeError(`${what} has to be a string, not ${value === null ? value : typeof value}`);
  return value;
}

/**
 * Learns a value that can't be learned twice alike, records it as JSON, and resolves with it once it is durable. A function that
 * runs again gets the recorded value of that name, and `learn` isn't called.
 */
export function record(name, learn) {
  return unheard(recorded(message(), limitText("the name", string("the name", name)), learn));
}

async function recorded(context, name, learn) {
  const before = worker.running.get(context.id)?.recorded ?? [];
  const at = before.findIndex((one) => one.name === name);
  if (at >= 0) return before.splice(at, 1)[0].value;
  // The value as a run after this one will get it.
  const value = JSON.parse(JSON.stringify(await learn()) ?? "null");
  limitValue(`the value of ${name}`, value, 100);
  await worker.ask(context, { record: name, value });
  return value;
}

function limitValue(where, value, left) {
  if (typeof value === "string") limitText(where, value);
  if (value === null || typeof value !== "object") return;
  if (!left) throw new RangeError("a recorded value is nested deeper than 100");
  for (const [key, one] of Object.entries(value)) {
    limitText(`${where}: a key`, key);
    limitValue(Array.isArray(value) ? `${where}[${key}]` : `${where}.${key}`, one, left - 1);
  }
}

/** Tells operators how far the function is: the event `progress`, with 4096 bytes of the text. */
export function progress(text) {
  const { id } = message();
  string("progress", text);
  if (!worker.running.has(id)) return;
  let said = clipped(legible(clipped(text)));
  // A character has at most 6 bytes in JSON.
  for (let over; said && (over = Buffer.byteLength(JSON.stringify({ id, progress: said })) - worker.longest) > 0; )
    said = clipped(said, said.length - (Math.floor(over / 6) + 1));
  worker.send({ id, progress: said });
}

/** Adds text to the draft of the function's answer: see index.d.ts. */
export function draft(text, { anew = false } = {}) {
  const { id } = message();
  string("draft", text);
  text = legible(text);
  if (!worker.running.has(id)) return;
  // A character has at most 6 bytes in JSON; the pump takes lines of some KiB in any case.
  const most = Math.min(Math.max(Math.floor((worker.longest - 256) / 6), 512), 1 << 16);
  for (let begin = 0; begin < text.length || (anew && !begin); ) {
    let end = Math.min(begin + most, text.length);
    // No half of a character.
    if (end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end -= 1;
    worker.send({ id, draft: text.slice(begin, end), anew: anew && !begin ? true : undefined });
    if (!text) break;
    begin = end;
  }
}

/** Reports what a request of the function to a model used: see index.d.ts. */
export function usage({ model, provider, cost = 0, ms = 0, ...tokens }) {
  const { id } = message();
  const used = {};
  for (const name of ["input", "output", "cached", "written"]) {
    const { [name]: count = 0 } = tokens;
    if (!Number.isSafeInteger(count) || count < 0) throw new RangeError(`${name} has to be a whole number from 0 on, not ${count}`);
    used[name] = count;
  }
  for (const [name, value] of Object.entries({ cost, ms }))
    if (!(value >= 0 && value < 2 ** 53)) throw new RangeError(`${name} has to be a number from 0 on, not ${value}`);
  for (const [name, value] of Object.entries({ model, provider }))
    if (value !== undefined) used[name] = clipped(legible(clipped(string(name, value), 256)), 256);
  if (!worker.running.has(id)) return;
  worker.send({ id, usage: { ...used, cost, ms: Math.round(ms) } });
}

/** Characters of a sentence; the pump keeps as many bytes. */
const SENTENCE = 4096;

// What is thrown may be anything, even a value that has no text and can't be printed.

function sentence(thrown) {
  try {
    return clipped(legible(clipped(String(thrown?.message || thrown?.name || thrown))));
  } catch {
    return "what was thrown has no text";
  }
}

function log(thrown) {
  try {
    if (!(thrown instanceof Fault)) console.error(thrown);
  } catch {
    console.error(sentence(thrown));
  }
}

const worker = {
  /** The messages that are handled, by id: what cancels each, what settles its open calls, by label, and its recorded values. */
  running: new Map(),
  labels: 0,
  out: [],
  /** True if the payloads in the lines are JSON. */
  isJson: false,

  encode(value) {
    return this.isJson ? encodeJson(value) : encode(value);
  },

  hear(line) {
    if ("type" in line) this.start(line);
    else if ("as" in line) {
      const calls = this.running.get(line.id)?.calls;
      const open = calls?.get(line.as);
      calls?.delete(line.as);
      if (line.fault) {
        const fault = new Fault(line.fault);
        answered.set(fault, { id: line.id, as: line.as });
        open?.reject(fault);
      } else open?.resolve(line.reply);
    } else if ("cancel" in line) {
      const { abort, calls } = this.running.get(line.cancel) ?? {};
      this.running.delete(line.cancel);
      abort?.abort();
      calls?.forEach(({ reject }) => reject(abort.signal.reason));
    } else if ("ping" in line) this.send({ pong: line.ping });
  },

  async start(line) {
    const abort = new AbortController();
    const { id, type, from: sender, thread, in_reply_to: inReplyTo, index, total, remaining, deadline, traceparent } = line;
    const head = { id, type, sender, thread, inReplyTo, index, total, remaining, deadline, traceparent };
    const context = Object.freeze({ ...head, history: line.history ?? [], signal: abort.signal });
    this.running.set(id, { abort, calls: new Map(), recorded: line.recorded ?? [] });
    this.isJson = typeof line.payload !== "string";
    let answer;
    try {
      const { handle, kind } = declared(functions, type) ?? {};
      if (!handle) throw new Error(`no function listens to ${type}`);
      const decoded = () => (this.isJson ? kind.decodeJson(line.payload) : kind.decode(line.payload));
      const said = await current.run(context, async () => handle(kind ? decoded() : line.payload, context));
      answer = { payloads: (said == null ? [] : Array.isArray(said) ? said : [said]).map((one) => this.encode(one)) };
    } catch (error) {
      // The pump passes on the fault of that call: its code, and whether a retry may help.
      const call = answered.get(error);
      answer = { error: sentence(error), as: call?.id === id ? call.as : undefined };
      // A cancelled message is over: what its function throws is no failure.
      if (!abort.signal.aborted) log(error);
    }
    if (!this.running.delete(id)) return;
    try {
      this.write(this.bounded({ id, ...answer }));
    } catch (error) {
      this.send({ id, error: sentence(error) });
    }
  },

  /** Sends a line about a message, and awaits its answer. */
  ask({ id, signal }, line) {
    signal.throwIfAborted();
    const calls = this.running.get(id)?.calls;
    if (!calls) throw new Error("the message was answered: nothing more can be asked for it");
    const label = String(this.labels++);
    const text = this.bounded({ id, ...line, as: label });
    const answer = new Promise((resolve, reject) => calls.set(label, { resolve, reject }));
    this.write(text);
    return answer;
  },

  async call(context, request, to, expected) {
    const reply = await this.ask(context, { call: request, to });
    const isJson = typeof reply !== "string";
    const root = isJson ? undefined : parse(reply);
    const name = isJson ? Object.keys(reply)[0] : `{${root.namespace}}${root.name}`;
    const kind = isJson ? declaredJson(reply) : declared(payloads, name);
    if (expected && expected !== kind) throw wrong("the reply", expected.qname, name);
    return kind ? (isJson ? kind.decodeJson(reply) : kind.decode(reply)) : reply;
  },

  send(line) {
    this.write(JSON.stringify(line));
  },

  /** A line about a message. The pump would fail that for one that is too long, with a sentence of its own. */
  bounded(line) {
    const text = JSON.stringify(line);
    const bytes = Buffer.byteLength(text);
    if (bytes > this.longest)
      throw new RangeError(`a line of ${bytes} bytes is too long: the pump takes at most ${this.longest} (limits: message_bytes)`);
    return text;
  },

  write(text) {
    if (!this.out.length) setImmediate(() => this.flush());
    this.out.push(`${text}\n`);
  },

  flush() {
    let data = Buffer.from(this.out.splice(0).join(""));
    while (data.length) data = data.subarray(writeSync(this.descriptor, data));
  },
};

/** Handles messages until the organism ends. Each module that registers functions may call it: they are all served. */
export function run() {
  // Of systole-schema, which runs a program for its contracts.
  if (globalThis[Symbol.for("systole.schema")]) return globalThis[Symbol.for("systole.schema")](jsonSchema);
  if (!process.env.SYSTOLE_WORKER) {
    console.error("systole runs this program, by worker: in an organism.yaml");
    process.exit(1);
  }
  if (worker.descriptor !== undefined) return;
  const { input, output } = streams ?? takeStreams();
  worker.descriptor = output;
  worker.longest = Number(process.env.SYSTOLE_WORKER_LINE ?? Infinity);
  // A promise that a function forgot ends no other function.
  process.on("unhandledRejection", log);
  let begun = [];
  const lines = input === 0 ? process.stdin : new Socket({ fd: input, readable: true, writable: false });
  lines.on("data", (chunk) => {
    let from = 0;
    for (let end; (end = chunk.indexOf(10, from)) >= 0; from = end + 1) {
      const line = Buffer.concat([...begun, chunk.subarray(from, end)]);
      begun = [];
      worker.hear(JSON.parse(line.toString()));
    }
    if (from < chunk.length) begun.push(chunk.subarray(from));
  });
  lines.on("end", () => {
    worker.flush();
    // No caller waits for functions that still run.
    process.exit(0);
  });
}

// Before any code of the program, which may start others.
const streams = areHere() ? takeStreams() : undefined;

/**
 * States whether both streams are the pump's: a program that a worker started may have its variable, and not its pipes.
 */
function areHere() {
  try {
    return [0, Number(process.env.SYSTOLE_WORKER || NaN)].every((end) => fstatSync(end).isFIFO());
  } catch {
    return false;
  }
}

/**
 * Moves the protocol to descriptors that no program inherits which the worker starts: for such a program standard input is empty.
 * Returns the descriptors of the lines from the pump, which is 0 for what is no pipe, and of those to it.
 */
function takeStreams() {
  let [input, output] = [0, Number(process.env.SYSTOLE_WORKER)];
  try {
    const own = openSync(`/dev/fd/${output}`, constants.O_WRONLY);
    closeSync(output);
    output = own;
  } catch {} // It is no pipe.
  try {
    if (fstatSync(0).isFIFO()) {
      // Not to wait for a writer, if that is gone.
      input = openSync("/dev/fd/0", constants.O_RDONLY | constants.O_NONBLOCK);
      closeSync(0);
      openSync("/dev/null", constants.O_RDONLY); // The lowest free number is 0.
    }
  } catch {} // It is closed.
  return { input, output };
}
