import { describe, expect, test } from "vitest";
import { LanekeeperError } from "./lanekeeper-error.js";
import { refusal, setUp } from "./publish-queue.test-support.js";

describe("P1: one unsettled event per key", () => {
  test("the next of a key goes out when the first is stored; other keys do not wait", () => {
    const { queue, accept, did } = setUp();
    for (const name of ["a1", "a2", "b1"]) accept(name);
    expect(did()).toEqual(["send a1 1", "send b1 2"]);
    queue.stored(1, 7, false, 1);
    expect(did()).toEqual(["resolve a1 7", "send a2 3"]);
    expect(queue.count).toBe(2);
  });

  test("a definite refusal lets the next one go", () => {
    const { queue, accept, did } = setUp();
    for (const name of ["a1", "a2"]) accept(name);
    queue.refused(1, refusal("refused"), 1);
    expect(did()).toEqual(["send a1 1", "reject a1 STREAM_FULL", "send a2 2"]);
  });

  test("an overdue answer is followed by a round trip, and only then by a second attempt", () => {
    const { queue, accept, did } = setUp();
    accept("a1");
    queue.tick(499);
    queue.tick(500);
    queue.tick(600);
    expect(did()).toEqual(["send a1 1", "ping"]);
    queue.roundTrip(500, 601);
    expect(did()).toEqual(["send a1 2"]);
    queue.stored(1, 3, false, 602);
    queue.stored(2, 3, true, 603);
    expect(did()).toEqual(["resolve a1 3"]);
  });

  test("a refusal while an earlier attempt is open settles nothing", () => {
    const { queue, accept, did } = setUp();
    for (const name of ["a1", "a2"]) accept(name);
    queue.disconnected();
    queue.reconnected(100);
    queue.refused(2, refusal("refused"), 101);
    expect(did()).toEqual(["send a1 1", "send a1 2"]);
    queue.tick(300);
    queue.stored(1, 4, false, 301);
    expect(did()).toEqual(["send a1 3", "resolve a1 4", "send a2 4"]);
  });

  test("after its deadline an unknown outcome holds the key; what waited behind it is known not to be stored", () => {
    const { queue, accept, did } = setUp();
    for (const name of ["a1", "a2"]) accept(name);
    queue.tick(10_000);
    expect(did()).toEqual(["send a1 1", "reject a2 PUBLISH_TIMEOUT", "reject a1 PUBLISH_TIMEOUT", "ping"]);
    accept("a3", 10_001);
    queue.roundTrip(10_000, 10_002);
    expect(did()).toEqual(["send a1 2"]);
    queue.stored(2, 5, true, 10_003);
    expect(did()).toEqual(["send a3 3"]);
  });

  test("past half the window nothing is sent again; past the window the stream is read before the key goes on", () => {
    const { queue, accept, look, did } = setUp();
    accept("a1");
    queue.tick(10_000);
    did();
    queue.roundTrip(30_000, 30_001);
    queue.tick(59_000);
    expect(did()).toEqual([]);
    queue.tick(60_000);
    accept("a2", 60_000);
    expect(did()).toEqual(["look for a1"]);
    queue.eventSeen(look(), { type: "unreadable", forbidden: false }, 60_001);
    queue.tick(61_500);
    queue.eventSeen(look(), { type: "absent" }, 61_501);
    expect(did()).toEqual(["look for a1", "send a2 2"]);
  });

  test("nothing is sent while disconnected, and what was in flight goes first on the new connection", () => {
    const { queue, accept, did } = setUp({ connected: false });
    accept("a1");
    expect(did()).toEqual([]);
    queue.reconnected(5);
    expect(did()).toEqual(["send a1 1"]);
    queue.disconnected();
    accept("b1", 6);
    queue.tick(2_000);
    expect(did()).toEqual([]);
    queue.reconnected(2_001);
    expect(did()).toEqual(["send a1 2", "send b1 3"]);
  });
});

describe("expectLastSeq", () => {
  test("wrong last sequence is checked against the stream: stored after all, or really a conflict", () => {
    const { queue, accept, look, did } = setUp();
    for (const name of ["a1", "b1"]) accept(name);
    queue.refused(1, refusal("refused", "WRONG_LAST_SEQUENCE"), 1);
    queue.refused(2, refusal("refused", "WRONG_LAST_SEQUENCE"), 1);
    queue.eventSeen(look(), { type: "stored", seq: 9 }, 2);
    queue.eventSeen(look(), { type: "superseded" }, 2);
    expect(did().slice(2)).toEqual([
      "look for a1",
      "look for b1",
      "resolve a1 9 dup",
      "reject b1 WRONG_LAST_SEQUENCE",
    ]);
  });

  test("who may not read the stream gets the server's word when no other attempt is open", () => {
    const { queue, accept, look, did } = setUp();
    accept("a1");
    queue.refused(1, refusal("refused", "WRONG_LAST_SEQUENCE"), 1);
    queue.eventSeen(look(), { type: "unreadable", forbidden: true }, 2);
    expect(did().at(-1)).toBe("reject a1 WRONG_LAST_SEQUENCE");
  });
});

describe("R07: nobody listens", () => {
  test("no stream rejects; a sound stream or an election is waited for", () => {
    const { queue, accept, did } = setUp();
    accept("a1");
    queue.noResponders(1, 1);
    queue.streamSeen({ type: "unreadable", error: new LanekeeperError("JETSTREAM_UNAVAILABLE", "x") }, 2);
    queue.tick(102);
    expect(did()).toEqual(["send a1 1", "look at stream", "send a1 2"]);
    queue.noResponders(2, 103);
    queue.streamSeen({ type: "ok" }, 104);
    queue.tick(304);
    expect(did()).toEqual(["look at stream", "send a1 3"]);
    queue.noResponders(3, 305);
    queue.streamSeen(
      { type: "missing", error: () => new LanekeeperError("NO_STREAM_FOR_SUBJECT", "x") },
      306,
    );
    expect(did()).toEqual(["look at stream", "reject a1 NO_STREAM_FOR_SUBJECT"]);
    expect(queue.count).toBe(0);
  });

  test("three times on a sound stream is put down to the missing mapping", () => {
    const { queue, accept, did } = setUp();
    accept("a1");
    for (let token = 1; token <= 3; token++) {
      queue.noResponders(token, token * 1_000);
      queue.streamSeen(
        { type: "ok", unheard: () => new LanekeeperError("NO_STREAM_FOR_SUBJECT", "x") },
        token * 1_000,
      );
      queue.tick(token * 1_000 + 900);
    }
    expect(did().at(-1)).toBe("reject a1 NO_STREAM_FOR_SUBJECT");
  });
});

describe("O8: a layout fault", () => {
  test("refuses what is new and what was never sent; what may be stored waits for its answer", () => {
    const { queue, accept, did } = setUp();
    for (const name of ["a1", "a2"]) accept(name);
    queue.setFault(new LanekeeperError("LAYOUT_DIFFERS", "x"), 1);
    expect(accept("b1")).toBe("LAYOUT_DIFFERS");
    expect(did()).toEqual(["send a1 1", "reject a2 LAYOUT_DIFFERS"]);
    queue.tick(600);
    expect(did()).toEqual(["reject a1 LAYOUT_DIFFERS"]);
    queue.setFault(undefined, 700);
    accept("a3", 701);
    expect(did()).toEqual(["ping"]);
    queue.roundTrip(700, 702);
    queue.stored(2, 3, true, 703);
    expect(did()).toEqual(["send a1 2", "send a3 3"]);
  });
});

describe("bounds", () => {
  test("by count and by bytes; room counts on an event as large as the largest", () => {
    const { queue, accept } = setUp({ maxPending: 3, maxPendingBytes: 100 });
    expect(accept("a1", 0, 60)).toBeUndefined();
    expect(queue.usefulRoom).toBe(0);
    expect(accept("b1", 0, 50)).toBe("BUFFER_FULL");
    expect(accept("b1", 0, 101)).toBe("PAYLOAD_TOO_LARGE");
    expect(accept("b1", 0, 10)).toBeUndefined();
    expect(accept("c1", 0, 10)).toBeUndefined();
    expect(accept("d1", 0, 1)).toBe("BUFFER_FULL");
    queue.stored(1, 1, false, 1);
    expect(queue.usefulRoom).toBe(1);
    queue.stored(2, 2, false, 2);
    queue.stored(3, 3, false, 3);
    expect(queue.usefulRoom).toBe(1);
  });

  test("a denied subject rejects its own attempt only", () => {
    const { queue, accept, did } = setUp();
    for (const name of ["a1", "b1"]) accept(name);
    queue.denied(({ name }) => name === "a1", new LanekeeperError("PERMISSION_DENIED", "x"), 1);
    expect(did().slice(2)).toEqual(["reject a1 PERMISSION_DENIED"]);
  });

  test("closing rejects all that is pending and everything after", () => {
    const { queue, accept, did } = setUp();
    for (const name of ["a1", "a2", "b1"]) accept(name);
    queue.close(new LanekeeperError("CONNECTION_CLOSED", "x"));
    expect(did().slice(2)).toEqual([
      "reject a2 CONNECTION_CLOSED",
      "reject a1 CONNECTION_CLOSED",
      "reject b1 CONNECTION_CLOSED",
    ]);
    expect(accept("c1")).toBe("CONNECTION_CLOSED");
    expect(queue.count).toBe(0);
  });
});
