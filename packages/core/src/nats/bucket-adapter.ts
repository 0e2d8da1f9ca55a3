import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { type KV, type KvEntry, Kvm } from "@nats-io/kv";
import { headers, type NatsConnection } from "@nats-io/nats-core";
import { LanekeeperError } from "../domain/lanekeeper-error.js";
import type { BucketEntry, BucketPort, BucketWatch, WriteOutcome } from "../runtime/bucket-port.js";
import { apiCode, apiCodeOf, translateApiError } from "./api-error.js";
import { type JetStreamApi, plainPrefix } from "./jetstream-api.js";

const defaultRequestMs = 1_500;
/** Refusals that prove nothing: on a replicated bucket another write of the same record is under way. */
const wrongLastSequence = 10_071;

export interface BucketOptions {
  readonly bucket: string;
  /** Makes the bucket when it is missing, with as many replicas as the stream; otherwise that is BUCKET_NOT_FOUND. */
  readonly create: boolean;
  readonly replicas: number;
  /**
   * Milliseconds a request may take; default 1,500: several have to fit into a lease, and one without an answer is made
   * again.
   */
  readonly requestMs?: number;
}

export async function bucketAdapter(
  connection: NatsConnection,
  api: JetStreamApi,
  options: BucketOptions,
): Promise<BucketPort> {
  const { bucket, create, replicas } = options;
  const timeout = Math.min(api.timeoutMs, options.requestMs ?? defaultRequestMs);
  const js = jetstream(connection, { apiPrefix: api.prefix, timeout });
  // Nothing depends on a bucket yet that is being opened or made.
  const kvm = new Kvm(jetstream(connection, { apiPrefix: api.prefix, timeout: api.timeoutMs }));
  const manager = await jetstreamManager(connection, { apiPrefix: api.prefix, timeout, checkAPI: false });
  const stream = `KV_${bucket}`;
  const kv = await open(kvm, api, bucket, stream, create ? replicas : undefined);
  const subject = (key: string) => `$KV.${bucket}.${key}`;
  // A bucket of another domain or account is written to under its API prefix.
  const writeSubject = (key: string) =>
    api.prefix === plainPrefix ? subject(key) : `${api.prefix}.${subject(key)}`;

  async function put(key: string, body: string, expected: number, remove: boolean): Promise<WriteOutcome> {
    const marks = headers();
    if (remove) marks.set("KV-Operation", "DEL");
    try {
      const { seq } = await js.publish(writeSubject(key), body, {
        headers: marks,
        expect: { lastSubjectSequence: expected },
        timeout,
      });
      return { type: "written", revision: seq };
    } catch (error) {
      if (apiCodeOf(error) === wrongLastSequence) return { type: "conflict" };
      const known = translateApiError(error, `writing to bucket ${bucket}`);
      if (known.code === "CONNECTION_CLOSED" || known.code === "PERMISSION_DENIED") throw known;
      return { type: "unknown" };
    }
  }

  /** Takes the mark of a removal away, too: members come and go for years. Whoever watches has been told by then. */
  async function forget(key: string, revision: number): Promise<void> {
    try {
      await api.manager.streams.purge(stream, { filter: subject(key), seq: revision + 1 });
    } catch {
      // It stays, and says the same.
    }
  }

  return {
    replicas: (await status(kv, bucket)).replicas,
    async read(key) {
      try {
        // Through the API, so that the leader answers: a bucket's own gets may be answered by a stale replica.
        const found = await manager.streams.getMessage(stream, { last_by_subj: subject(key) });
        if (found === null) return undefined;
        const removed = (found.header?.get("KV-Operation") ?? "") !== "";
        return { key, revision: found.seq, value: removed ? undefined : found.string() };
      } catch (error) {
        throw translateApiError(error, `reading ${key} from bucket ${bucket}`);
      }
    },
    write: (key, value, expected) => put(key, value, expected, false),
    async remove(key, expected) {
      const outcome = await put(key, "", expected, true);
      if (outcome.type === "written") await forget(key, outcome.revision);
      return outcome;
    },
    async keys(prefix) {
      try {
        const { state } = await api.manager.streams.info(stream, { subjects_filter: subject(`${prefix}>`) });
        return Object.keys(state.subjects ?? {}).map((found) => found.slice(subject("").length));
      } catch (error) {
        throw translateApiError(error, `listing bucket ${bucket}`);
      }
    },
    watch: (prefix, changed) => watch(kv, prefix, changed),
  };
}

async function open(
  kvm: Kvm,
  api: JetStreamApi,
  bucket: string,
  stream: string,
  replicas: number | undefined,
): Promise<KV> {
  try {
    await api.manager.streams.info(stream);
  } catch (error) {
    if (apiCodeOf(error) !== apiCode.streamNotFound)
      throw translateApiError(error, `opening bucket ${bucket}`);
    if (replicas === undefined) {
      throw new LanekeeperError(
        "BUCKET_NOT_FOUND",
        `bucket ${bucket} does not exist; create it with history 1, or pass \`create\` so that Lanekeeper does`,
      );
    }
    try {
      return await kvm.create(bucket, { replicas, history: 1 });
    } catch (cause) {
      throw translateApiError(cause, `creating bucket ${bucket}`);
    }
  }
  return kvm.open(bucket);
}

async function status(kv: KV, bucket: string): Promise<{ replicas: number }> {
  try {
    return await kv.status();
  } catch (error) {
    throw translateApiError(error, `reading bucket ${bucket}`);
  }
}

function watch(kv: KV, prefix: string, changed: (entry: BucketEntry) => void): BucketWatch {
  let round = 0;
  let stopCurrent = () => {};
  const begin = async () => {
    const mine = ++round;
    stopCurrent();
    try {
      const entries = await kv.watch({ key: `${prefix}>` });
      if (mine !== round) return entries.stop();
      stopCurrent = () => entries.stop();
      for await (const entry of entries) {
        if (mine !== round) return;
        changed(toEntry(entry));
      }
    } catch {
      // It cannot be watched just now. Whoever needs it notices the silence, and starts the watch over.
    }
  };
  void begin();
  return {
    restart: () => void begin(),
    stop() {
      round++;
      stopCurrent();
    },
  };
}

function toEntry(entry: KvEntry): BucketEntry {
  return {
    key: entry.key,
    revision: entry.revision,
    value: entry.operation === "PUT" ? entry.string() : undefined,
  };
}
