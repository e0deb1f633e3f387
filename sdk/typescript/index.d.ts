/** Listeners of Systole: functions in a process that stays (`worker: [node, agent.mjs]`, docs/worker.md). */

/** A fault: the answer to a call that failed. `reason` is its sentence, `message` has the code and the rule with it. */
export class Fault extends Error {
  constructor(fault: { code: string; message: string; retryable?: boolean; rule?: string; example?: string });
  readonly code: string;
  readonly reason: string;
  readonly retryable: boolean;
  readonly rule?: string;
  readonly example?: string;
}

/** Metadata of the message that a function handles; times and ids as text. */
export interface Message {
  readonly id: string;
  readonly type: string;
  readonly sender: string;
  readonly thread: string;
  readonly inReplyTo?: string;
  readonly index?: number;
  readonly total?: number;
  readonly remaining?: number;
  readonly deadline?: string;
  /** The caller that requests to other programs name in their header `traceparent` (W3C Trace Context). */
  readonly traceparent?: string;
  readonly history: readonly { readonly from: string; readonly payload: string | JsonPayload; readonly number: number; readonly answers?: number }[];
  /** Aborted when the message is cancelled. */
  readonly signal: AbortSignal;
}

declare const kind: unique symbol;
declare const value: unique symbol;

/** A type of text. */
export interface Text<T> {
  readonly [kind]: "text";
  readonly [value]: T;
}
/** A type of elements. */
export interface Nested<T> {
  readonly [kind]: "nested";
  readonly [value]: T;
}
type Type<T = unknown> = Text<T> | Nested<T>;
type Optional<F> = F & { readonly optional: true };
type List<T> = { readonly [kind]: "list"; readonly [value]: T[] };
type Field = Type | List<unknown>;
export type Fields = { readonly [name: string]: Field };

type OptionalKeys<F> = { [K in keyof F]: F[K] extends { readonly optional: true } ? K : never }[keyof F];
type ValueOf<F> = F extends { readonly [value]: infer T } ? T : never;
/** The object that has these fields. */
export type Values<F> = { [K in Exclude<keyof F, OptionalKeys<F>>]: ValueOf<F[K]> } & {
  [K in OptionalKeys<F>]?: ValueOf<F[K]>;
};

/** An object that has one of these fields. */
export type Choice<F> = {
  [K in keyof F]: { [One in K]: ValueOf<F[K]> } & { [Other in Exclude<keyof F, K>]?: undefined };
}[keyof F];

/**
 * The types of fields. A field is a child element of its name in the namespace of the payload, unless it says otherwise. A value or
 * a text of another type is a TypeError that names the field.
 */
export declare const t: {
  readonly text: Text<string>;
  /** An integer that a number holds, at most 2^53 - 1 away from 0: a greater one is an error. */
  readonly int: Text<number>;
  readonly bigint: Text<bigint>;
  readonly float: Text<number>;
  readonly bool: Text<boolean>;
  oneOf<const T extends string>(...values: T[]): Text<T>;
  object<const F extends Fields>(fields: F): Nested<Values<F>>;
  /** A choice: an element of one of these names, as an object with that field. */
  choice<const F extends { readonly [name: string]: Type }>(choices: F): Nested<Choice<F>>;
  /** None or one. */
  optional<F extends Type>(field: F): Optional<F>;
  /** Any number. */
  list<T>(field: Type<T>): List<T>;
  /** An attribute. */
  attribute<F extends Text<unknown>>(field: F): F;
  /** The text of the element itself. */
  content<F extends Text<unknown>>(field: F): F;
  /** Another name in the XML. */
  named<F extends Field>(name: string, field: F): F;
};

/** A payload as JSON, an object with one property, its name: of listeners with `json: true` (docs/json.md). */
export type JsonPayload = { readonly [name: string]: any };

declare const made: unique symbol;
/** A value of a payload. */
export type Made<T> = T & { readonly [made]: true };

/** A payload: a function that makes a value of it. */
export interface Payload<T> {
  (value: T): Made<T>;
  readonly qname: string;
  encode(value: T): string;
  decode(xml: string): Made<T>;
  encodeJson(value: T): JsonPayload;
  decodeJson(json: JsonPayload): Made<T>;
}

/** The type of a payload's values. */
export type Infer<P> = P extends Payload<infer T> ? T : never;

/** Declares a payload by its name, `{namespace}name`, or `name` in whatever namespace, and its fields. */
export declare function payload<const F extends Fields>(name: string, fields: F): Payload<Values<F>>;

/** Encodes a payload as XML; a text is XML already. */
export declare function encode(value: Made<object> | string): string;

/** Encodes a payload as JSON that names it; an object with one property is such JSON already. */
export declare function encodeJson(value: Made<object> | JsonPayload): JsonPayload;

/** The contracts of all payloads that the program declares, as JSON Schema (docs/json.md); their namespace is the `$id`. */
export declare function jsonSchema(): { readonly $defs: { readonly [name: string]: object }; readonly [keyword: string]: unknown };

/** The emissions of a function, and of one of a listener with `json: true`. */
export type Emissions = Some<Made<object> | string>;
export type JsonEmissions = Some<Made<object> | JsonPayload>;
type Some<E> = E | readonly E[] | null | undefined | void;
type Handle<T> = (payload: T, message: Message) => Emissions | Promise<Emissions>;

/**
 * Registers a function for a payload, or by a name for the XML of it, or, with `json: true`, the JSON. A name without a namespace
 * is that of a payload in whatever namespace.
 */
export declare function listener<T>(what: Payload<T>, handle: Handle<Made<T>>): typeof handle;
export declare function listener(what: string, handle: Handle<string>): typeof handle;
export declare function listener(
  what: string,
  handle: (payload: JsonPayload, message: Message) => JsonEmissions | Promise<JsonEmissions>,
): typeof handle;

/** The message that the calling function handles. */
export declare function message(): Message;

/**
 * Calls another listener and awaits the reply; throws a `Fault`, or the reason of `message().signal` when the message is
 * cancelled. With `reply` the reply is a value of that payload, and another one is a TypeError. Without it a payload that was
 * declared comes as its value, any other as its XML, or, with `json: true`, its JSON.
 */
export declare function call<T>(
  request: Made<object> | string | JsonPayload,
  options: { to?: string; reply: Payload<T> },
): Promise<Made<T>>;
export declare function call(request: Made<object> | string | JsonPayload, options?: { to?: string }): Promise<unknown>;

/** The value as JSON gives it back: a date is a text, what is undefined is null. */
export type Json<T> = T extends undefined | void ? null : T extends { toJSON(): infer J } ? J : T;

/**
 * Learns a value that can't be learned twice alike, records it as JSON, and resolves with it once it is durable. A function that
 * runs again, after the end of its process or of the organism, gets the recorded value of that name, and `learn` isn't called.
 * Equal names get theirs in the order in which they were recorded: so values that are learned side by side need different names.
 */
export declare function record<T>(name: string, learn: () => T | Promise<T>): Promise<Json<T>>;

/** Tells operators how far the function is: the event `progress`, with 4096 bytes of the text. */
export declare function progress(text: string): void;

/**
 * Shows what the function has written so far of its answer: adds text to its draft, which clients read while it grows
 * (docs/drafts.md). It has no effect, and is gone when the answer is there. With `anew` the text before is given up.
 */
export declare function draft(text: string, options?: { anew?: boolean }): void;

/**
 * Reports what a request of the function to a model used: tokens of the request (`input`; `cached` and `written` are parts of it)
 * and of the answer, the cost in the currency of the prices, and the time in milliseconds. It is charged to the budget of the
 * thread, and is an event `model-answered`. Call it after each request, whatever becomes of its answer.
 */
export declare function usage(used: {
  input?: number;
  output?: number;
  cached?: number;
  written?: number;
  cost?: number;
  ms?: number;
  model?: string;
  provider?: string;
}): void;

/** Handles messages until the organism ends. Each module that registers functions may call it: they are all served. */
export declare function run(): void;
