export { bytesCodec, type Codec, jsonCodec } from "./domain/codec.js";
export { type ErrorCode, errorCodes } from "./domain/error-code.js";
export type {
  EventMeta,
  Fence,
  Handler,
  HandlerContext,
  LaneEvent,
  OutgoingEvent,
  PublishReceipt,
} from "./domain/event.js";
export { RetryableError, TerminalError } from "./domain/handler-errors.js";
export { LanekeeperError } from "./domain/lanekeeper-error.js";
export type { Notification, NotificationType } from "./domain/notification.js";
export type { PublisherOptions } from "./domain/publisher-options.js";
export type { RetryOptions } from "./domain/retry-policy.js";
export type { Assignment, GroupStart, WorkerOptions } from "./domain/worker-options.js";
export type { Lanes } from "./lanes.js";
export type { CreateLanes, LanesOptions } from "./lanes-options.js";
export { minimumServerVersion, openLanes } from "./open-lanes.js";
export type { Group, GroupStatus, LaneStatus } from "./runtime/group.js";
export type { LanePublisher } from "./runtime/lane-publisher.js";
export type { CloseReason, LaneWorker, WorkerStatus } from "./runtime/lane-worker.js";
