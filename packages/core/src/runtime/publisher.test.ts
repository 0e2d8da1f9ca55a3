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
function setUp(options: PublisherOptions = {}) {
  const sent: { message: PublishMessage; token: number }[] = [];
  const changes = new Set<(change: ConnectionChange) => void>();
  const state: { listener?: PublishListener; closed: boolean } = { closed: false };
  const port: PublishPort = {
    idPrefix: "id",
    listen: (listener) => {
      state.listener = listener;
    },
    encodeHeaders: ({ id }) => new TextEncoder().encode(id),
    send: (message, token) => void sent.push({ message, token }),
    probe: async () => [],
    close: () => {
      state.closed = true;
    },
  };
  const layout = {
    subject: "orders",
    generation: 1,
    lanes: 4,
    hash: "murmur3",
    mapping: "publisher",
  } as const;
  const streamPort = { read: () => Promise.reject(new Error("planted")) } as never;
  const context: LanesContext = {
    stream: "ORDERS",
    layout,
    opened: { duplicateWindowMs: 120_000 } as LanesContext["opened"],
    streamPort,
    connection: {
      serverVersion: "2.15.1",
      serverId: "server",
      clustered: false,
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
  const publisher = createPublisher<Record<string, unknown>>(context, port, options);
  const answer = (token: number, text: string) =>
    state.listener?.answered(token, new TextEncoder().encode(text));
  const tell = (change: ConnectionChange) => {
    for (const observe of [...changes]) observe(change);
  };
  return { publisher, sent, state, answer, tell, observers: changes };
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
  const ids = sent.map(({ message }) => new TextDecoder().decode(message.headers));
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
