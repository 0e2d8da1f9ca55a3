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
    expect(subjects.address("customer-42", "a.b").subject).toBe("orders.10.customer-42.a.b");
    expect(subjects.address("customer-42", "a.b").route.lane).toBe(10);
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
      expect(subjects.address("d 1", "hall.temp").subject).toBe("sensors.hall.d%201.temp");
      expect(subjects.address("d2", "hall.temp").subject).toBe("sensors.hall.d2.temp");
    }
    expect(() => subjects.address("d2", "temp").subject).toThrow(
      expect.objectContaining({ name: "LanekeeperError", code: "INVALID_TYPE" }),
    );
    expect(() => subjects.address("", "hall.temp").subject).toThrow(
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
    for (let n = 0; n < 1_100; n++) expect(subjects.address("k", `t${n}`).subject).toBe(`in.o.k.t${n}`);
  });
});
