#!/usr/bin/env node
/** `systole-schema agent.mjs` prints the JSON Schema of the payloads that a program declares. */
import { pathToFileURL } from "node:url";

const [file] = process.argv.slice(2);
if (!file) {
  console.error("usage: systole-schema PROGRAM >PAYLOADS.schema.json");
  process.exit(1);
}
// The program may have another copy of the package: its own one prints.
globalThis[Symbol.for("systole.schema")] = (jsonSchema) => {
  try {
    console.log(JSON.stringify(jsonSchema(), null, 2));
  } catch (error) {
    console.error(`${file}: ${error.message}`);
    process.exit(1);
  }
};
await import(pathToFileURL(file));
