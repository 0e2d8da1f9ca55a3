import { bytesCodec, type Codec, openLanes } from "@lanekeeper/core";
import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { awaitCondition } from "./harness/await-condition.js";
import { openScene, type SceneWorker } from "./work-scene.js";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});

const many = { attempts: 50, initialDelayMs: 1, maxDelayMs: 1 };

/** Without what a machine that stood still adds. */
function toldTypes({ notifications }: SceneWorker): string[] {
  return notifications.map(({ type }) => type).filter((type) => type !== "loop-blocked");
}

test("a schema for every type: a mismatch is terminal and never reaches the handler, output does", async () => {
  await using scene = await openScene(server);
  const schema = z.object({ n: z.number().transform((n) => n * 10) });
  const run = await scene.worker(() => {}, { schema, onExhausted: "drop", retry: many });
  const publisher = scene.lanes.publisher();
  await publisher.publish({ key: "K", type: "t", data: { n: "one" } });
  await publisher.publish({ key: "K", type: "t", data: { n: 2 } });
  await scene.ended(1);
  expect(scene.runs.map(({ seq, data }) => [seq, data])).toEqual([[2, { n: 20 }]]);
  expect(await run.told("dropped")).toMatchObject({ seq: 1, key: "K", error: { code: "SCHEMA_MISMATCH" } });
  expect(toldTypes(run)).toEqual(["dropped"]);
});

test("schemas per type: a type without one is not checked; with block a mismatch shows its lane as blocked", async () => {
  await using scene = await openScene(server);
  const run = await scene.worker(() => {}, { schema: { paid: z.object({ amount: z.number() }) } });
  const publisher = scene.lanes.publisher();
  await publisher.publish({ key: "K", type: "other", data: "anything" });
  await publisher.publish({ key: "K", type: "paid", data: { amount: "1" } });
  expect(await run.told("blocked")).toMatchObject({ seq: 2, error: { code: "SCHEMA_MISMATCH" } });
  expect(scene.runs.map(({ seq }) => seq)).toEqual([1]);
  await awaitCondition(async () => (await scene.lanes.group("audit").status()).blockedKeys.includes("K"), {
    what: "K to be listed as blocked",
  });
});

test("a schema that throws instead of answering is named, has the event's attempts, and the lane goes on", async () => {
  await using scene = await openScene(server);
  const schema = z.unknown().transform((data) => {
    if ((data as { n: number }).n === 0) throw new Error("schema broke");
    return data;
  });
  const run = await scene.worker(() => {}, { schema, onExhausted: "drop", retry: { ...many, attempts: 2 } });
  await scene.publish("K", "K");
  await scene.ended(1);
  expect(scene.runs.map(({ seq }) => seq)).toEqual([2]);
  expect(await run.told("dropped")).toMatchObject({ seq: 1, error: { code: "SCHEMA_MISMATCH" } });
  expect(toldTypes(run)).toEqual(["retry", "dropped"]);
});

test("bytes that are not JSON, and a codec that throws, are terminal for the event", async () => {
  await using scene = await openScene(server);
  const run = await scene.worker(() => {}, { onExhausted: "drop", retry: many });
  const bytes = scene.lanes.publisher({ codec: bytesCodec });
  await bytes.publish({ key: "K", type: "t", data: new Uint8Array([0xff, 0xfe]) });
  await bytes.publish({ key: "K", type: "t", data: new Uint8Array(0) });
  await scene.ended(1);
  expect(scene.runs.map(({ seq, data }) => [seq, data])).toEqual([[2, undefined]]);
  expect(await run.told("dropped")).toMatchObject({ seq: 1, error: { code: "DECODE_FAILED" } });
});

test("a codec of one's own writes and reads; the handler sees bytes, headers, id, time and lane as stored", async () => {
  await using scene = await openScene(server);
  const upper: Codec = {
    encode: (data) => new TextEncoder().encode(String(data).toUpperCase()),
    decode: (bytes) => new TextDecoder().decode(bytes).toLowerCase(),
  };
  const events: unknown[] = [];
  await scene.worker((event) => void events.push(event), { codec: upper });
  const headers = { "X-Tag": ["a", "b"], trace: "løp" };
  const event = { key: "a b.c", type: "x.y", data: "hey", id: "id-1", headers };
  const before = Date.now();
  const receipt = await scene.lanes.publisher({ codec: upper }).publish(event);
  await scene.ended(1);
  expect(events).toMatchObject([
    {
      key: "a b.c",
      type: "x.y",
      data: "hey",
      id: "id-1",
      lane: receipt.lane,
      generation: 1,
      seq: 1,
      attempt: 1,
      subject: `${scene.subject}.${receipt.lane}.a%20b%2Ec.x.y`,
      headers: { "X-Tag": ["a", "b"], trace: ["løp"] },
    },
  ]);
  const { storedAt, bytes } = events[0] as { storedAt: Date; bytes: Uint8Array };
  expect(Buffer.from(bytes).toString()).toBe("HEY");
  expect(Math.abs(storedAt.getTime() - before)).toBeLessThan(10_000);
});

test("a typed event map narrows by type, and publisher and worker agree on it", async () => {
  await using scene = await openScene(server);
  interface Shop {
    placed: { total: number };
    paid: { by: string };
  }
  const lanes = await openLanes<Shop>(scene.connection, { stream: scene.stream });
  const seen: (number | string)[] = [];
  const worker = await lanes.work({ group: "typed", assignment: "shared" }, (event) => {
    seen.push(event.type === "placed" ? event.data.total : event.data.by);
  });
  const publisher = lanes.publisher();
  await publisher.publish({ key: "K", type: "placed", data: { total: 3 } });
  await publisher.publish({ key: "K", type: "paid", data: { by: "card" } });
  await awaitCondition(() => seen.length === 2, { what: "both events" });
  expect(seen).toEqual([3, "card"]);
  await lanes.close();
  expect(await worker.closed).toEqual({ type: "closed" });
});

test("O6: the fence's token rises with every event of a key and its incarnation stays; context names group and worker", async () => {
  await using scene = await openScene(server);
  const fences: { token: number; incarnation: string }[] = [];
  await scene.worker(
    ({ attempt }, { fence, group, workerId }) => {
      expect({ group, workerId }).toEqual({ group: "audit", workerId: "W" });
      fences.push(fence);
      if (attempt < 2) throw new Error("once more");
    },
    { name: "W", retry: many },
  );
  await scene.publish("K", "K", "K");
  await scene.ended(6);
  const tokens = fences.map(({ token }) => token);
  expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
  expect(new Set(tokens).size).toBe(3);
  expect(new Set(fences.map(({ incarnation }) => incarnation)).size).toBe(1);
});
