import { expect, test } from "vitest";
import { InputError } from "./input-error.js";
import { KeySequences } from "./key-sequences.js";
import { type NdjsonFields, ndjsonEvents } from "./ndjson-events.js";

async function read(
  content: string | Buffer,
  fields: Partial<NdjsonFields> = {},
): Promise<{ key: string; type: string; position: number; order?: number }[]> {
  const input = {
    name: "events.ndjson",
    async *chunks() {
      yield Buffer.from(content);
    },
    async [Symbol.asyncDispose]() {},
  };
  const events = [];
  for await (const { key, type, place } of ndjsonEvents(
    input,
    { key: "id", ...fields },
    new KeySequences(),
  )) {
    events.push({ key, type, ...place });
  }
  return events;
}

test("CRLF, blank lines, a byte order mark, and no line feed at the end", async () => {
  expect(await read('\ufeff{"id":"a"}\r\n\r\n  \n{"id":"a"}')).toEqual([
    { key: "a", type: "event", position: 1 },
    { key: "a", type: "event", position: 2 },
  ]);
});

test("R04: a whole number as key is the string of its digits", async () => {
  expect((await read('{"id":7}\n{"id":"7"}')).map(({ key, position }) => [key, position])).toEqual([
    ["7", 1],
    ["7", 2],
  ]);
});

test("fields in nested objects, unless a field has the dotted name itself", async () => {
  const fields = { key: "customer.id", type: "what.kind", order: "n" };
  expect(await read('{"customer":{"id":"a"},"what":{"kind":"order.paid"},"n":3}', fields)).toEqual([
    { key: "a", type: "order.paid", position: 1, order: 3 },
  ]);
  expect(await read('{"customer.id":"b","customer":{"id":"a"}}', { key: "customer.id" })).toMatchObject([
    { key: "b" },
  ]);
});

test.each([
  ["text that is not JSON", '{"id":"a"}\n{"id":', /^events.ndjson, line 2: it is not JSON/],
  ["no object", '{"id":"a"}\n\n["a"]', /line 3: it must be a JSON object, and is \["a"\]/],
  ["no key", '{"id":"a"}\n{"other":"a"}', /line 2: it has no field "id"/],
  ["a key that only the prototype has", '{"x":"a"}', /line 1: it has no field "id"/],
  ["R04: a null key", '{"id":null}', /line 1: "id" is null: a key must be a string or a whole number/],
  ["R04: a fraction as key", '{"id":1.5}', /line 1: "id" is 1.5: a key must be/],
  ["R04: an object as key", '{"id":{}}', /line 1: "id" is \{\}: a key must be/],
  ["a number that JSON has rounded as key", '{"id":9007199254740993}', /line 1: "id" is 9007199254740992/],
  ["R04: an empty key", '{"id":"a"}\n{"id":""}', /line 2: "id" is empty/],
  ["R03: a lone surrogate as key", '{"id":"\\ud800"}', /line 1: .*surrogate/],
  ["R03: a key of 513 bytes", `{"id":"${"k".repeat(513)}"}`, /line 1: .*512/],
  ["bytes that are not UTF-8", Buffer.from('{"id":"\xff"}', "latin1"), /line 1: it is not UTF-8/],
  ["a line of more than a million bytes", "x".repeat(1_000_001), /line 1: the line is longer than 1000000/],
])("%s: an InputError that names the line", async (_, content, message) => {
  const reading = read(content);
  await expect(reading).rejects.toThrow(message);
  await expect(reading).rejects.toBeInstanceOf(InputError);
});

test.each([
  ["no type", '{"id":"a"}', { type: "kind" }, /line 1: it has no field "kind"/],
  ["a number as type", '{"id":"a","kind":1}', { type: "kind" }, /line 1: "kind" is 1: a type must be/],
  ["a type with an empty token", '{"id":"a","kind":"a..b"}', { type: "kind" }, /line 1: .*tokens is empty/],
  ["no order value", '{"id":"a"}', { order: "n" }, /line 1: "n" is missing/],
  ["words as order value", '{"id":"a","n":"later"}', { order: "n" }, /line 1: "n" is "later"/],
])("%s: an InputError that names the line", async (_, content, fields, message) => {
  await expect(read(content, fields)).rejects.toThrow(message);
});
