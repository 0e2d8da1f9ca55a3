import { type LaneLayout, laneFilter } from "@lanekeeper/partitioner";
import type { ClaimRecord } from "../domain/claim-record.js";
import { laneConsumerName, ownedConsumerEpoch, ownedConsumerName } from "../domain/group-name.js";
import { LaneProgress } from "../domain/lane-progress.js";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { LaneConsumerPort, LaneConsumerState } from "./lane-consumer-port.js";
import type { StreamPort, StreamSnapshot } from "./stream-port.js";

/** The most events looked up as suspects of one death. */
const maxSuspects = 1_024;

export interface TakeoverParts {
  readonly layout: LaneLayout;
  readonly group: string;
  readonly consumers: LaneConsumerPort;
  readonly stream: StreamPort;
  readonly ackWaitMs: number;
  readonly maxAckPending: number;
  readonly retention: StreamSnapshot["retention"];
  /** The group as its record has it now. */
  readonly current: () => {
    readonly created: string;
    readonly incarnation: string;
    readonly startSeq: number;
    readonly from: string | undefined;
  };
}

/** What a lane can be taken up from. */
export interface TakeoverBase {
  readonly consumer: { readonly consumer: string; readonly consumerEpoch: number; readonly startSeq: number };
  /** The consumer is kept as it is: the last owner gave it back with nothing pending, and nothing happened since. */
  readonly adopted: boolean;
  /** A consumer that is kept has this worker's settings already. */
  readonly fits: boolean;
  /** Deliveries that consumer has made. */
  readonly deliveries: number;
  /** Sequences that were in flight; only looked for after a death. */
  readonly inFlight: readonly number[];
  readonly previous: string | undefined;
}

/**
 * Makes a lane's consumer the new owner's. A takeover and a rewind replace it, under a name that carries the claim's epoch:
 * whatever a former owner still sends goes to a consumer that no longer exists (O6). A lane given back in good order
 * keeps it.
 */
export class LaneTakeover {
  readonly #parts: TakeoverParts;
  /** Consumers of the group by lane, as far as known. */
  #names: Promise<Map<number, Set<string>>> | undefined;

  constructor(parts: TakeoverParts) {
    this.#parts = parts;
  }

  get ackWaitMs(): number {
    return this.#parts.ackWaitMs;
  }

  /** The highest epoch in the name of a consumer of this lane; 0 for none. A bucket that was lost must not fall behind. */
  async newestEpoch(lane: number): Promise<number> {
    const names = (await this.#known()).get(lane) ?? new Set();
    return [...names].reduce((newest, name) => Math.max(newest, ownedConsumerEpoch(name) ?? 0), 0);
  }

  /** Forgets which consumers there are, to look again. */
  forget(): void {
    this.#names = undefined;
  }

  async inspect(lane: number, claim: ClaimRecord): Promise<TakeoverBase> {
    const found = await this.#predecessor(lane, claim);
    const { consumer, cleanAt } = claim;
    if (consumer !== undefined && found?.name !== consumer) await this.#refuseOtherStream();
    if (consumer !== undefined && cleanAt !== undefined && found?.name === consumer) {
      if (found.inFlight === 0 && found.deliveries === cleanAt && found.differences.length === 0) {
        const { consumerEpoch, startSeq } = claim;
        return {
          consumer: { consumer, consumerEpoch, startSeq },
          adopted: true,
          fits: found.ackWaitMs === this.ackWaitMs && found.maxAckPending === this.#parts.maxAckPending,
          deliveries: cleanAt,
          inFlight: [],
          previous: consumer,
        };
      }
    }
    const name = ownedConsumerName(this.#parts.group, this.#parts.layout.generation, lane, claim.epoch);
    const startSeq = this.#startSeq(claim, found);
    const inFlight =
      claim.diedUnder === undefined || found === undefined
        ? []
        : await this.#inFlight(lane, claim, found, startSeq);
    return {
      consumer: { consumer: name, consumerEpoch: claim.epoch, startSeq },
      adopted: false,
      fits: false,
      deliveries: 0,
      inFlight,
      previous: found?.name,
    };
  }

  /**
   * Makes, names and deletes in the order that the stream's retention asks for. Interrupted anywhere, the claim names
   * a consumer or a start from which the next owner goes on without a gap (O3, O4).
   */
  async prepare(
    lane: number,
    next: ClaimRecord,
    base: TakeoverBase,
    update: (record: ClaimRecord) => Promise<void>,
  ): Promise<void> {
    try {
      await this.#prepare(lane, next, base, update);
    } catch (error) {
      // What is in the way may be a consumer that another worker made since the listing.
      this.forget();
      throw error;
    }
  }

  async #prepare(
    lane: number,
    next: ClaimRecord,
    base: TakeoverBase,
    update: (record: ClaimRecord) => Promise<void>,
  ): Promise<void> {
    const { consumers, ackWaitMs, maxAckPending, retention } = this.#parts;
    const { consumer } = base.consumer;
    // The last owner's consumer is younger than the listing when it was made since.
    if (base.previous !== undefined) await this.#learn(lane, base.previous);
    if (base.adopted) {
      if (!base.fits) await consumers.update(consumer, { ackWaitMs, maxAckPending });
      await update(next);
    } else if (retention === "workqueue") {
      // Filters of a work queue may not overlap: the old one goes first. Nothing is lost, unacked events stay.
      await update(next);
      await this.#deleteOthers(lane, consumer);
      await this.#create(lane, next);
    } else {
      // With interest retention an event that no consumer wants is dropped at once: the new one comes first.
      await this.#create(lane, next);
      await update(next);
    }
    await this.#deleteOthers(lane, consumer);
  }

  /** Deletes the lane's consumers but the current one, as long as `isOurs` says that it is the current one (O6). */
  sweep(lane: number, current: string, isOurs: () => boolean): Promise<void> {
    return this.#deleteOthers(lane, current, isOurs);
  }

  /** A consumer that is gone may have gone with its stream: then the claim's sequences are not those of the new one (O3). */
  async #refuseOtherStream(): Promise<void> {
    const { created } = await this.#parts.stream.read();
    if (created === this.#parts.current().created) return;
    const text = "the stream was deleted and made again; its lanes are taken up once that is agreed on";
    throw new LanekeeperError("STREAM_NOT_FOUND", text);
  }

  async #predecessor(lane: number, claim: ClaimRecord): Promise<LaneConsumerState | undefined> {
    const filter = laneFilter(this.#parts.layout, lane);
    const expected = { assignment: "owned", maxAckPending: undefined } as const;
    if (claim.consumer !== undefined) {
      const found = await this.#parts.consumers.read(claim.consumer, filter, expected);
      if (found !== undefined) return found;
    }
    // No claim of this incarnation names one: what is there counts only if it is of this life of the group.
    const { incarnation, from } = this.#parts.current();
    const names = [...((await this.#known()).get(lane) ?? [])];
    names.sort((a, b) => (ownedConsumerEpoch(b) ?? 0) - (ownedConsumerEpoch(a) ?? 0));
    for (const name of names) {
      const found = await this.#parts.consumers.read(name, filter, expected);
      if (found !== undefined && (found.incarnation === incarnation || found.incarnation === from))
        return found;
    }
    return undefined;
  }

  #startSeq(claim: ClaimRecord, found: LaneConsumerState | undefined): number {
    const { startSeq } = this.#parts.current();
    if (this.#parts.retention === "workqueue") return 1;
    const progress = new LaneProgress();
    progress.restore(claim.progress);
    const settledBelow = claim.progress === undefined ? 0 : progress.floor;
    // On a replicated stream the ack floor is 0 until the first ack, so the start is kept in the claim, too.
    return Math.max(startSeq, claim.startSeq, (found?.ackFloor ?? 0) + 1, settledBelow);
  }

  /** The events delivered and not settled at a death, as far as can be told from outside. */
  async #inFlight(
    lane: number,
    claim: ClaimRecord,
    found: LaneConsumerState,
    from: number,
  ): Promise<number[]> {
    if (found.inFlight === 0) return [];
    const progress = new LaneProgress();
    progress.restore(claim.progress);
    const suspects: number[] = [];
    let seq = from;
    while (suspects.length < Math.min(found.inFlight, maxSuspects)) {
      const event = await this.#parts.stream.nextMatching(laneFilter(this.#parts.layout, lane), seq);
      if (event === undefined || event.seq > found.deliveredSeq) break;
      const open =
        claim.progress === undefined ||
        event.seq > claim.progress.top ||
        claim.progress.open.includes(event.seq);
      if (open) suspects.push(event.seq);
      seq = event.seq + 1;
    }
    return suspects;
  }

  async #create(lane: number, claim: ClaimRecord): Promise<void> {
    const { consumers, group, layout, ackWaitMs, maxAckPending, current } = this.#parts;
    const { consumer } = claim;
    if (consumer === undefined) return;
    const { startSeq, incarnation } = current();
    await this.#learn(lane, consumer);
    await consumers.create({
      name: consumer,
      group,
      assignment: "owned",
      generation: layout.generation,
      lane,
      filter: laneFilter(layout, lane),
      startSeq: claim.startSeq,
      groupStartSeq: startSeq,
      incarnation,
      ackWaitMs,
      maxAckPending,
    });
  }

  async #deleteOthers(lane: number, keep: string, isOurs = () => true): Promise<void> {
    const names = (await this.#known()).get(lane);
    for (const name of [...(names ?? [])]) {
      if (name === keep || !isOurs()) continue;
      await this.#parts.consumers.delete(name);
      names?.delete(name);
    }
  }

  async #learn(lane: number, consumer: string): Promise<void> {
    const known = await this.#known();
    known.set(lane, (known.get(lane) ?? new Set()).add(consumer));
  }

  /** One listing serves all lanes: consumers this process makes are added as they are made. */
  #known(): Promise<Map<number, Set<string>>> {
    this.#names ??= this.#list().catch((error) => {
      this.#names = undefined;
      throw error;
    });
    return this.#names;
  }

  async #list(): Promise<Map<number, Set<string>>> {
    const { consumers, group, layout } = this.#parts;
    const byLane = new Map<number, Set<string>>();
    for (const { name, lane, group: of } of await consumers.list()) {
      if (of !== group || lane === undefined) continue;
      const known =
        name === laneConsumerName(group, layout.generation, lane) || ownedConsumerEpoch(name) !== undefined;
      if (known) byLane.set(lane, (byLane.get(lane) ?? new Set()).add(name));
    }
    return byLane;
  }
}
