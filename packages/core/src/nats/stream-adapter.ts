import type { JetStreamManager, StreamConfig, StreamInfo } from "@nats-io/jetstream";
import type { StoredEvent, StreamPort, StreamSnapshot } from "../runtime/stream-port.js";
import { translateApiError } from "./api-error.js";
import { nanosToMs } from "./nanos.js";

type MessageQuery = { seq: number; next_by_subj?: string } | { last_by_subj: string };

/** The stream behind {@link StreamPort}, asked through the JetStream API so that its leader answers. */
export function streamAdapter(manager: JetStreamManager, stream: string): StreamPort {
  const what = `reading stream ${stream}`;

  async function find(query: MessageQuery): Promise<StoredEvent | undefined> {
    try {
      // The client's type leaves out next_by_subj, which every server since 2.9 answers.
      const found = await manager.streams.getMessage(stream, query as { seq: number });
      if (found === null) return undefined;
      return {
        seq: found.seq,
        subject: found.subject,
        id: found.header?.get("Nats-Msg-Id") || undefined,
        storedAt: found.time,
      };
    } catch (error) {
      throw translateApiError(error, what);
    }
  }

  return {
    async read() {
      try {
        return snapshotOf(await manager.streams.info(stream));
      } catch (error) {
        throw translateApiError(error, what);
      }
    },
    holds: async (seq) => (await find({ seq })) !== undefined,
    nextMatching: (filter, fromSeq) => find({ next_by_subj: filter, seq: Math.max(fromSeq, 1) }),
    lastMatching: (filter) => find({ last_by_subj: filter }),
    async sequenceAt(time) {
      const { firstSeq, lastSeq } = await this.read();
      let low = firstSeq;
      let high = lastSeq + 1;
      // Stored times rise with the sequence, so the first one at or after `time` is found by halving.
      while (low < high) {
        const middle = Math.floor((low + high) / 2);
        const event = await find({ next_by_subj: ">", seq: middle });
        if (event === undefined || event.seq >= high) high = middle;
        else if (event.storedAt >= time) high = middle;
        else low = event.seq + 1;
      }
      return Math.max(low, 1);
    },
  };
}

export function snapshotOf(info: StreamInfo): StreamSnapshot {
  const { config, state } = info;
  return {
    name: config.name,
    created: String(info.created),
    replicas: config.num_replicas,
    retention: config.retention,
    subjects: config.subjects ?? [],
    transform: transformOf(config),
    metadata: config.metadata ?? {},
    duplicateWindowMs: nanosToMs(config.duplicate_window ?? 0),
    allowAtomic: config.allow_atomic === true,
    trims: (config.max_age ?? 0) > 0 || (config.max_msgs ?? -1) > 0 || (config.max_bytes ?? -1) > 0,
    messages: state.messages,
    deleted: state.num_deleted ?? 0,
    firstSeq: state.first_seq,
    lastSeq: state.last_seq,
  };
}

function transformOf(config: StreamConfig): StreamSnapshot["transform"] {
  const transform = config.subject_transform;
  return transform === undefined ? undefined : { src: transform.src ?? "", dest: transform.dest };
}
