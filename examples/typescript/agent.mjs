// @ts-check
/* Two listeners in one program that stays: one converts prices, the other calls it for each line of an order. */
import { Fault, call, listener, payload, run, t } from "../../sdk/typescript/index.js";

const SHOP = "urn:example:shop:v1";

const Order = payload(`{${SHOP}}order`, {
  currency: t.attribute(t.oneOf("EUR", "USD", "CHF")),
  line: t.list(t.object({ cents: t.attribute(t.int), article: t.content(t.text) })),
  note: t.optional(t.text),
});
const Invoice = payload(`{${SHOP}}invoice`, { total: t.int, note: t.text });
const Convert = payload(`{${SHOP}}convert`, { cents: t.int, to: t.oneOf("EUR", "USD", "CHF") });
const Converted = payload(`{${SHOP}}converted`, { cents: t.attribute(t.int) });

/** What a cent of EUR is worth. */
const RATES = { EUR: 1, USD: 1.25 };

listener(Convert, ({ cents, to }) => {
  if (!(to in RATES)) throw new Error(`no rate of ${to} is known`);
  return Converted({ cents: Math.round(cents * RATES[/** @type {keyof typeof RATES} */ (to)]) });
});

listener(Order, async ({ line, currency, note }, { signal }) => {
  try {
    const prices = line.map(async ({ cents }) => {
      const converted = /** @type {import("../../sdk/typescript/index.js").Infer<typeof Converted>} */ (
        await call(Convert({ cents, to: currency }))
      );
      return converted.cents;
    });
    const total = (await Promise.all(prices)).reduce((sum, cents) => sum + cents, 0);
    console.log(`${line.length} lines, ${total} cents`);
    return Invoice({ total, note: `${line.map(({ article }) => article).join(" & ")}${note ? `: ${note}` : ""}` });
  } catch (error) {
    if (!(error instanceof Fault) || signal.aborted) throw error;
    return Invoice({ total: 0, note: error.reason });
  }
});

run();
