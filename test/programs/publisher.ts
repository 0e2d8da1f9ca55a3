import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { type ErrorCode, LanekeeperError } from "@lanekeeper/core";
import { Zipf } from "../chaos/zipf.js";
import { CALL_HEADER, type EventSource, type PublisherProgramOptions } from "../harness/program-options.js";
import { SeededRandom } from "../harness/seeded-random.js";
import { announceReady, describeError, programOptions, startProgram } from "./program.js";

/** With these the event is definitely not stored; with any other it may be. */
const REFUSALS: readonly ErrorCode[] = [
  "INVALID_KEY",
  "INVALID_TYPE",
  "INVALID_ID",
  "INVALID_HEADER",
  "ENCODE_FAILED",
  "PAYLOAD_TOO_LARGE",
  "BUFFER_FULL",
  "NO_STREAM_FOR_SUBJECT",
  "STREAM_FULL",
  "PUBLISH_REJECTED",
  "WRONG_LAST_SEQUENCE",
];

const options = programOptions<PublisherProgramOptions>();
await using program = await startProgram(options);
const { lanes, recorder } = program;
const publisher = lanes.publisher(options.publisher);
const progress = { called: 0, settled: 0, failed: 0 };
const stopping = new AbortController();
process.once("SIGTERM", () => stopping.abort());
announceReady(() => progress);

const startedAt = performance.now();
for await (const event of eventsOf(options.events)) {
  if (stopping.signal.aborted) break;
  await publisher.ready();
  if (options.perSecond !== undefined) {
    const waitMs = startedAt + (progress.called * 1_000) / options.perSecond - performance.now();
    if (waitMs > 1) await sleep(waitMs);
  }
  void publish(event);
}
await publisher.close();
if (progress.failed > 0) process.exitCode = 1;

async function publish(event: { key: string; type: string; data: unknown }): Promise<void> {
  progress.called += 1;
  const call = progress.called;
  const { key } = event;
  recorder.record({ kind: "publish-call", call, key });
  try {
    const receipt = await publisher.publish({
      ...event,
      headers: { [CALL_HEADER]: `${recorder.process}:${call}` },
    });
    progress.settled += 1;
    recorder.record({ kind: "publish-settled", call, key, ...receipt });
  } catch (error) {
    progress.failed += 1;
    const { message, code } = describeError(error);
    const refused = LanekeeperError.is(error) && REFUSALS.includes(error.code);
    recorder.record({
      kind: "publish-failed",
      call,
      key,
      error: message,
      refused,
      ...(code === undefined ? {} : { code }),
    });
    console.error(`call ${call} of key ${JSON.stringify(key)} failed: ${code ?? "no code"}: ${message}`);
  }
}

async function* eventsOf(source: EventSource): AsyncGenerator<{ key: string; type: string; data: unknown }> {
  if (source.type === "turns") {
    for (let index = 0; index < source.count; index++) {
      const data = { n: Math.floor(index / source.keys) + 1 };
      yield { key: `key-${index % source.keys}`, type: source.eventType ?? "tick", data };
    }
    return;
  }
  if (source.type === "zipf") {
    const zipf = new Zipf(source.keys, new SeededRandom(source.seed));
    const drawn = new Map<number, number>();
    for (let index = 0; index < (source.count ?? Number.POSITIVE_INFINITY); index++) {
      const key = zipf.draw();
      const n = (drawn.get(key) ?? 0) + 1;
      drawn.set(key, n);
      yield { key: `key-${key}`, type: "tick", data: { n } };
    }
    return;
  }
  for await (const line of createInterface({ input: createReadStream(source.file) })) {
    if (line === "") continue;
    const data = JSON.parse(line) as Record<string, unknown>;
    yield { key: String(data[source.keyField]), type: String(data[source.typeField]), data };
  }
}
