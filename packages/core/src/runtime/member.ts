import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { Lease } from "../domain/lease.js";
import { formatMember, type MemberRecord, recordVersion } from "../domain/member-record.js";
import type { BucketEntry, BucketPort } from "./bucket-port.js";
import type { Clock, Timer } from "./clock.js";

/** What a member is told of itself. */
export interface MemberObserver {
  /** A beat was confirmed: the lease goes on, or goes on again. */
  beaten(entry: BucketEntry): void;
  /** Another member has written this one's record, or it is gone: every claim is lost, and a new member has to join. */
  deposed(): void;
}

/** Beats of unknown outcome that are remembered; older ones cannot carry a lease any more. */
const maxUnanswered = 64;

/**
 * This process's record in a group, beaten by compare-and-set. A beat that is not at the expected revision proves that
 * somebody else wrote the record; one of unknown outcome is read back and recognised by its number.
 */
export class Member {
  readonly id: string;
  readonly lease: Lease;
  readonly #key: string;
  readonly #name: string;
  readonly #bucket: BucketPort;
  readonly #clock: Clock;
  readonly #observer: MemberObserver;
  /** Send times of beats whose outcome is not known yet, by number. */
  readonly #sent = new Map<number, { at: number; wall: number }>();
  #revision = 0;
  #beat = 0;
  #status: "live" | "leaving" = "live";
  #timer: Timer | undefined;
  #beating: Promise<void> | undefined;
  #over = false;

  constructor(parts: {
    id: string;
    key: string;
    name: string;
    lease: Lease;
    bucket: BucketPort;
    clock: Clock;
    observer: MemberObserver;
  }) {
    this.id = parts.id;
    this.lease = parts.lease;
    this.#key = parts.key;
    this.#name = parts.name;
    this.#bucket = parts.bucket;
    this.#clock = parts.clock;
    this.#observer = parts.observer;
  }

  /**
   * Writes the first beat; true once it is confirmed. Beats go on from then. False when its outcome is not known: join
   * again, and it is found if it was written, so that no member is left that nobody is. Rejects with PERMISSION_DENIED or
   * CONNECTION_CLOSED.
   */
  async join(): Promise<boolean> {
    await this.#beatNow();
    if (this.#revision === 0) return false;
    this.#schedule();
    return true;
  }

  /** Deposed or stopped: whoever wants to be a member has to be another one. */
  get over(): boolean {
    return this.#over;
  }

  /** From now on takes no lanes; told to the others with a beat at once. */
  async leave(): Promise<void> {
    this.#status = "leaving";
    await this.#beating;
    await this.#beatNow();
  }

  /** Removes the record: everything is given back. Best effort; otherwise the record is found dead in time. */
  async remove(): Promise<void> {
    this.#timer?.stop();
    // Stopped before it ends, a beat under way would not tell which revision to remove.
    await this.#beating?.catch(() => {});
    this.stop();
    if (this.#revision > 0) await this.#bucket.remove(this.#key, this.#revision).catch(() => undefined);
    this.lease.end();
  }

  stop(): void {
    this.#over = true;
    this.#timer?.stop();
  }

  #schedule(): void {
    if (this.#over) return;
    this.#timer = this.#clock.after(this.lease.rules.beatMs, () => {
      void this.#beatNow().finally(() => this.#schedule());
    });
  }

  #beatNow(): Promise<void> {
    this.#beating ??= this.#beatOnce().finally(() => {
      this.#beating = undefined;
    });
    return this.#beating;
  }

  async #beatOnce(): Promise<void> {
    if (this.#over) return;
    const beat = ++this.#beat;
    const sent = { at: this.#clock.now(), wall: this.#clock.wall() };
    this.#sent.set(beat, sent);
    if (this.#sent.size > maxUnanswered) this.#sent.delete(this.#sent.keys().next().value ?? 0);
    const record: MemberRecord = {
      version: recordVersion,
      name: this.#name,
      leaseMs: this.lease.rules.leaseMs,
      beat,
      status: this.#status,
    };
    try {
      const text = formatMember(record);
      const outcome = await this.#bucket.write(this.#key, text, this.#revision);
      if (this.#over) return;
      if (outcome.type === "written") this.#confirmed(beat, outcome.revision, text);
      else await this.#readBack();
    } catch (error) {
      // Whoever joins is told what time does not mend. Later the lease runs out by itself.
      const told = LanekeeperError.is(error) ? error.code : "";
      if (this.#revision === 0 && (told === "PERMISSION_DENIED" || told === "CONNECTION_CLOSED")) throw error;
    }
  }

  async #readBack(): Promise<void> {
    const entry = await this.#bucket.read(this.#key);
    if (this.#over) return;
    if (entry?.revision === this.#revision || (entry === undefined && this.#revision === 0)) return;
    const record = entry?.value === undefined ? undefined : (JSON.parse(entry.value) as MemberRecord);
    const mine = record !== undefined && (record.status === "live" || record.status === "leaving");
    if (entry !== undefined && mine && this.#sent.has(record.beat)) {
      this.#confirmed(record.beat, entry.revision, entry.value ?? "");
    } else {
      this.lease.end();
      this.stop();
      this.#observer.deposed();
    }
  }

  #confirmed(beat: number, revision: number, value: string): void {
    const sent = this.#sent.get(beat);
    for (const known of this.#sent.keys()) if (known <= beat) this.#sent.delete(known);
    this.#revision = revision;
    if (sent !== undefined) this.lease.confirmed(sent.at, sent.wall);
    this.#observer.beaten({ key: this.#key, revision, value });
  }
}
