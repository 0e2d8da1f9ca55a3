import { awaitCondition } from "./await-condition.js";
import type { NatsFrame } from "./nats-frame.js";
import type { ProxyConnection } from "./nats-proxy.js";
import type { Direction } from "./proxy-pipe.js";

export interface ProxyRule {
  direction: Direction;
  match: (frame: NatsFrame, connection: ProxyConnection) => boolean;
  /**
   * What happens to a command that matches:
   * - `watch` only remembers it, and leaves it to the other rules;
   * - `drop` loses it;
   * - `hold` keeps it until `release()`;
   * - `cut` loses it and resets its connection;
   * - `{ delayMs }` passes it on later: what follows overtakes it, which no single TCP connection does by itself.
   */
  action: "watch" | "drop" | "hold" | "cut" | { delayMs: number };
  /** The first so many matches are left to the rules behind it. Default 0. */
  skip?: number;
  /** How many are acted on after that; further matches are left to the rules behind it. Default: all. */
  times?: number;
}

/** What a rule has seen. */
export interface Interception {
  /** The commands it acted on, oldest first. */
  readonly frames: readonly NatsFrame[];
  /** Resolves once it has acted on that many. @throws Error after `timeoutMs`, default 20,000. */
  acted(count: number, timeoutMs?: number): Promise<void>;
  /** Passes on what was held, in order; later matches are still held. */
  release(): void;
  /** Takes the rule away and passes on what it held. */
  remove(): void;
}

export type Verdict =
  | { readonly type: "pass" | "drop" | "cut" }
  | { readonly type: "delay"; readonly delayMs: number }
  | { readonly type: "hold"; readonly keep: (passOn: () => void) => void };

const PASS: Verdict = { type: "pass" };

/** A watching rule in a long test must not eat the memory: more than this is a mistake in the test. */
const MAX_FRAMES = 200_000;

/** Is told of every command when it is about to be passed on, before any rule acts. */
export type ProxyObserver = (direction: Direction, frame: NatsFrame, connection: ProxyConnection) => void;

/** The rules of one proxy, oldest first. */
export class ProxyRuleBook {
  readonly #rules = new Set<ActiveRule>();
  readonly #observers = new Set<ProxyObserver>();

  add(rule: ProxyRule): Interception {
    const active = new ActiveRule(rule, () => this.#rules.delete(active));
    this.#rules.add(active);
    return active;
  }

  observe(observer: ProxyObserver): Disposable {
    this.#observers.add(observer);
    return { [Symbol.dispose]: () => void this.#observers.delete(observer) };
  }

  judge(direction: Direction, frame: NatsFrame, connection: ProxyConnection): Verdict {
    for (const observer of this.#observers) observer(direction, frame, connection);
    let verdict: Verdict | undefined;
    for (const rule of this.#rules) {
      if (verdict === undefined || rule.isWatching) {
        verdict = rule.judge(direction, frame, connection) ?? verdict;
      }
    }
    return verdict ?? PASS;
  }

  close(): void {
    this.#rules.clear();
    this.#observers.clear();
  }
}

class ActiveRule implements Interception {
  readonly frames: NatsFrame[] = [];
  readonly #rule: ProxyRule;
  readonly #onRemove: () => void;
  readonly #held: (() => void)[] = [];
  #seen = 0;

  constructor(rule: ProxyRule, onRemove: () => void) {
    this.#rule = rule;
    this.#onRemove = onRemove;
  }

  get isWatching(): boolean {
    return this.#rule.action === "watch";
  }

  /** Undefined where it leaves the command to others. */
  judge(direction: Direction, frame: NatsFrame, connection: ProxyConnection): Verdict | undefined {
    const rule = this.#rule;
    if (direction !== rule.direction || !rule.match(frame, connection)) return undefined;
    this.#seen += 1;
    const first = (rule.skip ?? 0) + 1;
    if (this.#seen < first || this.#seen >= first + (rule.times ?? Number.POSITIVE_INFINITY))
      return undefined;
    if (this.frames.length >= MAX_FRAMES) throw new Error(`a proxy rule matched over ${MAX_FRAMES} commands`);
    // A copy: the frame is a view of a socket buffer that may be large.
    this.frames.push({ ...frame, payload: Buffer.from(frame.payload), bytes: Buffer.from(frame.bytes) });
    if (rule.action === "watch") return undefined;
    if (rule.action === "hold") return { type: "hold", keep: (passOn) => void this.#held.push(passOn) };
    if (typeof rule.action === "object") return { type: "delay", delayMs: rule.action.delayMs };
    return { type: rule.action };
  }

  async acted(count: number, timeoutMs = 20_000): Promise<void> {
    await awaitCondition(() => this.frames.length >= count, {
      timeoutMs,
      what: () => `the proxy rule to act ${count} times (so far ${this.frames.length})`,
    });
  }

  release(): void {
    for (const passOn of this.#held.splice(0)) passOn();
  }

  remove(): void {
    this.#onRemove();
    this.release();
  }
}
