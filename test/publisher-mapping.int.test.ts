import type { LanekeeperError } from "@lanekeeper/core";
import { startTestServer } from "@lanekeeper/core/testing";
import { laneOf } from "@lanekeeper/partitioner";
import { expect, test } from "vitest";
import { within } from "./harness/await-condition.js";
import { openTestLanes, outcomeOf } from "./publisher-setup.js";

test("mapping stream: the server puts events into the lanes that receipts name", async () => {
  await using server = await startTestServer();
  await using opened = await openTestLanes(server.url, { create: { mapping: "stream", lanes: 12 } });
  await using publisher = opened.lanes.publisher();
  const keys = ["customer-42", "a b", "é", "日本"];
  const receipts = await Promise.all(keys.map((key) => publisher.publish({ key, type: "t", data: 1 })));
  expect(receipts.map(({ lane }) => lane)).toEqual(keys.map((key) => laneOf(key, 12, "fnv1a")));
  expect((await opened.stored()).sort()).toEqual(keys.map((key) => `${key}/t`).sort());
  expect(await outcomeOf(publisher.publish({ key: "k", type: "two.tokens", data: 1 }))).toBe("INVALID_TYPE");
  if (server.version.startsWith("2.10.")) return; // expectLastSeq needs 2.11.
  const last = receipts[0]?.seq;
  await publisher.publish({ key: "customer-42", type: "u", data: 1, expectLastSeq: last ?? -1 });
});

const mapping = (lanes: number) =>
  `mappings: { "in.orders.*.*": "orders.{{partition(${lanes},1)}}.{{wildcard(1)}}.{{wildcard(2)}}" }`;

test("mapping account: events go through the server's mappings; the check of the mapping stores nothing", async () => {
  await using server = await startTestServer({ config: mapping(8) });
  await using opened = await openTestLanes(server.url, { create: { mapping: "account" } });
  await using publisher = opened.lanes.publisher();
  const { lane } = await publisher.publish({ key: "customer-42", type: "t", data: 1 });
  expect(lane).toBe(laneOf("customer-42", 8, "fnv1a"));
  expect(await opened.stored()).toEqual(["customer-42/t"]);
});

test("mapping account: a server that maps to other lanes is refused with MAPPING_DIFFERS before anything is stored", async () => {
  await using server = await startTestServer({ config: mapping(4) });
  await using opened = await openTestLanes(server.url, { create: { mapping: "account" } });
  await using publisher = opened.lanes.publisher();
  const error = await publisher.publish({ key: "k", type: "t", data: 1 }).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: "MAPPING_DIFFERS" });
  expect(await opened.stored()).toEqual([]);
});

test("R07: mapping account without the mapping: the error names the intake and the missing mapping, long before the timeout", async () => {
  await using server = await startTestServer();
  await using opened = await openTestLanes(server.url, { create: { mapping: "account" } });
  await using publisher = opened.lanes.publisher();
  const refused = publisher.publish({ key: "k", type: "t", data: 1 }).catch((reason: unknown) => reason);
  // 2 s where nothing else runs; a publish that only waited would take its 30 s.
  const error = (await within(refused, 15_000, "a refusal")) as LanekeeperError;
  expect(error.code).toBe("NO_STREAM_FOR_SUBJECT");
  expect(error.message).toMatch(/"in\.orders\.k\.t".*nats-server\.conf/);
});
