import type { Route } from "@lanekeeper/partitioner";
import type { OutgoingEvent, PublishReceipt } from "../domain/event.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { show } from "../domain/option-faults.js";
import { PlainAckReader, parsePublishAnswer } from "../domain/publish-ack.js";
import { checkExpectLastSeq, checkId, headerLines } from "../domain/publish-input.js";
import type { PendingPublish, PublishJob } from "../domain/publish-pending.js";
import { type PublishEffects, PublishQueue } from "../domain/publish-queue.js";
import { publishRefusal } from "../domain/publish-refusal.js";
import type { StreamSight } from "../domain/publish-sight.js";
import { PublishSubjects } from "../domain/publish-subject.js";
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
import { mappingFault } from "./publish-mapping-check.js";
import type { PublishListener, PublishMessage, PublishPort } from "./publish-port.js";
import { searchEvent } from "./publish-search.js";
import { PublishWaiters } from "./publish-waiters.js";
import type { StreamState } from "./stream-watch.js";

/** @throws LanekeeperError INVALID_OPTIONS, CONNECTION_CLOSED */
export function createPublisher<E extends object>(
  context: LanesContext,
  port: PublishPort,
  options: PublisherOptions = {},
): LanePublisher<E> {
  return new QueuedPublisher<E>(
    context,
    port,
    resolvePublisherOptions(options, context.opened.duplicateWindowMs),
  );
}

/** An accepted event with what is needed to send it again and to settle its call. */
interface Job extends PublishJob, PublishMessage {
  /** Counts accepted calls. */
  readonly number: number;
  readonly id: string;
  readonly route: Route;
  readonly expectLastSeq: number | undefined;
  readonly resolve: (receipt: PublishReceipt) => void;
  readonly reject: (error: LanekeeperError) => void;
}

class QueuedPublisher<E extends object> implements LanePublisher<E>, PublishEffects<Job>, PublishListener {
  readonly #context: LanesContext;
  readonly #port: PublishPort;
  readonly #options: ResolvedPublisherOptions;
  readonly #queue: PublishQueue<Job>;
  readonly #subjects: PublishSubjects;
  readonly #plainAck: PlainAckReader;
  readonly #waiters: PublishWaiters;
  readonly #stopObserving: (() => void)[];
  readonly #tickMs: number;
  #layoutFault: LanekeeperError | undefined;
  #mappingFault: LanekeeperError | undefined;
  #checkingMapping = false;
  #timer: Timer | undefined;
  #closed: Promise<void> | undefined;

  constructor(context: LanesContext, port: PublishPort, options: ResolvedPublisherOptions) {
    this.#context = context;
    this.#port = port;
    this.#options = options;
    const { connection, opened, layout, watch, clock } = context;
    const limits = { ...options, duplicateWindowMs: opened.duplicateWindowMs };
    this.#queue = new PublishQueue<Job>(limits, this, connection.isConnected());
    this.#subjects = new PublishSubjects(layout);
    this.#plainAck = new PlainAckReader(context.stream);
    this.#waiters = new PublishWaiters(() => this.#queue.room, clock, options.timeoutMs);
    this.#tickMs = Math.min(Math.max(options.timeoutMs / 20, 10), 100);
    port.listen(this);
    this.#stopObserving = [
      connection.observe((change) => this.#onConnection(change)),
      watch.observe((state) => this.#onStream(state)),
    ];
    this.#checkMapping();
  }

  publish<K extends keyof E & string>(event: OutgoingEvent<E, K>): Promise<PublishReceipt> {
    return new Promise((resolve, reject) => {
      // A throw in here rejects the promise.
      const job = this.#prepare(event, resolve, reject);
      const fault = this.#queue.accept(job, this.#now());
      if (fault !== undefined) return reject(fault);
      this.#waiters.onAccepted();
      this.#timer ??= this.#context.clock.after(this.#tickMs, this.#tick);
    });
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

  send(job: Job, token: number): void {
    this.#port.send(job, token);
  }

  resolve(job: Job, seq: number, duplicate: boolean): void {
    job.resolve({ lane: job.route.lane, seq, duplicate });
    this.#waiters.onSettled(job.number);
  }

  reject(job: Job, error: LanekeeperError): void {
    job.reject(error);
    this.#waiters.onSettled(job.number);
  }

  lookForEvent(publish: PendingPublish<Job>): void {
    void searchEvent(this.#context.streamPort, publish.job, allOfKey(publish.job.route)).then((sight) => {
      this.#queue.eventSeen(publish, sight, this.#now());
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
    if (seq > 0) this.#queue.stored(token, seq, false, now);
    else this.#answeredOtherwise(token, data, now);
    this.#waiters.onRoom();
  }

  noResponders(token: number): void {
    this.#queue.noResponders(token, this.#now());
    this.#waiters.onRoom();
  }

  notSent(token: number, error: LanekeeperError): void {
    if (error.code === "CONNECTION_CLOSED") this.#stop(error);
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
    const job = this.#queue.jobOf(token);
    if (job === undefined) return;
    if (answer.type === "error") {
      const refusal = publishRefusal(answer, job.expectLastSeq !== undefined, job.subject);
      this.#queue.refused(token, refusal, now);
    } else if (answer.stream !== this.#context.stream) {
      const error = new LanekeeperError(
        "NO_STREAM_FOR_SUBJECT",
        `"${job.subject}" was stored in stream ${answer.stream} (sequence ${answer.seq}), not in ${this.#context.stream}: that stream has taken the subject over`,
      );
      this.#queue.refused(token, { type: "refused", error }, now);
    } else this.#queue.stored(token, answer.seq, answer.duplicate, now);
  }

  #onConnection(change: ConnectionChange): void {
    if (change.type === "disconnected") this.#queue.disconnected();
    else if (change.type === "reconnected") {
      this.#checkMapping();
      this.#queue.reconnected(this.#now());
    } else if (change.type === "publish-denied") {
      const error = new LanekeeperError(
        "PERMISSION_DENIED",
        `this user may not publish to "${change.subject}"; grant it`,
        { cause: change.error },
      );
      this.#queue.denied((job) => job.subject === change.subject, error, this.#now());
    } else {
      this.#stop(
        new LanekeeperError("CONNECTION_CLOSED", "the connection is closed", { cause: change.error }),
      );
    }
    this.#waiters.onRoom();
  }

  #onStream(state: StreamState): void {
    if (state.type === "layout-fault") this.#layoutFault = state.error;
    else if (state.type === "ok") this.#layoutFault = undefined;
    this.#applyFault();
    // A mapping is put right by reloading the server's configuration, which nothing tells us of.
    if (this.#mappingFault !== undefined) this.#checkMapping();
  }

  #applyFault(): void {
    const fault = this.#layoutFault ?? this.#mappingFault;
    if (fault === this.#queue.fault) return;
    this.#queue.setFault(fault, this.#now());
    this.#waiters.onRoom();
  }

  /** Events wait for the check, at most {@link mappingCheckMs}: one stored in a wrong lane would stay there. */
  #checkMapping(): void {
    const { layout } = this.#context;
    if (layout.mapping !== "account" || this.#checkingMapping) return;
    this.#checkingMapping = true;
    this.#queue.hold();
    void mappingFault(layout, this.#port, mappingCheckMs).then((fault) => {
      this.#checkingMapping = false;
      this.#mappingFault = fault;
      this.#applyFault();
      this.#queue.release(this.#now());
    });
  }

  #sightOf(state: StreamState): StreamSight<Job> {
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

  // ── an event on its way in ────────────────────────────────────────────────────────────────────────────────────

  #prepare(event: OutgoingEvent<E, keyof E & string>, resolve: Job["resolve"], reject: Job["reject"]): Job {
    const given: unknown = event;
    if (typeof given !== "object" || given === null) {
      throw new LanekeeperError(
        "INVALID_OPTIONS",
        `publish() takes an event { key, type, data }, not ${show(given)}`,
      );
    }
    const { key, type, data, expectLastSeq, id: ownId, headers: ownHeaders } = event;
    const subject = this.#subjects.subject({ key, type });
    const route = this.#subjects.route(key);
    if (ownId !== undefined) checkId(ownId);
    if (expectLastSeq !== undefined) this.#checkExpectation(expectLastSeq);
    const lines = ownHeaders === undefined ? undefined : headerLines(ownHeaders);
    const payload = this.#encode(data, type);
    // From here on nothing of the caller's runs: a codec that publishes, too, must not get the same number and id.
    const number = this.#waiters.accepted + 1;
    const id = ownId ?? `${this.#port.idPrefix}.${number.toString(36)}`;
    const headers = this.#port.encodeHeaders({
      id,
      ...(expectLastSeq === undefined
        ? undefined
        : { expect: { lastSeq: expectLastSeq, filter: allOfKey(route) } }),
      ...(lines === undefined ? undefined : { lines }),
    });
    this.#checkSize(headers.length + payload.length);
    const bytes = headers.length + payload.length + subject.length;
    return {
      key,
      bytes,
      subject,
      headers,
      payload,
      number,
      id,
      route,
      expectLastSeq,
      resolve,
      reject,
    };
  }

  #encode(data: unknown, type: string): Uint8Array {
    let payload: unknown;
    try {
      payload = this.#options.codec.encode(data, type);
    } catch (cause) {
      throw new LanekeeperError("ENCODE_FAILED", `the codec could not encode data of "${type}"`, { cause });
    }
    if (!(payload instanceof Uint8Array)) {
      throw new LanekeeperError(
        "ENCODE_FAILED",
        `the codec's encode returned ${show(payload)} for "${type}", and it must return a Uint8Array`,
      );
    }
    // The caller may use its buffer again while a retry still needs it.
    return payload === data ? new Uint8Array(payload) : payload;
  }

  #checkSize(bytes: number): void {
    const { maxPayloadBytes } = this.#context.connection;
    if (bytes > maxPayloadBytes) {
      throw new LanekeeperError(
        "PAYLOAD_TOO_LARGE",
        `payload and headers take ${bytes} bytes and the server takes ${maxPayloadBytes} (max_payload); store the data elsewhere and publish a reference`,
      );
    }
  }

  #checkExpectation(expectLastSeq: number): void {
    checkExpectLastSeq(expectLastSeq);
    const { serverVersion } = this.#context.connection;
    if (!versionAtLeast(serverVersion, "2.11")) {
      throw new LanekeeperError(
        "SERVER_TOO_OLD",
        `expectLastSeq needs nats-server 2.11, and this is ${serverVersion}: it would compare the sequence with another set of events`,
      );
    }
  }

  // ── time and end ──────────────────────────────────────────────────────────────────────────────────────────────

  /** One timer for all that is pending; none when nothing is. */
  readonly #tick = (): void => {
    this.#timer = undefined;
    this.#queue.tick(this.#now());
    this.#waiters.onRoom();
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
    for (const stop of this.#stopObserving) stop();
    this.#port.close();
  }

  #now(): number {
    return this.#context.clock.now();
  }
}

const mappingCheckMs = 1_000;

/** The subjects of all events of a key. */
function allOfKey(route: Route): string {
  return `${route.subjectPrefix}>`;
}
