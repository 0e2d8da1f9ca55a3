import { expect, test } from "vitest";
import { MemoryConsumers } from "./group-consumers.test-support.js";
import type { LaneConsumerState } from "./lane-consumer-port.js";
import { settledBelow } from "./lane-view.js";

function state(change: Partial<LaneConsumerState>): LaneConsumerState | undefined {
  const port = new MemoryConsumers();
  port.put("c", change);
  return port.kept.get("c");
}

test.each([
  [0, 1, 1],
  [7, 1, 8],
  // On replicated streams the floor is 0 until the first ack, wherever the consumer starts.
  [0, 40, 40],
  // Elsewhere it is the sequence before the start.
  [39, 40, 40],
  [52, 40, 53],
])("O3: ack floor %i of a consumer that starts at %i: settled below %i", (ackFloor, startSeq, below) => {
  expect(settledBelow({ lane: 0, state: state({ ackFloor, startSeq }), startSeq: 3 })).toBe(below);
});

test("without a consumer only what the group skipped at its start is settled", () => {
  expect(settledBelow({ lane: 0, state: undefined, startSeq: 12 })).toBe(12);
});
