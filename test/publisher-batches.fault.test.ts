import { setTimeout as sleep } from "node:timers/promises";
import type { PublishReceipt } from "@lanekeeper/core";
import { startTestServer } from "@lanekeeper/core/testing";
import { expect, test } from "vitest";
import { awaitCondition } from "./harness/await-condition.js";
import type { NatsFrame } from "./harness/nats-frame.js";
import { startNatsProxy } from "./harness/nats-proxy.js";
import { readStoredEvents } from "./harness/stored-events.js";
import { publishThrough } from "./publish-through.js";
import { type OpenedLanes, openTestLanes, outcomeOf, STREAM } from "./publisher-setup.js";

/** Batches are sent to 2.15 and later only. */
async function startServer(
  skip: (condition: boolean, note: string) => void,
  options: { nodes?: 3; config?: string } = {},
) {
  const server = await startTestServer(options);
  const old = /^2\.(?:[0-9]|1[0-4])\./.test(server.version);
  if (old) await server[Symbol.asyncDispose]();
  skip(old, "no batches are sent to servers before 2.15");
  return server;
}

interface Stored {
  readonly seq: number;
  /** `<key>/<type>`. */
  readonly name: string;
  readonly batch: string;
}

/** Every stored event with the batch it came in, in stream order. */
async function readStored({ connection, stream, lanes }: OpenedLanes): Promise<Stored[]> {
  const events = await readStoredEvents(connection, stream, lanes.layout);
  return events.map(({ seq, key, type, batch = "" }) => ({ seq, name: `${key}/${type}`, batch }));
}

/** P1 for calls of one publisher: stored in call order, each once, and each where its receipt says. */
function expectP1(
  stored: readonly Stored[],
  names: readonly string[],
  receipts: readonly PublishReceipt[],
): void {
  const mine = new Set(names);
  expect(stored.filter(({ name }) => mine.has(name)).map(({ name }) => name)).toEqual(names);
  const bySeq = new Map(stored.map(({ seq, name }) => [seq, name]));
  for (const [index, { seq }] of receipts.entries()) expect(bySeq.get(seq)).toBe(names[index]);
}

const batchesIn = (stored: readonly Stored[]) =>
  new Set(stored.flatMap(({ batch }) => (batch === "" ? [] : [batch]))).size;
const isTwentieth = ({ headers }: NatsFrame) => headers.includes("Nats-Batch-Sequence: 20\r\n");
const isBatchAck = ({ op, payload }: NatsFrame) => op === "MSG" && payload.includes('"batch":');
const isCommit = ({ op, headers }: NatsFrame) => op === "HPUB" && headers.includes("Nats-Batch-Commit: 1");

/** Publishes runs of one key as long as `during` runs. */
function publishHotKey(
  opened: OpenedLanes,
  during: (more: (count: number) => Promise<void>) => Promise<void>,
) {
  return publishThrough(opened, {
    maxPending: 1_000,
    keyOf: () => "hot",
    // By the hundred, so that runs build up, and not as fast as it goes, so that there is little to read back.
    pace: (n) => (n % 100 === 0 ? sleep(50) : undefined),
    during,
  });
}

const runOf = (
  publisher: ReturnType<OpenedLanes["lanes"]["publisher"]>,
  key: string,
  count: number,
  from = 0,
) => Array.from({ length: count }, (_, n) => publisher.publish({ key, type: `n${from + n}`, data: n }));
const namesOf = (key: string, count: number) => Array.from({ length: count }, (_, n) => `${key}/n${n}`);

test("P1, R08: the answer to a batch is lost: its events go one by one, all are duplicates, each stored once", async ({
  skip,
}) => {
  await using server = await startServer(skip);
  await using proxy = await startNatsProxy(server.url);
  await using opened = await openTestLanes(proxy.url);
  await using publisher = opened.lanes.publisher();
  const lost = proxy.intercept({ direction: "to-client", action: "drop", match: isBatchAck });
  const receipts = await Promise.all(runOf(publisher, "hot", 300));
  expect(lost.frames.length).toBeGreaterThan(0);
  expect(receipts.filter(({ duplicate }) => duplicate).length).toBeGreaterThan(200);
  const stored = await readStored(opened);
  expectP1(stored, namesOf("hot", 300), receipts);
  expect(batchesIn(stored)).toBeGreaterThan(0);
});

test("P1: a batch that arrives after its events went one by one is refused as a whole", async ({ skip }) => {
  await using server = await startServer(skip);
  await using proxy = await startNatsProxy(server.url);
  await using opened = await openTestLanes(proxy.url);
  await using publisher = opened.lanes.publisher();
  const commits = proxy.intercept({ direction: "to-server", action: "hold", match: isCommit });
  const refusals = proxy.intercept({
    direction: "to-client",
    action: "watch",
    // Its events are stored already, or, where it was open for 10 s, it is abandoned.
    match: ({ payload }) => /"err_code":\s?(10201|10176)\b/.test(payload.toString()),
  });
  const receipts = await Promise.all(runOf(publisher, "hot", 300));
  expect(commits.frames.length).toBeGreaterThan(0);
  commits.remove();
  await refusals.acted(1);
  await publisher.publish({ key: "hot", type: "last", data: 1 });
  const stored = await readStored(opened);
  expectP1(stored, [...namesOf("hot", 300), "hot/last"], receipts);
  expect(stored).toHaveLength(301);
  expect(batchesIn(stored)).toBe(0);
});

test("P1: a batch that lost one of its events on the way is stored by the server in no part", async ({
  skip,
}) => {
  await using server = await startServer(skip);
  await using proxy = await startNatsProxy(server.url);
  await using opened = await openTestLanes(proxy.url);
  await using publisher = opened.lanes.publisher();
  const lost = proxy.intercept({
    direction: "to-server",
    action: "drop",
    times: 1,
    match: ({ headers }) => headers.includes("Nats-Batch-Sequence: 7\r\n"),
  });
  const receipts = await Promise.all(runOf(publisher, "hot", 300));
  expect(lost.frames).toHaveLength(1);
  expect(receipts.some(({ duplicate }) => duplicate)).toBe(false);
  expectP1(await readStored(opened), namesOf("hot", 300), receipts);
});

test("P1: two publishers on one key: each one's events in its order, each receipt's sequence its own", async ({
  skip,
}) => {
  await using server = await startServer(skip);
  await using opened = await openTestLanes(server.url);
  await using one = opened.lanes.publisher();
  await using other = opened.lanes.publisher();
  const calls: [Promise<PublishReceipt[]>, Promise<PublishReceipt[]>] = [
    Promise.all(runOf(one, "hot", 3_000)),
    Promise.all(runOf(other, "hot", 3_000, 3_000)),
  ];
  const [mine, theirs] = await Promise.all(calls);
  const stored = await readStored(opened);
  expect(stored).toHaveLength(6_000);
  const names = namesOf("hot", 6_000);
  expectP1(stored, names.slice(0, 3_000), mine);
  expectP1(stored, names.slice(3_000), theirs);
  expect(batchesIn(stored)).toBeGreaterThan(2);
});

test("R12: a stream with room for 100 more takes exactly 100 of a long run, and says so of each other one", async ({
  skip,
}) => {
  await using server = await startServer(skip);
  await using opened = await openTestLanes(server.url, {
    create: { streamConfig: { max_msgs: 100, discard: "new" as never } },
  });
  await using publisher = opened.lanes.publisher();
  const outcomes = await Promise.all(runOf(publisher, "hot", 150).map(outcomeOf));
  expect(outcomes.filter((one) => one === "STREAM_FULL")).toHaveLength(50);
  expect((await readStored(opened)).map(({ name }) => name)).toEqual(namesOf("hot", 100));
});

test("R12: a stream that runs full of bytes in a run takes what fits, and says so of each other one", async ({
  skip,
}) => {
  await using server = await startServer(skip);
  await using opened = await openTestLanes(server.url, {
    create: { streamConfig: { max_bytes: 20_000, discard: "new" as never } },
  });
  await using publisher = opened.lanes.publisher();
  const outcomes = await Promise.all(runOf(publisher, "hot", 300).map(outcomeOf));
  const taken = outcomes.filter((one) => typeof one !== "string").length;
  expect(outcomes.filter((one) => one === "STREAM_FULL")).toHaveLength(300 - taken);
  expect((await readStored(opened)).map(({ name }) => name)).toEqual(namesOf("hot", taken));
});

test("R12, P1: an account that runs full in the middle of a batch stores a part of it and answers nothing: the rest is refused, not held", async ({
  skip,
}) => {
  const config = `accounts { A { jetstream { max_file: 300KB }, users: [ { user: a, password: a } ] } }`;
  await using server = await startServer(skip, { config });
  await using opened = await openTestLanes(server.url, { connect: { user: "a", pass: "a" } });
  await using publisher = opened.lanes.publisher({ timeoutMs: 100_000 });
  const outcomes = await Promise.all(runOf(publisher, "hot", 3_000).map(outcomeOf));
  const stored = await readStored(opened);
  expect(stored.map(({ name }) => name)).toEqual(namesOf("hot", stored.length));
  expect(batchesIn(stored)).toBeGreaterThan(0);
  const receipts = outcomes.filter((one) => typeof one !== "string");
  expect(receipts.map(({ seq }) => seq)).toEqual(stored.map(({ seq }) => seq));
  expect(outcomes.slice(receipts.length)).toEqual(Array(3_000 - receipts.length).fill("STREAM_FULL"));
}, 180_000);

test("P1: events of a run are larger than the stream takes, its last one, too: they alone are refused", async ({
  skip,
}) => {
  await using server = await startServer(skip);
  await using proxy = await startNatsProxy(server.url);
  await using opened = await openTestLanes(proxy.url, { create: { streamConfig: { max_msg_size: 1_000 } } });
  await using publisher = opened.lanes.publisher();
  const commits = proxy.intercept({ direction: "to-server", action: "watch", match: isCommit });
  const calls = Array.from({ length: 60 }, (_, n) =>
    publisher.publish({ key: "hot", type: `n${n}`, data: n === 30 || n === 59 ? "x".repeat(2_000) : n }),
  );
  const outcomes = await Promise.all(calls.map(outcomeOf));
  expect(outcomes.flatMap((one, n) => (typeof one === "string" ? [`${n} ${one}`] : []))).toEqual([
    "30 PAYLOAD_TOO_LARGE",
    "59 PAYLOAD_TOO_LARGE",
  ]);
  expect(commits.frames).toHaveLength(1);
  const stored = await readStored(opened);
  expect(stored.map(({ name }) => name)).toEqual(namesOf("hot", 59).filter((name) => name !== "hot/n30"));
  expect(batchesIn(stored)).toBe(0);
});

test("R11: an id that is stored already is a duplicate in the middle of a run, and the run is stored around it", async ({
  skip,
}) => {
  await using server = await startServer(skip);
  await using opened = await openTestLanes(server.url);
  await using publisher = opened.lanes.publisher();
  const first = await publisher.publish({ key: "hot", type: "once", data: 1, id: "one" });
  const before = runOf(publisher, "hot", 60);
  const again = publisher.publish({ key: "hot", type: "once", data: 1, id: "one" });
  const after = runOf(publisher, "hot", 60, 60);
  expect(await again).toEqual({ ...first, duplicate: true });
  const receipts = await Promise.all([...before, ...after]);
  const stored = await readStored(opened);
  expect(stored).toHaveLength(121);
  expectP1(stored, namesOf("hot", 120), receipts);
});

// Both wait for the looks at the stream, 4 s apart, that allow batches again after a reconnect: so side by side.
test.concurrent("P1: the connection is cut again and again in the middle of batches", async ({ skip }) => {
  await using server = await startServer(skip);
  await using proxy = await startNatsProxy(server.url);
  await using opened = await openTestLanes(proxy.url);
  const batched = proxy.intercept({
    direction: "to-server",
    action: "watch",
    match: isTwentieth,
  });
  const { names, receipts } = await publishHotKey(opened, async () => {
    for (let cut = 1; cut <= 6; cut++) {
      await batched.acted(batched.frames.length + 1, 60_000);
      await sleep(cut);
      proxy.cut();
    }
  });
  expectP1(await readStored(opened), names, receipts);
}, 240_000);

test.concurrent("P1: the server is killed with -9 again and again in the middle of batches", async ({
  skip,
}) => {
  await using server = await startServer(skip);
  await using proxy = await startNatsProxy(server.url);
  await using opened = await openTestLanes(proxy.url);
  const batched = proxy.intercept({ direction: "to-server", action: "watch", match: isTwentieth });
  const another = () => batched.acted(batched.frames.length + 1, 60_000);
  const { names, receipts } = await publishHotKey(opened, async (more) => {
    for (let round = 0; round < 5; round++) {
      await another();
      await server.restart();
    }
    await another();
    await more(400);
  });
  expect(batched.frames.length).toBeGreaterThanOrEqual(6);
  const stored = await readStored(opened);
  expectP1(stored, names, receipts);
  expect(batchesIn(stored)).toBeGreaterThan(0);
}, 240_000);

test("P1: the server is frozen and thawed in the middle of batches", async ({ skip }) => {
  await using server = await startServer(skip);
  await using opened = await openTestLanes(server.url);
  const { names, receipts } = await publishHotKey(opened, async (more) => {
    for (let round = 0; round < 3; round++) {
      await more(300);
      server.freeze();
      // Longer than an answer may take.
      await sleep(1_200);
      server.thaw();
    }
    await more(300);
  });
  expectP1(await readStored(opened), names, receipts);
}, 240_000);

test("P1: with three nodes, the stream's leader steps down and nodes die in the middle of batches", async ({
  skip,
}) => {
  await using server = await startServer(skip, { nodes: 3 });
  await using opened = await openTestLanes([...server.urls], {
    create: { streamConfig: { num_replicas: 3 } },
  });
  const { names, receipts } = await publishHotKey(opened, async (more) => {
    for (let round = 0; round < 3; round++) {
      await more(300);
      await server.stepDown(STREAM);
    }
    await more(300);
    const { port } = new URL(`nats://${opened.connection.getServer()}`);
    const node = server.nodes.find(({ url }) => new URL(url).port === port);
    expect(node).toBeDefined();
    await node?.kill();
    await more(300);
    await node?.restart();
    await more(300);
  });
  const stored = await readStored(opened);
  expectP1(stored, names, receipts);
  expect(batchesIn(stored)).toBeGreaterThan(2);
}, 300_000);

test.each(["limits", "workqueue", "interest"] as const)(
  "O1, O4: on a stream with %s retention a batch is handled as what came one by one",
  async (retention) => {
    await using server = await startTestServer();
    await using opened = await openTestLanes(server.url, {
      create: { streamConfig: { retention: retention as never } },
    });
    const handled: string[] = [];
    await using worker = await opened.lanes.work({ group: "g", assignment: "shared" }, (event) => {
      handled.push(`${event.key}/${event.type}`);
    });
    await using publisher = opened.lanes.publisher();
    await Promise.all(runOf(publisher, "hot", 200));
    await awaitCondition(() => handled.length >= 200, {
      timeoutMs: 20_000,
      what: () => `200 handled events (so far ${handled.length})`,
    });
    expect(handled).toEqual(namesOf("hot", 200));
    expect(worker.status().healthy).toBe(true);
  },
);

test("an existing stream that does not allow batches is left as it is and gets none", async ({ skip }) => {
  await using server = await startServer(skip);
  await using opened = await openTestLanes(server.url, { create: { streamConfig: { allow_atomic: false } } });
  await using publisher = opened.lanes.publisher();
  const receipts = await Promise.all(runOf(publisher, "hot", 300));
  const stored = await readStored(opened);
  expectP1(stored, namesOf("hot", 300), receipts);
  expect(batchesIn(stored)).toBe(0);
});

test("mapping account: batches go through the server's mappings into their lanes", async ({ skip }) => {
  await using probe = await startServer(skip);
  expect(probe.version).toBeDefined();
  const config = `mappings: { "in.orders.*.*": "orders.{{partition(8,1)}}.{{wildcard(1)}}.{{wildcard(2)}}" }`;
  await using server = await startTestServer({ config });
  await using opened = await openTestLanes(server.url, { create: { mapping: "account" } });
  await using publisher = opened.lanes.publisher();
  const receipts = await Promise.all(runOf(publisher, "hot", 300));
  const stored = await readStored(opened);
  expectP1(stored, namesOf("hot", 300), receipts);
  expect(batchesIn(stored)).toBeGreaterThan(0);
});
