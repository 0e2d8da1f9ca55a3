import { setTimeout as sleep } from "node:timers/promises";
import type { PublishReceipt } from "@lanekeeper/core";
import { startTestServer } from "@lanekeeper/core/testing";
import { expect, test } from "vitest";
import { within } from "./harness/await-condition.js";
import { isPubAck } from "./harness/jetstream-frames.js";
import { type NatsProxy, startNatsProxy } from "./harness/nats-proxy.js";
import { publishThrough } from "./publish-through.js";
import { type OpenedLanes, openTestLanes, outcomeOf, STREAM } from "./publisher-setup.js";

/** Type numbers of a key's stored events, in stream order. */
function numbersOf(stored: readonly string[], key: string): number[] {
  return stored.filter((one) => one.startsWith(`${key}/n`)).map((one) => Number(one.slice(key.length + 2)));
}

/** P1: rising, so in call order and each once. */
function expectRising(numbers: readonly number[]): void {
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
}

/** Loses the PubAcks that `choose` says so of; it is given the sequence each one tells. */
function loseAcks(proxy: NatsProxy, choose: (seq: number) => boolean) {
  return proxy.intercept({
    direction: "to-client",
    action: "drop",
    match: (frame) => isPubAck(frame) && choose(JSON.parse(frame.payload.toString()).seq),
  });
}

test("R08: the first ack of each of 20 publishes of a key is lost: 20 stored in order, 20 resolved as duplicates", async () => {
  await using server = await startTestServer();
  await using proxy = await startNatsProxy(server.url);
  await using opened = await openTestLanes(proxy.url);
  await using publisher = opened.lanes.publisher();
  const lost = new Set<number>();
  loseAcks(proxy, (seq) => !lost.has(seq) && lost.add(seq).has(seq));
  const calls = Array.from({ length: 20 }, (_, n) => publisher.publish({ key: "k", type: `n${n}`, data: n }));
  const receipts = await Promise.all(calls);
  expect(receipts.map(({ seq }) => seq)).toEqual(Array.from({ length: 20 }, (_, n) => n + 1));
  expect(receipts.every(({ duplicate }) => duplicate)).toBe(true);
  expect(await opened.stored()).toEqual(Array.from({ length: 20 }, (_, n) => `k/n${n}`));
});

test("R09: the second of five loses its acks until it times out: no gap is overtaken, and the key goes on", async () => {
  await using server = await startTestServer();
  await using proxy = await startNatsProxy(server.url);
  await using opened = await openTestLanes(proxy.url);
  await using publisher = opened.lanes.publisher({ timeoutMs: 5_000 });
  const rule = loseAcks(proxy, (seq) => seq === 2);
  const calls = [1, 2, 3, 4, 5].map((n) =>
    outcomeOf(publisher.publish({ key: "K", type: `n${n}`, data: n })),
  );
  const outcomes = await Promise.all(calls);
  expect(outcomes[0]).toMatchObject({ seq: 1 });
  expect(outcomes.slice(1)).toEqual(Array(4).fill("PUBLISH_TIMEOUT"));
  rule.remove();
  await publisher.publish({ key: "K", type: "n6", data: 6 });
  expectRising(numbersOf(await opened.stored(), "K"));
  expect((await opened.stored()).at(-1)).toBe("K/n6");
});

test("P1: after a timeout the key waits for the outcome; only what was sent is said to be possibly stored", async () => {
  await using server = await startTestServer();
  await using proxy = await startNatsProxy(server.url);
  await using opened = await openTestLanes(proxy.url);
  await using publisher = opened.lanes.publisher({ timeoutMs: 3_000 });
  await publisher.publish({ key: "other", type: "n0", data: 0 });
  const held = proxy.intercept({
    direction: "to-server",
    action: "hold",
    match: ({ op, subject }) => op === "HPUB" && subject.includes(".k."),
  });
  const errors = await Promise.all(
    [1, 2].map((n) =>
      publisher.publish({ key: "k", type: `n${n}`, data: n }).catch((reason: Error) => reason.message),
    ),
  );
  expect(errors[0]).toMatch(/may be stored or not/);
  expect(errors[1]).toMatch(/not sent in time and is not stored/);
  const third = publisher.publish({ key: "k", type: "n3", data: 3 });
  held.remove();
  await third;
  expect(numbersOf(await opened.stored(), "k")).toEqual([1, 3]);
});

test("expectLastSeq: an event whose ack was lost is not taken for a conflict with itself", async () => {
  await using server = await startTestServer();
  await using proxy = await startNatsProxy(server.url);
  await using opened = await openTestLanes(proxy.url);
  await using publisher = opened.lanes.publisher();
  const rule = loseAcks(proxy, (seq) => seq === 1);
  const receipt = await publisher.publish({ key: "k", type: "n1", data: 1, expectLastSeq: 0 });
  expect(rule.frames.length).toBeGreaterThan(0);
  expect(receipt).toMatchObject({ seq: 1, duplicate: true });
  expect(await opened.stored()).toEqual(["k/n1"]);
});

test("expectLastSeq on three replicas: with every fifth ack lost, each append is stored once and only real conflicts are told", async () => {
  await using server = await startTestServer({ nodes: 3 });
  await using proxy = await startNatsProxy(server.url);
  await using opened = await openTestLanes(proxy.url, { create: { streamConfig: { num_replicas: 3 } } });
  await using publisher = opened.lanes.publisher();
  let acks = 0;
  const rule = proxy.intercept({
    direction: "to-client",
    action: "drop",
    match: (frame) => isPubAck(frame) && acks++ % 5 === 0,
  });
  const append = async (key: string) => {
    let expectLastSeq = 0;
    for (let n = 0; n < 5; n++) {
      const { seq } = await publisher.publish({ key, type: `n${n}`, data: n, expectLastSeq });
      expectLastSeq = seq;
    }
    const stale = publisher.publish({ key, type: "stale", data: 1, expectLastSeq: expectLastSeq - 1 });
    expect(await outcomeOf(stale)).toBe("WRONG_LAST_SEQUENCE");
  };
  await Promise.all(Array.from({ length: 10 }, (_, k) => append(`k${k}`)));
  expect(rule.frames.length).toBeGreaterThan(0);
  const stored = await opened.stored();
  expect(stored).toHaveLength(50);
  for (let k = 0; k < 10; k++) expect(numbersOf(stored, `k${k}`)).toEqual([0, 1, 2, 3, 4]);
}, 240_000);

/** Publishes on `keys` keys as long as `during` runs; all must be stored, in order, each once. */
async function publishOn(
  opened: OpenedLanes,
  keys: number,
  during: (more: (count: number) => Promise<void>) => Promise<void>,
): Promise<PublishReceipt[]> {
  const { names, receipts } = await publishThrough(opened, {
    maxPending: 500,
    keyOf: (n) => `k${n % keys}`,
    pace: (n) => (n % 50 === 0 ? sleep(1) : undefined),
    during,
  });
  const stored = await opened.stored();
  expect(stored).toHaveLength(names.length);
  for (let k = 0; k < keys; k++) expectRising(numbersOf(stored, `k${k}`));
  for (const [n, { seq }] of receipts.entries()) expect(stored[seq - 1]).toBe(names[n]);
  return receipts;
}

test("P1: the connection is cut again and again under way: all stored, in order, each once", async () => {
  await using server = await startTestServer();
  await using proxy = await startNatsProxy(server.url);
  await using opened = await openTestLanes(proxy.url);
  await publishOn(opened, 20, async () => {
    const acks = loseAcks(proxy, (seq) => seq % 13 === 0);
    for (let cut = 1; cut <= 4; cut++) {
      await acks.acted(cut * 20);
      proxy.cut();
    }
    acks.remove();
  });
}, 240_000);

test("P1: the server is killed with -9 and started again under way: all stored, in order, each once", async () => {
  await using server = await startTestServer();
  await using opened = await openTestLanes(server.url);
  await publishOn(opened, 20, async (more) => {
    for (let round = 0; round < 2; round++) {
      await more(300);
      await server.restart();
    }
    await more(300);
  });
}, 240_000);

test("P1: the server is frozen and thawed under way: all stored, in order, each once", async () => {
  await using server = await startTestServer();
  await using opened = await openTestLanes(server.url);
  await publishOn(opened, 20, async (more) => {
    for (let round = 0; round < 3; round++) {
      await more(100);
      server.freeze();
      // Longer than an answer may take, so that events are overdue when the server wakes up.
      await sleep(1_200);
      server.thaw();
    }
    await more(100);
  });
}, 240_000);

test("P1: with three nodes, the stream's leader steps down and a node dies under way", async () => {
  await using server = await startTestServer({ nodes: 3 });
  await using opened = await openTestLanes([...server.urls], {
    create: { streamConfig: { num_replicas: 3 } },
  });
  await publishOn(opened, 20, async (more) => {
    await more(100);
    await server.stepDown(STREAM);
    await more(100);
    await server.stepDown(STREAM);
    const { port } = new URL(`nats://${opened.connection.getServer()}`);
    const node = server.nodes.find(({ url }) => new URL(url).port === port);
    expect(node).toBeDefined();
    await node?.kill();
    await more(100);
    await server.stepDown(STREAM);
    await more(100);
    // All three are needed again to read what is stored.
    await node?.restart();
  });
}, 240_000);

test("an event past its deadline on a server that stays silent rejects in time, and the buffer empties once it wakes", async () => {
  await using server = await startTestServer();
  await using opened = await openTestLanes(server.url);
  const publisher = opened.lanes.publisher({ timeoutMs: 3_000, maxPending: 3 });
  server.freeze();
  const calls = ["a", "b", "c"].map((key) => outcomeOf(publisher.publish({ key, type: "n1", data: 1 })));
  const outcomes = await within(Promise.all(calls), 15_000, "the deadlines");
  expect(outcomes).toEqual(Array(3).fill("PUBLISH_TIMEOUT"));
  // Their outcome is unknown, so they still hold their places.
  expect(await outcomeOf(publisher.publish({ key: "d", type: "n1", data: 1 }))).toBe("BUFFER_FULL");
  const ready = publisher.ready();
  server.thaw();
  await within(ready, 15_000, "room");
  await publisher.publish({ key: "a", type: "n2", data: 2 });
  expect(numbersOf(await opened.stored(), "a")).toEqual([1, 2]);
  await within(publisher.close(), 15_000, "close()");
});
