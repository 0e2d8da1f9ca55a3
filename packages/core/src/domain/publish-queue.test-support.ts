import { LanekeeperError } from "./lanekeeper-error.js";
import { PendingPublish } from "./publish-pending.js";
import { PublishQueue } from "./publish-queue.js";

class Named extends PendingPublish {
  readonly name: string;
  constructor(name: string, bytes: number, deadlineAt: number, uniqueId: boolean) {
    super(name.slice(0, 1), bytes, true, deadlineAt, uniqueId);
    this.name = name;
  }
}

/** A queue whose effects are written down. */
export function setUp(
  options: { connected?: boolean; maxPending?: number; maxPendingBytes?: number; uniqueIds?: boolean } = {},
) {
  const done: string[] = [];
  const looks: Named[] = [];
  const rejected = new Map<string, string>();
  const limits = {
    timeoutMs: 10_000,
    maxPending: options.maxPending ?? 2_000,
    maxPendingBytes: options.maxPendingBytes ?? 10_000_000,
    duplicateWindowMs: 60_000,
  };
  const queue = new PublishQueue<Named>(
    limits,
    {
      send: ({ name }, token) => void done.push(`send ${name} ${token}`),
      sendBatch: (events, token) =>
        void done.push(`batch ${events[0]?.name}-${events.at(-1)?.name} ${token}`),
      resolve: ({ name }, seq, duplicate) =>
        void done.push(`resolve ${name} ${seq}${duplicate ? " dup" : ""}`),
      reject: ({ name }, error) => {
        rejected.set(name, error.message);
        done.push(`reject ${name} ${error.code}`);
      },
      lookForEvent: (publish) => {
        looks.push(publish);
        done.push(`look for ${publish.name}`);
      },
      lookAtStream: () => void done.push("look at stream"),
      ping: () => void done.push("ping"),
    },
    options.connected ?? true,
  );
  const accept = (name: string, now = 0, bytes = 10) =>
    queue.accept(new Named(name, bytes, now + limits.timeoutMs, options.uniqueIds ?? true), now)?.code;
  const look = () => {
    const publish = looks.shift();
    if (publish === undefined) throw new Error("nothing is looked for");
    return publish;
  };
  /** a1 on its way, and a2 to a`last` behind it. */
  const fill = (last: number, now = 0) => {
    for (let n = 1; n <= last; n++) accept(`a${n}`, now);
  };
  /** Whether a rejected event's caller was told that it may be stored nevertheless. */
  const maybeStored = (name: string) => /may be stored/.test(rejected.get(name) ?? "not rejected");
  return { queue, accept, fill, look, maybeStored, did: () => done.splice(0) };
}

export const refusal = (
  type: "refused" | "not-taken" | "unclear",
  code: "STREAM_FULL" | "WRONG_LAST_SEQUENCE" = "STREAM_FULL",
) => ({
  type,
  error: new LanekeeperError(code, "planted"),
});
