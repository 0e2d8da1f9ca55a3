import { describe, expect, test } from "vitest";
import { LanekeeperError } from "./lanekeeper-error.js";
import { refusal, setUp } from "./publish-queue.test-support.js";

describe("P1: atomic batches", () => {
  function setUpBatches(options: { uniqueIds?: boolean } = {}) {
    const world = setUp(options);
    world.queue.allowBatches(32);
    return world;
  }

  test("a run of 32 or more goes out as one, and the next of the key waits for its answer", () => {
    const { queue, accept, fill, did } = setUpBatches();
    fill(32);
    queue.stored(1, 1, false, 1);
    expect(did()).toEqual(["send a1 1", "resolve a1 1", "send a2 2"]);
    accept("a33");
    accept("a34");
    queue.stored(2, 2, false, 2);
    expect(did()).toEqual(["resolve a2 2", "batch a3-a34 3"]);
    accept("a35");
    accept("b1");
    expect(did()).toEqual(["send b1 4"]);
    queue.batchStored(3, 34, 3);
    expect(did()).toEqual([
      ...Array.from({ length: 32 }, (_, n) => `resolve a${n + 3} ${n + 3}`),
      "send a35 5",
    ]);
  });

  test("the more keys have events, the longer a run has to be: many keys fill the server without batches", () => {
    const { queue, accept, fill, did } = setUpBatches();
    for (const name of ["b1", "c1"]) accept(name);
    fill(90);
    queue.stored(3, 1, false, 1);
    expect(did().at(-1)).toBe("send a2 4");
    queue.stored(1, 2, false, 2);
    queue.stored(4, 3, false, 3);
    expect(did().at(-1)).toBe("batch a3-a90 5");
  });

  test("at most 1,000 events and four batches at once", () => {
    const { queue, accept, fill, did } = setUp({ maxPending: 20_000 });
    queue.allowBatches(3);
    fill(1_500);
    queue.stored(1, 1, false, 1);
    expect(did().at(-1)).toBe("batch a2-a1001 2");
    for (const key of ["b", "c", "d", "e"]) {
      for (let n = 1; n <= 400; n++) accept(`${key}${n}`);
    }
    for (let token = 3; token <= 6; token++) queue.stored(token, token, false, 2);
    expect(did().filter((one) => /^batch|^send .2 /.test(one))).toEqual([
      "batch b2-b400 7",
      "batch c2-c400 8",
      "batch d2-d400 9",
      "send e2 10",
    ]);
  });

  test("no answer: first a round trip, then its events one by one, the first of them first", () => {
    const { queue, fill, did } = setUpBatches();
    fill(40);
    queue.stored(1, 1, false, 1);
    did();
    queue.tick(500);
    queue.tick(501);
    expect(did()).toEqual(["ping"]);
    queue.roundTrip(501, 502);
    expect(did()).toEqual(["send a2 3"]);
    queue.stored(3, 2, true, 503);
    expect(did()).toEqual(["resolve a2 2 dup", "send a3 4"]);
  });

  test("a refusal of one event settles nothing while the batch it was in is open", () => {
    const { queue, fill, did } = setUpBatches();
    fill(40);
    queue.stored(1, 1, false, 1);
    queue.disconnected();
    queue.reconnected(2);
    did();
    queue.refused(3, refusal("refused"), 3);
    expect(did()).toEqual([]);
    queue.batchFailed(2, "none", 4);
    queue.tick(200);
    queue.refused(4, refusal("refused"), 201);
    expect(did()).toEqual(["send a2 4", "reject a2 STREAM_FULL", "send a3 5"]);
  });

  test("once its first event is stored a silent batch is over: a refusal then settles, and told events let go of the key", () => {
    const { queue, fill, did } = setUpBatches();
    fill(40);
    queue.stored(1, 1, false, 1);
    queue.disconnected();
    queue.reconnected(2);
    // As when the account was full in the middle of the batch: one part is stored, and no answer ever comes.
    queue.stored(3, 2, true, 3);
    queue.stored(4, 3, true, 4);
    did();
    queue.refused(5, refusal("refused"), 5);
    expect(did()).toEqual(["reject a4 STREAM_FULL", "send a5 6"]);
    queue.tick(60_000);
    did();
    queue.refused(6, refusal("refused"), 60_001);
    expect(queue.count).toBe(0);
  });

  test("a duplicate of a caller's own id does not end a silent batch: it may be older than that", () => {
    const { queue, fill, did } = setUpBatches({ uniqueIds: false });
    fill(40);
    queue.stored(1, 1, false, 1);
    queue.disconnected();
    queue.reconnected(2);
    queue.stored(3, 2, true, 3);
    did();
    queue.refused(4, refusal("refused"), 4);
    expect(did()).toEqual([]);
    queue.tick(500);
    expect(did()).toEqual(["send a3 5"]);
    queue.stored(5, 3, false, 501);
    queue.refused(6, refusal("refused"), 502);
    expect(did()).toEqual(["resolve a3 3", "send a4 6", "reject a4 STREAM_FULL", "send a5 7"]);
  });

  test("a late answer settles all of it that is still there, each with its own sequence", () => {
    const { queue, fill, did } = setUpBatches();
    fill(34);
    queue.stored(1, 1, false, 1);
    queue.disconnected();
    queue.reconnected(2);
    queue.stored(3, 2, true, 3);
    did();
    queue.batchStored(2, 34, 4);
    expect(did()).toEqual(Array.from({ length: 32 }, (_, n) => `resolve a${n + 3} ${n + 3}`));
    expect(queue.count).toBe(0);
    queue.stored(4, 3, true, 5);
    expect(did()).toEqual([]);
  });

  test("past its deadline each of its events is told that it may be stored, and none of them lets go of the key", () => {
    const { queue, accept, fill, maybeStored, did } = setUpBatches();
    fill(34);
    queue.stored(1, 1, false, 1);
    did();
    accept("a35", 5);
    queue.tick(10_000);
    expect(did().filter((one) => one.startsWith("reject"))).toHaveLength(33);
    expect(["a2", "a34"].map(maybeStored)).toEqual([true, true]);
    expect(queue.count).toBe(34);
    queue.tick(10_005);
    expect(did()).toEqual(["reject a35 PUBLISH_TIMEOUT"]);
    expect(maybeStored("a35")).toBe(false);
    queue.batchStored(2, 34, 10_006);
    accept("a36", 10_007);
    expect(did()).toEqual(["send a36 3"]);
  });

  test("a batch known late to be stored nowhere, whose callers were told: its events leave, unsent", () => {
    const { queue, accept, fill, did } = setUpBatches();
    fill(34);
    queue.stored(1, 1, false, 1);
    queue.tick(10_000);
    accept("a35", 10_001);
    did();
    queue.batchFailed(2, "none", 10_002);
    expect(did()).toEqual(["send a35 3"]);
    expect(queue.count).toBe(1);
  });

  test("past the window none of its events is sent again: each is looked for", () => {
    const { queue, accept, fill, look, did } = setUpBatches();
    fill(34);
    queue.stored(1, 1, false, 1);
    queue.disconnected();
    queue.tick(10_001);
    did();
    queue.reconnected(60_001);
    accept("a35", 60_001);
    for (let n = 2; n <= 34; n++) {
      expect(did()).toEqual([`look for a${n}`]);
      queue.eventSeen(look(), { type: "absent" }, 60_002);
    }
    expect(did()).toEqual(["send a35 3"]);
  });

  test("R07: a commit that reaches nobody: the first event goes alone and finds out why", () => {
    const { queue, fill, did } = setUpBatches();
    fill(34);
    queue.stored(1, 1, false, 1);
    did();
    queue.noResponders(2, 2);
    expect(did()).toEqual(["send a2 3"]);
    queue.noResponders(3, 3);
    expect(did()).toEqual(["look at stream"]);
  });

  test("a denied subject takes its batch apart; only its own events are rejected", () => {
    const { queue, fill, did } = setUpBatches();
    fill(34);
    queue.stored(1, 1, false, 1);
    did();
    const denied = () =>
      queue.denied(({ name }) => name === "a3", new LanekeeperError("PERMISSION_DENIED", "x"), 2);
    denied();
    queue.stored(3, 2, false, 3);
    denied();
    expect(did()).toEqual([
      "send a2 3",
      "resolve a2 2",
      "send a3 4",
      "reject a3 PERMISSION_DENIED",
      "send a4 5",
    ]);
  });

  test("O8: a fault rejects what is behind a batch; the batch waits for its answer", () => {
    const { queue, accept, fill, did } = setUpBatches();
    fill(34);
    queue.stored(1, 1, false, 1);
    accept("a35", 2);
    did();
    queue.setFault(new LanekeeperError("LAYOUT_DIFFERS", "x"), 3);
    expect(did()).toEqual(["reject a35 LAYOUT_DIFFERS"]);
    queue.batchStored(2, 34, 4);
    expect(did()).toHaveLength(33);
    expect(queue.count).toBe(0);
  });

  test("closing tells each of its events that it may be stored", () => {
    const { queue, fill, maybeStored, did } = setUpBatches();
    fill(34);
    queue.stored(1, 1, false, 1);
    did();
    queue.close(new LanekeeperError("CONNECTION_CLOSED", "x"));
    expect(did()).toEqual(Array.from({ length: 33 }, (_, n) => `reject a${n + 2} CONNECTION_CLOSED`));
    expect(["a2", "a34"].map(maybeStored)).toEqual([true, true]);
    expect(queue.count).toBe(0);
  });

  test("after a failed batch none is sent for a while, twice as long each time; a stored one ends that", () => {
    const { queue, fill, did } = setUpBatches();
    let now = 0;
    let token = 1;
    const run = () => {
      fill(40, now);
      queue.stored(token++, 1, false, now);
      return did().find((one) => one.startsWith("batch") || one.startsWith("send a2"));
    };
    const drain = () => {
      while (queue.count > 0) queue.stored(token++, 1, false, now);
      did();
    };
    for (const pause of [100, 200, 400]) {
      expect(run()).toMatch(/^batch/);
      queue.batchFailed(token++, "none", now);
      drain();
      now += pause - 1;
      expect(run()).toMatch(/^send/);
      drain();
      now += 1;
    }
    expect(run()).toMatch(/^batch/);
    queue.batchStored(token++, 40, now);
    expect(run()).toMatch(/^batch/);
    queue.batchFailed(token++, "none", now);
    drain();
    now += 100;
    expect(run()).toMatch(/^batch/);
  });

  test("what was in a failed batch goes alone, also when batches may go again: it may be stored", () => {
    const { queue, fill, did } = setUpBatches();
    fill(80);
    queue.stored(1, 1, false, 1);
    queue.batchFailed(2, "part", 2);
    did();
    queue.stored(3, 2, false, 5_000);
    expect(did()).toEqual(["resolve a2 2", "send a3 4"]);
  });

  test("what a failed batch may have stored is told so, though its own attempts were certainly in vain", () => {
    const missing = () => new LanekeeperError("NO_STREAM_FOR_SUBJECT", "nobody listens");
    const unheard = ({ queue, did }: ReturnType<typeof setUpBatches>, firstToken: number) => {
      for (let token = firstToken; token < firstToken + 3; token++) {
        queue.noResponders(token, token * 1_000);
        queue.streamSeen({ type: "ok", unheard: missing }, token * 1_000);
        queue.tick(token * 1_000 + 900);
      }
      return did();
    };
    const batched = setUpBatches();
    batched.fill(40);
    batched.queue.stored(1, 1, false, 1);
    batched.queue.batchFailed(2, "part", 2);
    expect(unheard(batched, 3)).toContain("reject a2 NO_STREAM_FOR_SUBJECT");
    expect(batched.maybeStored("a2")).toBe(true);
    const refused = setUpBatches();
    refused.fill(40);
    refused.queue.stored(1, 1, false, 1);
    refused.queue.batchFailed(2, "part", 2);
    refused.queue.refused(3, refusal("refused"), 3);
    expect(refused.maybeStored("a2")).toBe(true);
    const alone = setUpBatches();
    alone.fill(1);
    expect(unheard(alone, 1)).toContain("reject a1 NO_STREAM_FOR_SUBJECT");
    expect(alone.maybeStored("a1")).toBe(false);
  });

  test("a server that answers a batch as if it were an event gets no more of them", () => {
    const { queue, fill, did } = setUpBatches();
    fill(40);
    queue.stored(1, 1, false, 1);
    queue.batchFailed(2, "unclear", 2, true);
    for (let token = 3; queue.count > 0; token++) queue.stored(token, token, true, 3);
    did();
    fill(40, 100_000);
    queue.stored(42, 42, false, 100_001);
    expect(did().at(-1)).toMatch(/^send a2/);
  });
});
