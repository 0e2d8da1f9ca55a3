import { jetstreamManager, StorageType } from "@nats-io/jetstream";
import { connect, type NatsConnection, type NodeConnectionOptions } from "@nats-io/transport-node";
import { waitUntil } from "./wait-until.js";

const PROBE_STREAM = "LANEKEEPER_PROBE";
const REQUEST_MS = 5_000;
/** An election has been decided by then, most of the time. */
const ELECTION_MS = 5_000;

/**
 * Whether JetStream answers a client. In a cluster a stream with three replicas is made and deleted: a meta leader
 * may exist before it has heard from enough nodes to place one.
 *
 * @returns `"yes"`, also when credentials are asked for and none are known; otherwise the last reason against it.
 */
export async function jetStreamAnswers(
  options: NodeConnectionOptions,
  nodes: number,
  deadlineAt: number,
): Promise<string> {
  let reason = "not asked";
  const answered = await waitUntil(
    async () => {
      try {
        await withConnection(options, (connection) => probe(connection, nodes));
        return "yes";
      } catch (error) {
        reason = error instanceof Error ? error.message : String(error);
        return isAuthorizationError(error) ? "yes" : undefined;
      }
    },
    deadlineAt,
    100,
  );
  return answered ?? reason;
}

/** Has the stream's leader step down; resolves with the name of the next leader, which is another node. */
export async function stepDownLeader(
  options: NodeConnectionOptions,
  stream: string,
  timeoutMs: number,
): Promise<string> {
  return await withConnection(options, async (connection) => {
    const deadlineAt = performance.now() + timeoutMs;
    // Whether JetStream answers at all is not asked: for a moment after a node died nobody may.
    const manager = await jetstreamManager(connection, { timeout: REQUEST_MS, checkAPI: false });
    const leader = async (): Promise<string | undefined> => {
      try {
        return (await manager.streams.info(stream)).cluster?.leader || undefined;
      } catch {
        return undefined; // Nobody leads at the moment, so nobody answers.
      }
    };
    const before = await waitUntil(leader, deadlineAt);
    if (before === undefined) throw new Error(`stream ${stream} has no leader that could step down`);
    let refusal: string | undefined = "not asked";
    let askedAt = Number.NEGATIVE_INFINITY;
    const after = await waitUntil(async () => {
      const now = await leader();
      if (now !== before) return now;
      // With a node less the same one may be elected again.
      if (refusal !== undefined || performance.now() - askedAt > ELECTION_MS) {
        refusal = await askToStepDown(connection, stream);
        askedAt = performance.now();
      }
      return undefined;
    }, deadlineAt);
    if (after === undefined && refusal !== undefined)
      throw new Error(`the leader of stream ${stream} did not step down: ${refusal}`);
    if (after === undefined)
      throw new Error(`no other node leads stream ${stream} ${timeoutMs} ms after the stepdown`);
    return after;
  });
}

/** Undefined: it does; otherwise why not. */
async function askToStepDown(connection: NatsConnection, stream: string): Promise<string | undefined> {
  try {
    const subject = `$JS.API.STREAM.LEADER.STEPDOWN.${stream}`;
    const reply = await connection.request(subject, "", { timeout: REQUEST_MS });
    const { success, error } = reply.json<{ success?: boolean; error?: { description?: string } }>();
    return success === true ? undefined : (error?.description ?? "refused");
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

async function probe(connection: NatsConnection, nodes: number): Promise<void> {
  const manager = await jetstreamManager(connection, { timeout: REQUEST_MS });
  if (nodes === 1) {
    await manager.getAccountInfo();
    return;
  }
  await manager.streams.add({
    name: PROBE_STREAM,
    subjects: ["_lanekeeper.probe"],
    storage: StorageType.Memory,
    num_replicas: nodes,
  });
  await manager.streams.delete(PROBE_STREAM);
}

async function withConnection<T>(
  options: NodeConnectionOptions,
  use: (connection: NatsConnection) => Promise<T>,
): Promise<T> {
  const connection = await connect({ timeout: REQUEST_MS, reconnect: false, ...options });
  try {
    return await use(connection);
  } finally {
    await connection.close();
  }
}

function isAuthorizationError(error: unknown): boolean {
  return error instanceof Error && /authoriz|authentic|permission/i.test(`${error.name} ${error.message}`);
}
