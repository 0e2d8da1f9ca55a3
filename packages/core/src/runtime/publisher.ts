import { oldestWithBatches } from "../domain/batch-support.js";
import type { OutgoingEvent, PublishReceipt } from "../domain/event.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { PlainAckReader, type PublishAnswer, parsePublishAnswer } from "../domain/publish-ack.js";
import { leastEventsPerKey } from "../domain/publish-batches.js";
import type { PublishEffects } from "../domain/publish-effects.js";
import { PublishQueue } from "../domain/publish-queue.js";
import { batchFailure, publishRefusal } from "../domain/publish-refusal.js";
import type { StreamSight } from "../domain/publish-sight.js";
import { allOfKey } from "../domain/publish-subject.js";
import {
  type PublisherOptions,
  type ResolvedPublisherOptions,
  resolvePublisherOptions,
} from "../domain/publisher-options.js";
import { versionAtLeast } from "../domain/server-version.js";
import type { Timer } from "./clock.js";
import type { ConnectionChange } from "./connection-port.js";
import type { LanePublisher } from "./lane-publisher.js";
import type { LanesContext } from "./lanes-context.js";
import type { PublishEvent } from "./publish-event.js";
import { PublishIntake } from "./publish-intake.js";
import { mappingFault } from "./publish-mapping-check.js";
import type { PublishListener, PublishPort } from "./publish-port.js";
import { searchEvent } from "./publish-search.js";
import { PublishWaiters } from "./publish-waiters.js";
import type { StreamSnapshot } from "./stream-port.js";
import type { StreamState } from "./stream-watch.js";

/**
 * @param onStopped called when it is closed, or has closed itself with its connection
 * @throws LanekeeperError INVALID_OPTIONS, CONNECTION_CLOSED
 */
export function createPublisher<E extends object>(
  context: LanesContext,
  port: PublishPort,
  options: PublisherOptions = {},
  onStopped: (publisher: LanePublisher<E>) => void = () => {},
): LanePublisher<E> {
  const resolved = resolvePublisherOptions(options, context.opened.duplicateWindowMs);
  return new QueuedPublisher<E>(context, port, resolved, onStopped);
}

class QueuedPublisher<E extends object>
  implements LanePublisher<E>, PublishEffects<PublishEvent>, PublishListener
{
  readonly #context: LanesContext;
  readonly #port: PublishPort;
  readonly #onStopped: (publisher: LanePublisher<E>) => void;
  readonly #queue: PublishQueue<PublishEvent>;
  readonly #intake: PublishIntake;
  readonly #plainAck: PlainAckReader;
  readonly #waiters: PublishWaiters;
  readonly #stopObserving: (() => void)[];
  readonly #tickMs: number;
  #layoutFault: LanekeeperError | undefined;
  #mappingFault: LanekeeperError | undefined;
  #checkingMapping = false;
  /** Counts checks; the newest is the one that counts. */
  #mappingCheck = 0;
  #mappingTimer: Timer | undefined;
  #timer: Timer | undefined;
  #closed: Promise<void> | undefined;

  constructor(
    context: LanesContext,
    port: PublishPort,
    options: ResolvedPublisherOptions,
    onStopped: (publisher: LanePublisher<E>) => void,
  ) {
    this.#context = context;
    this.#port = port;
    this.#onStopped = onStopped;
    const { connection, opened, watch, clock } = context;
    const limits = { ...options, duplicateWindowMs: opened.duplicateWindowMs };
    this.#queue = new PublishQueue<PublishEvent>(limits, this, connection.isConnected());
    this.#queue.allowBatches(this.#leastPerKey(opened));
    this.#intake = new PublishIntake(context, options, port.idPrefix);
    this.#plainAck = new PlainAckReader(context.stream);
    this.#waiters = new PublishWaiters(
      () => this.#queue.usefulRoom,
      clock,
      options.timeoutMs,
      () => this.#queue.enoughRoom,
    );
    this.#tickMs = Math.min(Math.max(options.timeoutMs / 20, 10), 100);
    port.listen(this);
    this.#stopObserving = [
      connection.observe((change) => this.#onConnection(change)),
      watch.observe((state) => this.#onStream(state)),
    ];
    this.#checkMapping();
  }

  publish<K extends keyof E & string>(event: OutgoingEvent<E, K>): Promise<PublishReceipt> {
    let taken: PublishEvent;
    try {
      taken = this.#intake.take(event, this.#accepted, this.#now);
    } catch (error) {
      return Promise.reject(error);
    }
    const receipt = new Promise<PublishReceipt>((resolve, reject) => {
      taken.resolve = resolve;
      taken.reject = reject;
    });
    const fault = this.#queue.accept(taken, this.#now());
    if (fault !== undefined) taken.reject(fault);
    else {
      this.#waiters.onAccepted();
      this.#timer ??= this.#context.clock.after(this.#tickMs, this.#tick);
    }
    return receipt;
  }

  ready(): Promise<void> {
    return this.#waiters.room();
  }

  flush(): Promise<void> {
    return this.#waiters.settled();
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  // ── what the queue does ───────────────────────────────────────────────────────────────────────────────────────

  send(event: PublishEvent, token: number): void {
    this.#port.send(event, token);
  }

  sendBatch(events: readonly PublishEvent[], token: number): void {
    this.#port.sendBatch(events, token);
  }

  resolve(event: PublishEvent, seq: number, duplicate: boolean): void {
    event.resolve({ lane: event.route.lane, seq, duplicate });
    this.#waiters.onSettled(event.number);
  }

  reject(event: PublishEvent, error: LanekeeperError): void {
    event.reject(error);
    this.#waiters.onSettled(event.number);
  }

  lookForEvent(event: PublishEvent): void {
    void searchEvent(this.#context.streamPort, event, allOfKey(event.route)).then((sight) => {
      this.#queue.eventSeen(event, sight, this.#now());
      this.#waiters.onRoom();
    });
  }

  lookAtStream(): void {
    void this.#context.watch.look().then((state) => {
      this.#queue.streamSeen(this.#sightOf(state), this.#now());
      this.#waiters.onRoom();
    });
  }

  ping(): void {
    const askedAt = this.#now();
    this.#context.connection.ping().then(
      () => this.#queue.roundTrip(askedAt, this.#now()),
      () => this.#queue.roundTrip(undefined, this.#now()),
    );
  }

  // ── what the connection brings ────────────────────────────────────────────────────────────────────────────────

  answered(token: number, data: Uint8Array): void {
    const now = this.#now();
    const seq = this.#plainAck.seqOf(data);
    if (seq === 0 || !this.#queue.stored(token, seq, false, now)) this.#answeredOtherwise(token, data, now);
    this.#waiters.onRoom();
  }

  noResponders(token: number): void {
    this.#queue.noResponders(token, this.#now());
    this.#waiters.onRoom();
  }

  notSent(token: number, error: LanekeeperError): void {
    if (error.code === "CONNECTION_CLOSED") this.#stop(error);
    else if (this.#queue.batchOf(token) !== undefined) this.#queue.batchFailed(token, "none", this.#now());
    else this.#queue.refused(token, { type: "refused", error }, this.#now());
    this.#waiters.onRoom();
  }

  inboxDenied(cause: Error): void {
    const error = new LanekeeperError(
      "PERMISSION_DENIED",
      "this user may not subscribe to the publisher's reply subject; grant it, or set the connection's inboxPrefix to one that is granted",
      { cause },
    );
    this.#stop(error);
  }

  #answeredOtherwise(token: number, data: Uint8Array, now: number): void {
    const answer = parsePublishAnswer(data);
    if (answer === undefined) return;
    const batch = this.#queue.batchOf(token);
    if (batch !== undefined) {
      this.#batchAnswered(token, batch.events.length, answer, now);
      return;
    }
    const event = this.#queue.eventOf(token);
    if (event === undefined) return;
    if (answer.type === "error") {
      const refusal = publishRefusal(answer, event.expectLastSeq !== undefined, event.subject);
      this.#queue.refused(token, refusal, now);
    } else if (answer.stream !== this.#context.stream) {
      const error = new LanekeeperError(
        "NO_STREAM_FOR_SUBJECT",
        `"${event.subject}" was stored in stream ${answer.stream} (sequence ${answer.seq}), not in ${this.#context.stream}: that stream has taken the subject over`,
      );
      this.#queue.refused(token, { type: "refused", error }, now);
    } else this.#queue.stored(token, answer.seq, answer.duplicate, now);
  }

  #batchAnswered(token: number, events: number, answer: PublishAnswer, now: number): void {
    if (answer.type === "error") this.#queue.batchFailed(token, batchFailure(answer), now);
    // Another stream has taken the subject over; each event's own attempt will say so.
    else if (answer.stream !== this.#context.stream) this.#queue.batchFailed(token, "none", now);
    else if (answer.count === events) this.#queue.batchStored(token, answer.seq, now);
    else this.#queue.batchFailed(token, "unclear", now, true);
  }

  #onConnection(change: ConnectionChange): void {
    if (change.type === "disconnected") this.#queue.disconnected();
    else if (change.type === "reconnected") {
      this.#checkMapping();
      // It may be another server, of another version. The next look at the stream tells.
      this.#queue.allowBatches(undefined);
      this.#queue.reconnected(this.#now());
    } else if (change.type === "publish-denied") {
      const error = new LanekeeperError(
        "PERMISSION_DENIED",
        `this user may not publish to "${change.subject}"; grant it`,
        { cause: change.error },
      );
      this.#queue.denied(({ subject }) => subject === change.subject, error, this.#now());
    } else {
      this.#stop(
        new LanekeeperError("CONNECTION_CLOSED", "the connection is closed", { cause: change.error }),
      );
    }
    this.#waiters.onRoom();
  }

  #onStream(state: StreamState): void {
    if (state.type === "layout-fault") this.#layoutFault = state.error;
    else if (state.type === "ok") {
      this.#layoutFault = undefined;
      this.#queue.allowBatches(this.#leastPerKey(state.snapshot));
    }
    this.#applyFault();
    // A mapping is put right by reloading the server's configuration, which nothing tells us of.
    if (this.#mappingFault !== undefined && !this.#checkingMapping) this.#checkMapping();
  }

  #applyFault(): void {
    const fault = this.#layoutFault ?? this.#mappingFault;
    if (fault === this.#queue.fault) return;
    this.#queue.setFault(fault, this.#now());
    this.#waiters.onRoom();
  }

  /**
   * Events wait for the check, as long as it takes: one stored in a wrong lane would stay there (O8). A newer check, as on
   * another connection, makes an older one void.
   */
  #checkMapping(): void {
    const { layout, clock } = this.#context;
    if (layout.mapping !== "account") return;
    const check = ++this.#mappingCheck;
    this.#mappingTimer?.stop();
    this.#checkingMapping = true;
    this.#queue.hold();
    void mappingFault(layout, this.#port, mappingCheckMs).then((fault) => {
      if (check !== this.#mappingCheck) return;
      if (fault === "unknown") {
        this.#mappingTimer = clock.after(mappingCheckMs, () => this.#checkMapping());
        return;
      }
      this.#checkingMapping = false;
      this.#mappingFault = fault;
      this.#applyFault();
      this.#queue.release(this.#now());
    });
  }

  #sightOf(state: StreamState): StreamSight<PublishEvent> {
    const { stream, layout } = this.#context;
    switch (state.type) {
      case "missing":
        return {
          type: "missing",
          error: ({ subject }) =>
            new LanekeeperError(
              "NO_STREAM_FOR_SUBJECT",
              `nobody stores "${subject}": stream ${stream} does not exist (any more); create it, and publishing goes on`,
              { cause: state.error },
            ),
        };
      case "ok":
        if (layout.mapping !== "account") return { type: "ok" };
        return {
          type: "ok",
          unheard: ({ subject }) =>
            new LanekeeperError(
              "NO_STREAM_FOR_SUBJECT",
              `nobody stores "${subject}": stream ${stream} exists, but the server does not map the intake to its lanes; put the layout's mapping into nats-server.conf and reload, and publishing goes on`,
            ),
        };
      default:
        // A layout fault has stopped the queue already, through the watch's observer.
        return { type: "unreadable", error: state.error };
    }
  }

  /** Where the stream maps, 2.12 to 2.14 stored a batch under the intake's subject instead of its lane's (ADR 0012). */
  #leastPerKey({ allowAtomic, replicas }: StreamSnapshot): number | undefined {
    const { connection, layout } = this.#context;
    if (allowAtomic !== true || layout.mapping === "stream") return undefined;
    return versionAtLeast(connection.serverVersion, oldestWithBatches)
      ? leastEventsPerKey(replicas)
      : undefined;
  }

  // ── time and end ──────────────────────────────────────────────────────────────────────────────────────────────

  /** One timer for all that is pending; none when nothing is. */
  readonly #tick = (): void => {
    this.#timer = undefined;
    this.#queue.tick(this.#now());
    this.#waiters.onRoom("any");
    if (this.#queue.count > 0) this.#timer = this.#context.clock.after(this.#tickMs, this.#tick);
  };

  async #close(): Promise<void> {
    const error = new LanekeeperError("CLOSED", "the publisher is closed");
    this.#queue.refuse(error);
    await this.#waiters.settled();
    this.#stop(error);
  }

  #stop(error: LanekeeperError): void {
    this.#queue.close(error);
    this.#waiters.stop(error);
    this.#timer?.stop();
    this.#timer = undefined;
    this.#mappingCheck++;
    this.#mappingTimer?.stop();
    for (const stop of this.#stopObserving) stop();
    this.#port.close();
    this.#onStopped(this);
  }

  readonly #accepted = (): number => this.#waiters.accepted;

  /** In whole milliseconds, which is what the queue reckons in. */
  readonly #now = (): number => Math.floor(this.#context.clock.now());
}

const mappingCheckMs = 1_000;
