import { describe, expect, test } from "vitest";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { PublisherOptions } from "../domain/publisher-options.js";
import { systemClock } from "./clock.js";
import type { ConnectionChange } from "./connection-port.js";
import type { LanesContext } from "./lanes-context.js";
import type { PublishListener, PublishMessage, PublishPort } from "./publish-port.js";
import { createPublisher } from "./publisher.js";
import { StreamWatch } from "./stream-watch.js";

/** A publisher whose connection is a list of what was sent. */
function setUp(
  options: PublisherOptions = {},
  stream: {
    allowAtomic?: boolean;
    serverVersion?: string;
    mapping?: "publisher" | "account";
    probe?: PublishPort["probe"];
  } = {},
) {
  const sent: { message: PublishMessage; token: number }[] = [];
  const batches: { messages: readonly PublishMessage[]; token: number }[] = [];
  const changes = new Set<(change: ConnectionChange) => void>();
  const state: { listener?: PublishListener; closed: boolean; stopped: boolean } = {
    closed: false,
    stopped: false,
  };
  const port: PublishPort = {
    idPrefix: "id",
    listen: (listener) => {
      state.listener = listener;
    },
    send: (message, token) => void sent.push({ message, token }),
    sendBatch: (messages, token) => void batches.push({ messages, token }),
    probe: stream.probe ?? (async () => []),
    close: () => {
      state.closed = true;
    },
  };
  const layout = {
    subject: "orders",
    generation: 1,
    lanes: 4,
    hash: stream.mapping === "account" ? "fnv1a" : "murmur3",
    mapping: stream.mapping ?? "publisher",
  } as const;
  const streamPort = { read: () => Promise.reject(new Error("planted")) } as never;
  const context: LanesContext = {
    closing: new AbortController().signal,
    stream: "ORDERS",
    layout,
    opened: {
      duplicateWindowMs: 120_000,
      allowAtomic: stream.allowAtomic ?? false,
    } as LanesContext["opened"],
    streamPort,
    connection: {
      serverVersion: stream.serverVersion ?? "2.15.1",
      serverId: "server",
      keepsConsumers: true,
      maxPayloadBytes: 1_000,
      isConnected: () => true,
      isClosed: () => false,
      ping: () => Promise.resolve(),
      observe(observe) {
        changes.add(observe);
        return () => changes.delete(observe);
      },
    },
    clock: systemClock,
    watch: new StreamWatch(streamPort, layout, systemClock),
    notify: () => {},
  };
  const publisher = createPublisher<Record<string, unknown>>(context, port, options, () => {
    state.stopped = true;
  });
  const answer = (token: number, text: string) =>
    state.listener?.answered(token, new TextEncoder().encode(text));
  const tell = (change: ConnectionChange) => {
    for (const observe of [...changes]) observe(change);
  };
  return { publisher, sent, batches, state, answer, tell, observers: changes };
}

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => "resolved",
    (error: LanekeeperError) => error.code,
  );
const event = { key: "k", type: "t", data: 1 };

describe("what comes over the wire", () => {
  test("an answer that is no PubAck, from whoever subscribes to the subject, settles nothing", async () => {
    const { publisher, sent, answer } = setUp();
    const receipt = publisher.publish(event);
    const token = sent[0]?.token ?? 0;
    answer(token, "thank you");
    answer(token, '{"ok":true}');
    answer(token, '{"stream":"ORDERS","seq":5}');
    expect(await receipt).toMatchObject({ seq: 5, duplicate: false });
    await publisher.close();
  });

  test("a PubAck of another stream is an error that names it", async () => {
    const { publisher, sent, answer } = setUp();
    const receipt = publisher.publish(event).catch((error: Error) => error.message);
    answer(sent[0]?.token ?? 0, '{"stream":"OTHER","seq":5}');
    expect(await receipt).toMatch(/stored in stream OTHER/);
    await publisher.close();
  });

  test("without the reply subscription nothing can be published: PERMISSION_DENIED for all", async () => {
    const { publisher, state, observers } = setUp();
    const pending = codeOf(publisher.publish(event));
    state.listener?.inboxDenied(new Error("planted"));
    expect(await pending).toBe("PERMISSION_DENIED");
    expect(await codeOf(publisher.publish(event))).toBe("PERMISSION_DENIED");
    expect(await codeOf(publisher.ready())).toBe("PERMISSION_DENIED");
    expect([state.closed, observers.size]).toEqual([true, 0]);
    await publisher.close();
  });

  test("a connection found closed while sending ends the publisher with CONNECTION_CLOSED", async () => {
    const { publisher, sent, state } = setUp();
    const pending = [codeOf(publisher.publish(event)), codeOf(publisher.publish({ ...event, key: "l" }))];
    state.listener?.notSent(sent[0]?.token ?? 0, new LanekeeperError("CONNECTION_CLOSED", "planted"));
    expect(await Promise.all(pending)).toEqual(["CONNECTION_CLOSED", "CONNECTION_CLOSED"]);
    // Whoever keeps publishers in order to close them can let go of this one.
    expect(state.stopped).toBe(true);
    await publisher.close();
  });

  test("P1: a denied subject rejects its own event; the key's next one is sent", async () => {
    const { publisher, sent, tell, answer } = setUp();
    const first = codeOf(publisher.publish({ ...event, type: "secret" }));
    const second = codeOf(publisher.publish(event));
    const subject = sent[0]?.message.subject ?? "";
    tell({ type: "publish-denied", subject, error: new Error("planted") });
    expect(await first).toBe("PERMISSION_DENIED");
    answer(sent[1]?.token ?? 0, '{"stream":"ORDERS","seq":1}');
    expect(await second).toBe("resolved");
    await publisher.close();
  });
});

test("P1: a codec that publishes, too, does not get the outer event's id", async () => {
  const { publisher, sent, answer } = setUp({
    codec: {
      encode: (data) => {
        if (data === "outer")
          void publisher.publish({ key: "inner", type: "t", data: "inner" }).catch(() => {});
        return new Uint8Array(1);
      },
      decode: (bytes) => bytes,
    },
  });
  const outer = codeOf(publisher.publish({ key: "outer", type: "t", data: "outer" }));
  const ids = sent.map(({ message }) => message.id);
  expect(new Set(ids).size).toBe(2);
  for (const { token } of sent) answer(token, '{"stream":"ORDERS","seq":1}');
  expect(await outer).toBe("resolved");
  await publisher.close();
});

test("size is checked before the wire, headers included", async () => {
  const { publisher, sent } = setUp();
  expect(await codeOf(publisher.publish({ ...event, data: new Uint8Array(999) }))).toBe("PAYLOAD_TOO_LARGE");
  expect(sent).toEqual([]);
  await publisher.close();
});

test("O8: events wait until the server's mapping is known, and a check of before a reconnect tells nothing", async () => {
  const checks: ((seen: (string | undefined)[] | undefined) => void)[] = [];
  let onThird = () => {};
  const third = new Promise<void>((resolve) => {
    onThird = resolve;
  });
  const probe = () =>
    new Promise<(string | undefined)[] | undefined>((resolve) => {
      checks.push(resolve);
      if (checks.length === 3) onThird();
    });
  const { publisher, sent, answer, tell } = setUp({}, { mapping: "account", probe });
  const receipt = publisher.publish(event);
  tell({ type: "reconnected" });
  checks[0]?.([]);
  await new Promise((resolve) => setImmediate(resolve));
  expect(sent).toEqual([]);
  // Not heard: asked again.
  checks[1]?.(undefined);
  await third;
  expect(sent).toEqual([]);
  checks[2]?.([]);
  await new Promise((resolve) => setImmediate(resolve));
  expect(sent).toHaveLength(1);
  answer(sent[0]?.token ?? 0, '{"stream":"ORDERS","seq":5}');
  expect(await receipt).toMatchObject({ seq: 5 });
  await publisher.close();
});

describe("atomic batches", () => {
  const publishRun = (publisher: ReturnType<typeof setUp>["publisher"], count: number) =>
    Array.from({ length: count }, () => publisher.publish(event));

  test("P1: what waits behind a key's first event goes out as one batch; every receipt has its own sequence", async () => {
    const { publisher, sent, batches, answer } = setUp({}, { allowAtomic: true });
    const receipts = publishRun(publisher, 101);
    expect([sent.length, batches.length]).toEqual([1, 0]);
    answer(sent[0]?.token ?? 0, '{"stream":"ORDERS","seq":5}');
    expect([sent.length, batches[0]?.messages.length]).toEqual([1, 100]);
    answer(batches[0]?.token ?? 0, '{"stream":"ORDERS","seq":1100,"batch":"x","count":100}');
    const seqs = (await Promise.all(receipts)).map(({ seq, duplicate }) => `${seq}${duplicate}`);
    expect(seqs).toEqual(["5false", ...Array.from({ length: 100 }, (_, n) => `${1_001 + n}false`)]);
    await publisher.close();
  });

  test.each([
    ["the stream does not allow them", { allowAtomic: false }],
    ["the server is older than those they were proved on", { allowAtomic: true, serverVersion: "2.14.5" }],
  ])("none are sent when %s", async (_, stream) => {
    const { publisher, sent, batches, answer } = setUp({}, stream);
    const receipts = publishRun(publisher, 101);
    for (let n = 0; n < 101; n++) answer(sent[n]?.token ?? 0, `{"stream":"ORDERS","seq":${n + 1}}`);
    await Promise.all(receipts);
    expect([sent.length, batches.length]).toEqual([101, 0]);
    await publisher.close();
  });

  test("none are sent after a reconnect until the stream was looked at: it may be an older server", async () => {
    const { publisher, sent, batches, answer, tell } = setUp({}, { allowAtomic: true });
    tell({ type: "disconnected" });
    tell({ type: "reconnected" });
    const receipts = publishRun(publisher, 101);
    for (let n = 0; n < 101; n++) answer(sent[n]?.token ?? 0, `{"stream":"ORDERS","seq":${n + 1}}`);
    await Promise.all(receipts);
    expect([sent.length, batches.length]).toEqual([101, 0]);
    await publisher.close();
  });

  test("P1: a refused batch goes on one by one under the same ids, and batches pause", async () => {
    const { publisher, sent, batches, answer } = setUp({}, { allowAtomic: true });
    const receipts = publishRun(publisher, 101);
    answer(sent[0]?.token ?? 0, '{"stream":"ORDERS","seq":1}');
    const error = '{"error":{"code":429,"err_code":10210,"description":"atomic publish too many inflight"}}';
    answer(batches[0]?.token ?? 0, error);
    for (let n = 1; n <= 100; n++) answer(sent[n]?.token ?? 0, `{"stream":"ORDERS","seq":${n + 1}}`);
    expect((await Promise.all(receipts)).map(({ seq }) => seq)).toEqual(
      Array.from({ length: 101 }, (_, n) => n + 1),
    );
    expect(sent.slice(1).map(({ message }) => message.id)).toEqual(batches[0]?.messages.map(({ id }) => id));
    expect(batches).toHaveLength(1);
    await publisher.close();
  });

  test("P1: a plain PubAck for a batch says nothing about its other events: they go one by one, and no batch follows", async () => {
    const { publisher, sent, batches, answer } = setUp({}, { allowAtomic: true });
    const receipts = publishRun(publisher, 101);
    answer(sent[0]?.token ?? 0, '{"stream":"ORDERS","seq":1}');
    answer(batches[0]?.token ?? 0, '{"stream":"ORDERS","seq":101}');
    for (let n = 1; n <= 100; n++)
      answer(sent[n]?.token ?? 0, `{"stream":"ORDERS","seq":${n + 1},"duplicate":true}`);
    expect((await Promise.all(receipts)).map(({ seq }) => seq)).toEqual(
      Array.from({ length: 101 }, (_, n) => n + 1),
    );
    expect([sent.length, batches.length]).toEqual([101, 1]);
    await publisher.close();
  });

  test("an event with expectLastSeq is in no batch", async () => {
    const { publisher, sent, batches, answer } = setUp({}, { allowAtomic: true });
    const receipts = publishRun(publisher, 41);
    receipts.push(publisher.publish({ ...event, expectLastSeq: 41 }));
    receipts.push(...publishRun(publisher, 2));
    answer(sent[0]?.token ?? 0, '{"stream":"ORDERS","seq":1}');
    expect(batches[0]?.messages).toHaveLength(40);
    answer(batches[0]?.token ?? 0, '{"stream":"ORDERS","seq":41,"batch":"x","count":40}');
    expect(sent[1]?.message.moreHeaders).toMatch(/^Nats-Expected-Last-Subject-Sequence: 41/);
    for (let n = 1; n <= 3; n++) answer(sent[n]?.token ?? 0, `{"stream":"ORDERS","seq":${n + 41}}`);
    await Promise.all(receipts);
    await publisher.close();
  });

  test("events nearly as large as the server takes go alone: a batch's headers would make them too large", async () => {
    const { publisher, sent, batches, answer } = setUp({}, { allowAtomic: true });
    const large = { ...event, data: new Uint8Array(900) };
    const receipts = Array.from({ length: 60 }, () => publisher.publish(large));
    for (let n = 0; n < 60; n++) answer(sent[n]?.token ?? 0, `{"stream":"ORDERS","seq":${n + 1}}`);
    await Promise.all(receipts);
    expect([sent.length, batches.length]).toEqual([60, 0]);
    await publisher.close();
  });
});

test.each([
  { keys: 1_000, held: 2_048 },
  { keys: 10, held: 4_096 },
])(
  "ready() holds back at $held events of $keys keys, though publish() takes them up to maxPending",
  async ({ keys, held }) => {
    const { publisher } = setUp();
    const calls: Promise<string>[] = [];
    const publishOne = () => {
      calls.push(codeOf(publisher.publish({ ...event, key: `k${calls.length % keys}` })));
    };
    for (let n = 0; n < held; n++) {
      await publisher.ready();
      publishOne();
    }
    const waiting = codeOf(publisher.ready());
    const turn = new Promise((resolve) => setImmediate(resolve, "held back"));
    expect(await Promise.race([waiting, turn])).toBe("held back");
    publishOne();
    expect(await Promise.race([calls.at(-1), turn])).toBe("held back");
  },
);
