import { describe, expect, test } from "vitest";
import { PublishSubjects } from "./publish-subject.js";

describe("subjects to publish to", () => {
  test("the lane's where the publisher maps", () => {
    const subjects = new PublishSubjects({
      subject: "orders",
      generation: 1,
      lanes: 12,
      hash: "fnv1a",
      mapping: "publisher",
    });
    expect(subjects.subject({ key: "customer-42", type: "a.b" })).toBe("orders.10.customer-42.a.b");
    expect(subjects.route("customer-42").lane).toBe(10);
  });

  test("the intake's where the server maps, key and type in their places", () => {
    const subjects = new PublishSubjects({
      subject: "readings",
      generation: 2,
      lanes: 4,
      hash: "fnv1a",
      mapping: "stream",
      intake: "sensors.*.{key}.*",
    });
    for (let round = 0; round < 2; round++) {
      expect(subjects.subject({ key: "d 1", type: "hall.temp" })).toBe("sensors.hall.d%201.temp");
      expect(subjects.subject({ key: "d2", type: "hall.temp" })).toBe("sensors.hall.d2.temp");
    }
    expect(() => subjects.subject({ key: "d2", type: "temp" })).toThrow(
      expect.objectContaining({ name: "LanekeeperError", code: "INVALID_TYPE" }),
    );
    expect(() => subjects.subject({ key: "", type: "hall.temp" })).toThrow(
      expect.objectContaining({ name: "LanekeeperError", code: "INVALID_KEY" }),
    );
  });

  test("more types than are remembered are still right", () => {
    const subjects = new PublishSubjects({
      subject: "o",
      generation: 1,
      lanes: 4,
      hash: "fnv1a",
      mapping: "account",
    });
    for (let n = 0; n < 1_100; n++)
      expect(subjects.subject({ key: "k", type: `t${n}` })).toBe(`in.o.k.t${n}`);
  });
});
