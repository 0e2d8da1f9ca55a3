import { jsonCodec } from "../domain/codec.js";
import type { OutgoingEvent } from "../domain/event.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import { show } from "../domain/option-faults.js";
import { batchHeaderBytes, headerBytes, moreHeaderLines } from "../domain/publish-headers.js";
import { checkExpectLastSeq, checkId, headerLines } from "../domain/publish-input.js";
import { allOfKey, PublishSubjects } from "../domain/publish-subject.js";
import type { ResolvedPublisherOptions } from "../domain/publisher-options.js";
import { versionAtLeast } from "../domain/server-version.js";
import type { LanesContext } from "./lanes-context.js";
import { PublishEvent } from "./publish-event.js";

/** An event as it was passed, whatever its types. */
type GivenEvent = Pick<OutgoingEvent<object, never>, "id" | "expectLastSeq" | "headers"> & {
  readonly key: string;
  readonly type: string;
  readonly data: unknown;
};

/** Checks and encodes what callers pass: nothing unchecked reaches the wire (R03). */
export class PublishIntake {
  readonly #connection: LanesContext["connection"];
  readonly #options: ResolvedPublisherOptions;
  readonly #subjects: PublishSubjects;
  readonly #idPrefix: string;

  /** @param idPrefix differs between any two publishers, in any process */
  constructor(context: LanesContext, options: ResolvedPublisherOptions, idPrefix: string) {
    this.#connection = context.connection;
    this.#options = options;
    this.#subjects = new PublishSubjects(context.layout);
    this.#idPrefix = idPrefix;
  }

  /**
   * @param accepted calls that were accepted so far; asked when the codec has run, since that may publish, too
   * @throws LanekeeperError about what was passed
   */
  take(event: GivenEvent, accepted: () => number, now: () => number): PublishEvent {
    const given: unknown = event;
    if (typeof given !== "object" || given === null) {
      throw new LanekeeperError(
        "INVALID_OPTIONS",
        `publish() takes an event { key, type, data }, not ${show(given)}`,
      );
    }
    const { key, type, data, expectLastSeq, id: ownId, headers: ownHeaders } = event;
    const { route, subject } = this.#subjects.address(key, type);
    if (ownId !== undefined) checkId(ownId);
    if (expectLastSeq !== undefined) this.#checkExpectation(expectLastSeq);
    const lines = ownHeaders === undefined ? undefined : headerLines(ownHeaders);
    const payload = this.#encode(data, type);
    // From here on nothing of the caller's runs: a codec that publishes, too, must not get the same number and id.
    const number = accepted() + 1;
    const expect =
      expectLastSeq === undefined ? undefined : { lastSeq: expectLastSeq, filter: allOfKey(route) };
    const plain = expect === undefined && lines === undefined;
    const moreHeaders = plain ? "" : moreHeaderLines(expect, lines);
    const idBytes =
      ownId === undefined ? this.#idPrefix.length + 1 + base36Digits(number) : Buffer.byteLength(ownId);
    const size = headerBytes(idBytes, plain ? 0 : Buffer.byteLength(moreHeaders)) + payload.length;
    const { maxPayloadBytes } = this.#connection;
    if (size > maxPayloadBytes) throw tooLarge(size, maxPayloadBytes);
    return new PublishEvent(
      { subject, payload, route, ownId, moreHeaders, expectLastSeq },
      size + subject.length,
      expect === undefined && size + batchHeaderBytes <= maxPayloadBytes,
      now() + this.#options.timeoutMs,
      number,
      this.#idPrefix,
    );
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
    // The caller, or its codec, may use the memory again while a retry still needs it.
    const ours = this.#options.codec === jsonCodec && payload !== data;
    return ours ? payload : new Uint8Array(payload);
  }

  #checkExpectation(expectLastSeq: number): void {
    checkExpectLastSeq(expectLastSeq);
    const { serverVersion } = this.#connection;
    if (!versionAtLeast(serverVersion, "2.11")) {
      throw new LanekeeperError(
        "SERVER_TOO_OLD",
        `expectLastSeq needs nats-server 2.11, and this is ${serverVersion}: it would compare the sequence with another set of events`,
      );
    }
  }
}

function tooLarge(bytes: number, most: number): LanekeeperError {
  return new LanekeeperError(
    "PAYLOAD_TOO_LARGE",
    `payload and headers take ${bytes} bytes and the server takes ${most} (max_payload); store the data elsewhere and publish a reference`,
  );
}

function base36Digits(number: number): number {
  let digits = 1;
  for (let rest = number; rest >= 36; rest = Math.floor(rest / 36)) digits++;
  return digits;
}
