import type { Socket } from "node:net";
import { type NatsFrame, NatsFrameReader } from "./nats-frame.js";
import type { Verdict } from "./proxy-rule.js";

export type Direction = "to-server" | "to-client";

/** More than this waiting in a pipe stops the reading: the sender then feels it, as on a real network. */
const MAX_QUEUED_BYTES = 8 * 1024 * 1024;

/** One direction of one connection: reads whole commands, asks what to do with each, passes them on in order. */
export class ProxyPipe {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #reader = new NatsFrameReader();
  readonly #rewrite: (frame: NatsFrame) => NatsFrame;
  readonly #judge: (frame: NatsFrame) => Verdict;
  readonly #onBroken: () => void;
  readonly #queue: { frame: NatsFrame; dueAt: number }[] = [];
  readonly #timers = new Set<NodeJS.Timeout>();
  #queuedBytes = 0;
  #paused = false;
  #delayMs = 0;
  #ending = false;
  #closed = false;

  constructor(options: {
    from: Socket;
    to: Socket;
    rewrite: (frame: NatsFrame) => NatsFrame;
    judge: (frame: NatsFrame) => Verdict;
    /** The bytes were no NATS protocol, or a rule cut the connection. */
    onBroken: () => void;
  }) {
    this.#from = options.from;
    this.#to = options.to;
    this.#rewrite = options.rewrite;
    this.#judge = options.judge;
    this.#onBroken = options.onBroken;
    this.#from.on("data", (chunk: Buffer) => this.#receive(chunk));
    this.#to.on("drain", () => this.#pump());
  }

  pause(): void {
    this.#paused = true;
    this.#throttle();
  }

  resume(): void {
    this.#paused = false;
    this.#pump();
  }

  delay(delayMs: number): void {
    this.#delayMs = delayMs;
  }

  /** The source is gone: passes on what has arrived, then ends the destination. */
  end(): void {
    this.#ending = true;
    this.#pump();
  }

  /** Drops everything at once. */
  close(): void {
    this.#closed = true;
    this.#queue.length = 0;
    this.#queuedBytes = 0;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
  }

  #receive(chunk: Buffer): void {
    if (this.#closed) return;
    let frames: NatsFrame[];
    try {
      frames = this.#reader.push(chunk);
    } catch {
      this.#onBroken();
      return;
    }
    const dueAt = performance.now() + this.#delayMs;
    for (const frame of frames) {
      this.#queue.push({ frame, dueAt });
      this.#queuedBytes += frame.bytes.length;
    }
    this.#pump();
  }

  #pump(): void {
    while (!this.#closed && !this.#paused && !this.#to.writableNeedDrain) {
      const head = this.#queue[0];
      if (head === undefined) break;
      const waitMs = head.dueAt - performance.now();
      if (waitMs > 0) {
        this.#later(waitMs, () => this.#pump());
        break;
      }
      this.#queue.shift();
      this.#queuedBytes -= head.frame.bytes.length;
      this.#act(this.#rewrite(head.frame));
    }
    if (this.#closed) return;
    this.#throttle();
    if (this.#ending && this.#queue.length === 0 && !this.#paused) this.#to.end();
  }

  #act(frame: NatsFrame): void {
    const verdict = this.#judge(frame);
    if (verdict.type === "pass") this.#write(frame);
    else if (verdict.type === "cut") this.#onBroken();
    else if (verdict.type === "delay") this.#later(verdict.delayMs, () => this.#write(frame));
    else if (verdict.type === "hold") verdict.keep(() => this.#write(frame));
  }

  #write(frame: NatsFrame): void {
    if (!this.#closed && this.#to.writable) this.#to.write(frame.bytes);
  }

  #later(waitMs: number, act: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      act();
    }, waitMs);
    this.#timers.add(timer);
  }

  #throttle(): void {
    const full = this.#queuedBytes > MAX_QUEUED_BYTES || this.#to.writableNeedDrain;
    if (this.#paused || full) this.#from.pause();
    else this.#from.resume();
  }
}
