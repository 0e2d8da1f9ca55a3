import type { JetStreamManager, StreamConfig } from "@nats-io/jetstream";

/** More than one in a row has not been seen. */
const MOST_ATTEMPTS = 10;

/**
 * Makes a stream whose namesake was deleted, empty and from sequence 1. On 2.15.1 one that is made at once can start
 * with the old one's events (10 of 400 on a busy machine): such a one is deleted and made again.
 *
 * @throws Error naming the server's fault, where the made stream is never empty.
 */
export async function remakeStream(manager: JetStreamManager, config: StreamConfig): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const { state } = await manager.streams.add(config);
    if (state.messages === 0 && state.last_seq === 0) return;
    if (attempt === MOST_ATTEMPTS) {
      const held = `${state.messages} messages, the last of sequence ${state.last_seq}`;
      throw new Error(
        `nats-server made ${config.name} ${attempt} times with ${held}, out of an older stream`,
      );
    }
    await manager.streams.delete(config.name);
  }
}
