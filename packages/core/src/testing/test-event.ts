import { jsonCodec } from "../domain/codec.js";
import type { EventMeta, HandlerContext, LaneEvent } from "../domain/event.js";

/**
 * An event for a handler's own tests: what is not given is plausible (lane 0, generation 1, seq 1, attempt 1, stored now,
 * no headers, the JSON of `data` as bytes).
 */
export function testEvent(
  event: { key: string; type: string; data: unknown } & Partial<EventMeta>,
): LaneEvent<never> {
  const lane = event.lane ?? 0;
  const complete = {
    subject: `test.${lane}.${event.key}.${event.type}`,
    bytes: jsonCodec.encode(event.data, event.type),
    headers: {},
    lane,
    generation: 1,
    seq: 1,
    storedAt: new Date(),
    attempt: 1,
    ...event,
  };
  // `never` fits the event of every handler: a test names the type it means by calling the handler.
  return Object.freeze(complete) as unknown as LaneEvent<never>;
}

/** A context for a handler's own tests: a signal that never aborts, fence token 1, group and worker "test". */
export function testContext(context: Partial<HandlerContext> = {}): HandlerContext {
  return Object.freeze({
    signal: new AbortController().signal,
    fence: Object.freeze({ token: 1, incarnation: "test" }),
    group: "test",
    workerId: "test",
    ...context,
  });
}
