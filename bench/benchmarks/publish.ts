import { startTestServer } from "@lanekeeper/core/testing";
import { compare } from "../measure/compare.js";
import { publishTrial } from "../measure/publish-trial.js";
import type { Row } from "../measure/row.js";
import { lanekeeperPublisher } from "../subjects/lanekeeper-publisher.js";
import { manyInFlight, oneByOne, withoutAcks } from "../subjects/plain-publishers.js";
import { makeStream } from "../workload/bench-stream.js";
import { keySequence } from "../workload/key-sequence.js";
import { type Benchmark, sized } from "./benchmark.js";

const LANES = 64;
const KEYS = [1, 16, 1_000] as const;
/** One key: one event on its way at a time, so far fewer in the same time. */
const MESSAGES: Readonly<Record<(typeof KEYS)[number], number>> = { 1: 20_000, 16: 60_000, 1000: 150_000 };

export const publish: Benchmark = {
  name: "publish",
  summary: "storing events, beside js.publish() and publishing without acks",
  notes: [
    "One process, one connection, 130-byte JSON, a new file stream for every run; the clock runs from the first call to the last PubAck.",
    "Every stream is read back: an event that is missing ends the benchmark, one out of order is an order fault.",
    "One round of the first case runs beforehand and does not count.",
    "Lanekeeper sends a message id with every event and has one event of a key, or one atomic batch of them, on its way at a time; js.publish() sends none, and 1,000 in flight keep order only as long as nothing fails.",
    "Without acks nobody learns what was stored: that is the client's limit and not something to use.",
  ],
  async run(options) {
    await using server = await startTestServer();
    const rows: Row[] = [];
    for (const keys of KEYS) {
      const messages = sized(MESSAGES[keys] / (options.quick ? 5 : 1), options, 100);
      const sequence = keySequence({ keys, messages, distribution: "uniform", seed: options.seed });
      const contestant = (subject: typeof lanekeeperPublisher) => ({
        name: subject.name,
        run: async () => publishTrial(subject, await makeStream(server, { lanes: LANES, keys }), sequence),
      });
      const compared = await compare(
        {
          name: `publish, ${keys.toLocaleString("en")} ${keys === 1 ? "key" : "keys"}`,
          subjects: [contestant(lanekeeperPublisher)],
          references: [
            ...(keys === 1 ? [contestant(oneByOne)] : []),
            contestant(manyInFlight),
            contestant(withoutAcks),
          ],
          warmUpRounds: keys === 1 ? 1 : 0,
        },
        options,
      );
      rows.push(...compared);
    }
    return { rows, versions: { "nats-server": server.version } };
  },
};
