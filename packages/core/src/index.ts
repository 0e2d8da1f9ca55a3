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
