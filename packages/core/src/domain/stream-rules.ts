/**
 * The stream settings that Lanekeeper judges, in JetStream's own names; times in nanoseconds as JetStream has them.
 * Absent means JetStream's default.
 */
export interface StreamSettings {
  readonly retention?: string | undefined;
  readonly discard?: string | undefined;
  readonly max_msgs?: number | undefined;
  readonly max_bytes?: number | undefined;
  readonly max_msgs_per_subject?: number | undefined;
  readonly max_consumers?: number | undefined;
  readonly no_ack?: boolean | undefined;
  readonly sealed?: boolean | undefined;
  readonly allow_rollup_hdrs?: boolean | undefined;
  readonly allow_msg_ttl?: boolean | undefined;
  readonly allow_msg_counter?: boolean | undefined;
  readonly subject_delete_marker_ttl?: number | undefined;
  readonly persist_mode?: string | undefined;
  readonly mirror?: unknown;
  readonly sources?: readonly unknown[] | undefined;
  readonly consumer_limits?:
    | { readonly inactive_threshold?: number; readonly max_ack_pending?: number }
    | undefined;
}

/**
 * Every reason why a stream with these settings cannot keep order, or may lose events without anybody seeing it (O4).
 * Empty: it is fit for lanes. `max_age` is let pass: it deletes from the front only, where a loss is seen and reported.
 */
export function unsafeSettings(settings: StreamSettings, lanes: number): string[] {
  const reasons: string[] = [];
  const refuse = (unsafe: boolean | undefined, reason: string) => {
    if (unsafe) reasons.push(reason);
  };
  const limited = (limit: number | undefined) => limit !== undefined && limit > 0;
  const discardsOld = settings.discard === undefined || settings.discard === "old";

  refuse(
    limited(settings.max_msgs) && discardsOld,
    "max_msgs with discard: old deletes events nobody has handled; use discard: new, so that publishers are refused instead",
  );
  refuse(
    limited(settings.max_bytes) && discardsOld,
    "max_bytes with discard: old deletes events nobody has handled; use discard: new, so that publishers are refused instead",
  );
  refuse(
    limited(settings.max_msgs_per_subject),
    "max_msgs_per_subject deletes events from between others, which no reader can notice; remove it",
  );
  refuse(
    settings.allow_rollup_hdrs,
    "allow_rollup_hdrs lets one publish delete a key's earlier events; turn it off",
  );
  refuse(
    settings.allow_msg_ttl,
    "allow_msg_ttl lets single events expire from between others unnoticed; turn it off",
  );
  refuse(
    limited(settings.subject_delete_marker_ttl),
    "subject_delete_marker_ttl stores markers that are not events; remove it",
  );
  refuse(settings.allow_msg_counter, "allow_msg_counter turns payloads into counters; turn it off");
  refuse(
    settings.no_ack,
    "no_ack leaves publishers without an answer, so their order cannot be kept; turn it off",
  );
  refuse(
    settings.persist_mode === "async",
    "persist_mode: async acknowledges events before they are written; use the default",
  );
  refuse(
    settings.mirror !== undefined && settings.mirror !== null,
    "a mirror has no lanes of its own; work on its origin",
  );
  refuse(
    (settings.sources?.length ?? 0) > 0,
    "sources bypass the subject list, so events without a lane could be stored; remove them",
  );
  refuse(
    limited(settings.consumer_limits?.inactive_threshold),
    "consumer_limits.inactive_threshold deletes the consumers of a group that pauses; remove it",
  );
  refuse(
    limited(settings.max_consumers) && (settings.max_consumers as number) < lanes,
    `max_consumers ${settings.max_consumers} is less than one consumer for each of ${lanes} lanes; raise or remove it`,
  );
  return reasons;
}
