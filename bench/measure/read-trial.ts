import { setTimeout as sleep } from "node:timers/promises";
import type { Reader } from "../subjects/reader.js";
import type { BenchData } from "../workload/bench-event.js";
import type { BenchStream } from "../workload/bench-stream.js";
import { checked, lostOf } from "./checked-handler.js";
import { between, type Mark, takeMark } from "./mark.js";
import { OrderCheck } from "./order-check.js";
import { Progress } from "./progress.js";
import type { Trial } from "./trial.js";

/** What to do for an event; the checks are around it. */
export type Work = (data: BenchData) => Promise<void>;

/**
 * Which part of a run is measured.
 *
 * - `middle`: the whole stream is read; measured to when 90 % of the events are done, from when 10 % are and the
 *   reader is ready everywhere. (Where that takes it longer than half of the stream, from when 10 % are.) With `held`,
 *   handlers are held until the reader is ready everywhere, so that no lane is ahead of another one, and measured is
 *   from 30 % on; for readers that take less than that without an ack.
 * - `timed`: handlers are held until the reader is ready everywhere, so that the stream is not read meanwhile; then
 *   it reads for `warmUpMs` and for `windowMs`, and the latter is measured, or up to 90 % of the stream. (Where that
 *   much is read while it warms up, from when the handlers were let go.)
 */
export type Window =
  | { readonly type: "middle"; readonly held?: boolean }
  | { readonly type: "timed"; readonly warmUpMs: number; readonly windowMs: number };

/**
 * Has a reader read a stream and measures it. Without `work` the handler does nothing.
 *
 * @throws when an event was lost: neither handled nor still waiting on the server.
 */
export async function readTrial(
  reader: Reader,
  stream: BenchStream,
  window: Window,
  work?: Work,
): Promise<Trial> {
  const serverPids = stream.server.nodes.flatMap(({ pid }) => pid ?? []);
  const order = new OrderCheck(stream.keys);
  using progress: Progress<Mark> = new Progress(() => takeMark(progress.done, serverPids));
  const calledAt = performance.now();
  const measured =
    window.type === "timed"
      ? undefined
      : untilRead(progress, window.held === true ? 0.3 : 0.1, stream.messages);
  measured?.catch(() => {});
  const held = window.type === "timed" || window.held === true;
  const gate = held ? new Gate() : undefined;
  const running = await reader.start(stream, checked(order, progress, gate?.before(work) ?? work));
  const ready = progress.now();
  let marks: [Mark, Mark];
  let unsettled: number;
  try {
    gate?.open();
    marks =
      window.type === "timed" ? await inTime(progress, window, stream.messages) : await readAll(measured);
  } finally {
    unsettled = (await running.stop()).unsettled;
  }
  const lost = lostOf(order, stream.messages, unsettled);
  if (lost !== undefined) throw new Error(lost);
  const [from, to] = window.type === "middle" ? fromReady(marks, ready, stream.messages) : marks;
  return between(from, to, order.faults, { readyMs: ready.at - calledAt });
}

async function untilRead(
  progress: Progress<Mark>,
  fromShare: number,
  messages: number,
): Promise<[Mark, Mark]> {
  const [from, to] = await Promise.all([
    progress.reached(Math.ceil(messages * fromShare)),
    progress.reached(Math.floor(messages * 0.9)),
    progress.reached(messages),
  ]);
  return [from, to];
}

async function readAll(measured: Promise<[Mark, Mark]> | undefined): Promise<[Mark, Mark]> {
  if (measured === undefined) throw new Error("this window measures a whole stream");
  return await measured;
}

function fromReady([from, to]: [Mark, Mark], ready: Mark, messages: number): [Mark, Mark] {
  const later = ready.messages > from.messages && ready.messages <= messages / 2;
  return [later ? ready : from, to];
}

async function inTime(
  progress: Progress<Mark>,
  window: Window & { type: "timed" },
  messages: number,
): Promise<[Mark, Mark]> {
  const opened = progress.now();
  await progress.first();
  await sleep(window.warmUpMs);
  const from = progress.now();
  const limit = new AbortController();
  const timeUp = sleep(window.windowMs, undefined, { signal: limit.signal }).then(() => progress.now());
  timeUp.catch(() => {});
  try {
    const inWindow = await Promise.race([timeUp, progress.reached(Math.floor(messages * 0.9))]);
    const start = inWindow.messages > from.messages ? from : opened;
    // On a machine that is busy with something else nothing may have ended by then: the window lasts until one has.
    const to = inWindow.messages > start.messages ? inWindow : await progress.reached(start.messages + 1);
    return [start, to];
  } finally {
    limit.abort();
  }
}

/** Holds handlers until it is opened. */
class Gate {
  #open: () => void = () => {};
  readonly #opened = new Promise<void>((resolve) => {
    this.#open = resolve;
  });
  #isOpen = false;

  before(work: Work | undefined): (data: BenchData) => Promise<void> | undefined {
    return (data) => {
      if (this.#isOpen) return work?.(data);
      return this.#opened.then(() => work?.(data));
    };
  }

  open(): void {
    this.#isOpen = true;
    this.#open();
  }
}
