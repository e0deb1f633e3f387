// What the types of the package allow, and what they refuse: checked by `tsc --strict`, never run.
import { type Infer, type JsonPayload, call, draft, listener, payload, progress, record, t } from "./index.js";

const Order = payload("{urn:t}order", {
  id: t.attribute(t.bigint),
  way: t.oneOf("fetched", "sent"),
  line: t.list(t.object({ cents: t.attribute(t.int), article: t.content(t.text) })),
  note: t.optional(t.text),
  gift: t.named("is-gift", t.bool),
});
const Price = payload("{urn:t}price", { cents: t.int });

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
type Flat<T> = { [K in keyof T]: T[K] };
const isSame: Same<Flat<Infer<typeof Price>>, { cents: number }> = true;

listener(Order, async ({ id, way, line, note, gift }, { signal, deadline }) => {
  const known: [bigint, "fetched" | "sent", number | undefined, string | undefined, boolean] = [id, way, line[0]?.cents, note, gift];
  const price = await call(Price({ cents: line.length }), { to: deadline ?? "desk", reply: Price });
  // @ts-expect-error: nothing says of which type this reply is.
  const other: Infer<typeof Price> = await call(Price({ cents: 1 }));
  // @ts-expect-error: cents is a number.
  const text: string = price.cents;
  // @ts-expect-error: no other way is known.
  Order({ id, way: "flown", line, gift });
  // @ts-expect-error: the id is missing.
  Order({ way, line, gift });
  const seen: string = await record("seen", async () => new Date());
  // @ts-expect-error: a date is a text where it was recorded.
  const when: Date = await record("when", () => new Date());
  progress(`${seen} ${when}`);
  draft(seen, { anew: true });
  // @ts-expect-error: a draft is text.
  draft(5);
  signal.throwIfAborted();
  return isSame ? [Price(price), `<price>${known.length}${text}${other.cents}</price>`] : undefined;
});

const Route = payload("{urn:t}route", {
  way: t.choice({ fetched: t.object({}), courier: t.object({ street: t.text }), "by-post": t.named("post", t.int) }),
  stops: t.list(t.choice({ town: t.text, break: t.int })),
});
listener(Route, ({ way, stops }) => {
  const street: string | undefined = "courier" in way ? way.courier?.street : undefined;
  const post: number = way["by-post"] ?? 0;
  Route({ way: { courier: { street: `${street}${post}` } }, stops: [{ town: "x" }, { break: 5 }, ...stops] });
  // @ts-expect-error: a choice is one of them.
  Route({ way: { courier: { street: "x" }, fetched: {} }, stops });
  // @ts-expect-error: no other choice is known.
  Route({ way: { flown: {} }, stops });
  // @ts-expect-error: a street is a string.
  Route({ way: { courier: { street: 5 } }, stops });
});
// @ts-expect-error: a choice is elements.
t.attribute(t.choice({ a: t.text }));

// @ts-expect-error: an object that no payload made has no name.
listener("{urn:t}other", (xml: string) => ({ cents: xml.length }));
// @ts-expect-error: an attribute is text.
t.attribute(t.object({}));

listener("other", async (message: JsonPayload) => {
  const reply = await call({ price: { cents: message["other"].cents } });
  return reply ? { sum: { value: 5 } } : [Price({ cents: 5 })];
});
// @ts-expect-error: payloads are XML, or JSON.
listener("another", (message: number) => undefined);
