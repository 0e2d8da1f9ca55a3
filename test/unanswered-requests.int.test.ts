import { openLanes } from "@lanekeeper/core";
import { startTestServer } from "@lanekeeper/core/testing";
import { connect } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { awaitCondition } from "./harness/await-condition.js";
import { type NatsProxy, startNatsProxy } from "./harness/nats-proxy.js";

/** How often each subject's requests are lost: as on replicas, where nobody answers before there is a leader. */
const LOST = 2;
/** Waited for 30 s, and not asked for again. */
const CREATES_STREAM = "$JS.API.STREAM.CREATE.ORDERS";

test.each(["shared", "owned"] as const)(
  "%s: opening, starting, and asking about a group go on where requests stay unanswered at first",
  { timeout: 180_000 },
  async (assignment) => {
    await using server = await startTestServer();
    await using proxy = await startNatsProxy(server.url);
    const client = await connect({ servers: proxy.url });
    const lost = loseFirst(proxy);
    const lanes = await openLanes(client, {
      stream: "ORDERS",
      create: { subject: "orders", lanes: 2 },
      jetstream: { timeout: 300 },
    });
    const seen: string[] = [];
    const worker = await lanes.work({ group: "g", assignment }, ({ key }) => void seen.push(key));
    for (const kind of [
      "STREAM.INFO.ORDERS",
      assignment === "owned" ? "STREAM.INFO.KV_" : "CONSUMER.INFO.",
    ]) {
      expect(lost.filter((subject) => subject.includes(kind)).length, kind).toBeGreaterThanOrEqual(LOST);
    }
    const publisher = lanes.publisher();
    for (const key of ["a", "b", "c"]) await publisher.publish({ key, type: "t", data: 1 });
    await awaitCondition(() => seen.length === 3, { what: "all events", timeoutMs: 45_000 });
    await lanes.group("g").caughtUp({ signal: AbortSignal.timeout(60_000) });
    expect(await lanes.group("g").status()).toMatchObject({ pending: 0, inFlight: 0 });
    await worker.close();
    await lanes.group("g").delete();
    expect(await lanes.groups()).toEqual([]);
    await lanes.close();
    await client.close();
  },
);

/** Loses the first requests of every subject of the JetStream API. The returned array lists those that were. */
function loseFirst(proxy: NatsProxy): string[] {
  const asked = new Map<string, number>();
  const lost: string[] = [];
  proxy.intercept({
    direction: "to-server",
    match({ subject }) {
      if (!subject.startsWith("$JS.API.") || subject === CREATES_STREAM) return false;
      if (subject.includes(".MSG.NEXT.")) return false;
      // Every claim of a lane makes a consumer of its own, named by its epoch: it is the lane's that is lost.
      const what = subject.replace(/-e\d+/, "");
      const times = (asked.get(what) ?? 0) + 1;
      asked.set(what, times);
      if (times > LOST) return false;
      lost.push(subject);
      return true;
    },
    action: "drop",
  });
  return lost;
}
