import type { OutgoingEvent, PublishReceipt } from "../domain/event.js";

/**
 * Stores events of one key in the order of the calls, each at most once within the stream's duplicate window, and
 * events of different keys side by side (P1).
 */
export interface LanePublisher<E extends object> extends AsyncDisposable {
  /**
   * Queues the event and resolves once the stream has stored it. At most one event of a key is on its way at a time,
   * or one atomic batch of those that wait; calls need not be awaited to keep their order. Never throws; rejects with
   * a LanekeeperError:
   * - INVALID_OPTIONS, INVALID_KEY, INVALID_TYPE, INVALID_ID, INVALID_HEADER, ENCODE_FAILED, PAYLOAD_TOO_LARGE,
   *   SERVER_TOO_OLD (expectLastSeq needs 2.11), BUFFER_FULL, CLOSED: nothing was sent;
   * - STREAM_FULL, WRONG_LAST_SEQUENCE, NO_STREAM_FOR_SUBJECT, PERMISSION_DENIED, PUBLISH_REJECTED: it is not stored;
   * - LAYOUT_DIFFERS, LAYOUT_CHANGED, MAPPING_DIFFERS: nothing is published until that is put right;
   * - PUBLISH_TIMEOUT, CONNECTION_CLOSED: the message says whether it may have been stored.
   * The key's next event is sent only when the outcome is known, also after a PUBLISH_TIMEOUT.
   */
  publish<K extends keyof E & string>(event: OutgoingEvent<E, K>): Promise<PublishReceipt>;
  /**
   * Resolves when the buffer has room for an event as large as the largest so far, and holds no more than can be sent
   * soon: 2,048 events, or 4,096 while fewer than 64 keys have any or where answers take 10 ms and more. The room is
   * the caller's for a millisecond: publish at once. Rejects with BUFFER_FULL when there was none for `timeoutMs`,
   * CLOSED or CONNECTION_CLOSED.
   */
  ready(): Promise<void>;
  /** Resolves when every call of `publish()` so far is settled, either way; at the latest after `timeoutMs`. */
  flush(): Promise<void>;
  /**
   * Refuses new events with CLOSED, waits for the pending ones as `flush()`, and lets go of the subscription. Idempotent;
   * concurrent callers share it. What had timed out before stays unknown: nothing more is sent for it.
   */
  close(): Promise<void>;
}
