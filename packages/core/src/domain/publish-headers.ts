/** An event's place in an atomic batch. */
export interface BatchPlace {
  /** Unlike any other batch's; at most 64 characters. */
  readonly id: string;
  /** From 1, without a gap. */
  readonly sequence: number;
  /** The last one: the server stores the batch when it has read it. */
  readonly commit: boolean;
}

const opening = "NATS/1.0\r\nNats-Msg-Id: ";

/** No event's headers grow by more bytes than this when it goes out in a batch. */
export const batchHeaderBytes = 160;

/** The bytes of {@link headerBlock} without a batch. */
export function headerBytes(idBytes: number, moreBytes: number): number {
  return opening.length + idBytes + moreBytes + 4;
}

/** The lines beside the message id. The caller has checked every part: no line break can be in any of them. */
export function moreHeaderLines(
  expect: { readonly lastSeq: number; readonly filter: string } | undefined,
  lines: readonly (readonly [name: string, value: string])[] | undefined,
): string {
  let text = "";
  if (expect !== undefined) {
    text += `Nats-Expected-Last-Subject-Sequence: ${expect.lastSeq}\r\nNats-Expected-Last-Subject-Sequence-Subject: ${expect.filter}\r\n`;
  }
  if (lines !== undefined) for (const [name, value] of lines) text += `${name}: ${value}\r\n`;
  return text;
}

/** All headers of a message, as NATS has them on the wire. `more`: as {@link moreHeaderLines} made it. */
export function headerBlock(id: string, more: string, batch?: BatchPlace): string {
  if (batch === undefined) return `${opening}${id}\r\n${more}\r\n`;
  const commit = batch.commit ? "Nats-Batch-Commit: 1\r\n" : "";
  return `${opening}${id}\r\n${more}Nats-Batch-Id: ${batch.id}\r\nNats-Batch-Sequence: ${batch.sequence}\r\n${commit}\r\n`;
}
