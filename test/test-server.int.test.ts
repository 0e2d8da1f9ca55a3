import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { JetStreamApiError, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { expect, test } from "vitest";

test("a killed server comes back on the same port with everything it had stored", async () => {
  await using server = await startTestServer();
  await withConnection(server, (connection) => makeStream(connection, "ORDERS", 1));
  await withConnection(server, (connection) => publish(connection, "orders.a", 20));
  const { url } = server;
  const before = server.nodes[0]?.pid;
  await server.kill();
  await expect(connect({ servers: url, reconnect: false, timeout: 500 })).rejects.toThrow();
  await server.restart();
  expect(server.url).toBe(url);
  expect(server.nodes[0]?.pid).not.toBe(before);
  expect(await withConnection(server, (connection) => countOf(connection, "ORDERS"))).toBe(20);
});

test("a restart waits for its port when somebody else holds it for a moment", async () => {
  await using server = await startTestServer();
  await server.kill();
  const holder = createServer().listen(Number(new URL(server.url).port), "127.0.0.1");
  await once(holder, "listening");
  const restarted = server.restart();
  const refused = /address already in use/i;
  const deadlineAt = performance.now() + 20_000;
  while (!refused.test(server.nodes[0]?.log() ?? "") && performance.now() < deadlineAt) await sleep(10);
  expect(server.nodes[0]?.log()).toMatch(refused);
  holder.close();
  await restarted;
  expect(await withConnection(server, (connection) => isAnswered(connection))).toBe(true);
});

test("a stopped server ends gracefully and starts again", async () => {
  await using server = await startTestServer();
  await withConnection(server, (connection) => makeStream(connection, "ORDERS", 1));
  await server.stop();
  expect(server.nodes[0]?.state).toBe("stopped");
  expect(server.nodes[0]?.log()).toContain("Initiating Shutdown");
  await server.restart();
  expect(await withConnection(server, (connection) => countOf(connection, "ORDERS"))).toBe(0);
});

test("a frozen server keeps its connections and answers nothing until it is thawed", async () => {
  await using server = await startTestServer();
  await withConnection(server, async (connection) => {
    server.freeze();
    expect(server.nodes[0]?.state).toBe("frozen");
    const flushed = connection.flush().then(() => "flushed");
    const waited = sleep(300, "silence");
    expect(await Promise.race([flushed, waited])).toBe("silence");
    expect(connection.isClosed()).toBe(false);
    server.thaw();
    expect(await flushed).toBe("flushed");
  });
});

test("a frozen server can be stopped, restarted and disposed of", async () => {
  await using server = await startTestServer();
  server.freeze();
  await server.stop();
  expect(server.nodes[0]?.state).toBe("stopped");
  await server.restart();
  server.freeze();
  await server.restart();
  expect(await withConnection(server, (connection) => isAnswered(connection))).toBe(true);
  server.freeze();
});

test("disposing leaves no process and no folder, whether the server runs, is frozen or is stopped", async () => {
  for (const leaveIt of [
    () => {},
    (server: TestServer) => server.freeze(),
    (server: TestServer) => server.kill(),
  ]) {
    const server = await startTestServer();
    const pid = server.nodes[0]?.pid ?? 0;
    expect(isAlive(pid)).toBe(true);
    expect(existsSync(server.folder)).toBe(true);
    await leaveIt(server);
    await server[Symbol.asyncDispose]();
    expect(isAlive(pid)).toBe(false);
    expect(existsSync(server.folder)).toBe(false);
    await server[Symbol.asyncDispose]();
  }
});

test("servers and folders go even when the process that started them is killed", async () => {
  const program = `
    import { startTestServer } from "@lanekeeper/core/testing";
    const server = await startTestServer();
    console.log(JSON.stringify({ pid: server.nodes[0].pid, folder: server.folder }));
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    cwd: import.meta.dirname,
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const [line] = await once(child.stdout, "data");
    const { pid, folder } = JSON.parse(String(line));
    expect(isAlive(pid)).toBe(true);
    child.kill("SIGKILL");
    const deadlineAt = performance.now() + 20_000;
    while ((isAlive(pid) || existsSync(folder)) && performance.now() < deadlineAt) await sleep(20);
    expect({ alive: isAlive(pid), folder: existsSync(folder) }).toEqual({ alive: false, folder: false });
  } finally {
    child.kill("SIGKILL");
  }
});

test("a forgotten server does not keep its process from ending", async () => {
  const program = `import { startTestServer } from "@lanekeeper/core/testing"; await startTestServer();`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    cwd: import.meta.dirname,
    stdio: ["ignore", "inherit", "inherit"],
    timeout: 100_000,
  });
  expect(await once(child, "exit")).toEqual([0, null]);
}, 120_000);

test("the programs in the testing guide run", async () => {
  const guide = readFileSync(new URL("../docs/guides/testing.md", import.meta.url), "utf8");
  const programs = [...guide.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, program = ""]) => program);
  expect(programs.length).toBeGreaterThan(3);
  for (const program of programs) {
    // Node.js 20 does not know `await using`; the rest of the programs is plain JavaScript.
    const name = /await using (\w+) =/.exec(program)?.[1];
    const plain = `${program.replace("await using", "const")}\nawait ${name}[Symbol.asyncDispose]();`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", plain], {
      cwd: import.meta.dirname,
      stdio: ["ignore", "inherit", "inherit"],
      timeout: 100_000,
    });
    expect(await once(child, "exit"), program).toEqual([0, null]);
  }
}, 120_000);

test("two servers stand side by side with stores of their own", async () => {
  await using one = await startTestServer();
  await using two = await startTestServer();
  expect(one.url).not.toBe(two.url);
  await withConnection(one, (connection) => makeStream(connection, "ORDERS", 1));
  await expect(withConnection(two, (connection) => countOf(connection, "ORDERS"))).rejects.toThrow(
    /not found/,
  );
});

test("config is appended: a mappings block and a listener on a port of its own work", async () => {
  await using server = await startTestServer({
    config: ({ port }) => `
      mappings { "in.*": "out.{{wildcard(1)}}" }
      websocket { listen: "127.0.0.1:${port("websocket")}", no_tls: true }`,
  });
  await withConnection(server, async (connection) => {
    const subscription = connection.subscribe("out.*", { max: 1 });
    connection.publish("in.a");
    for await (const message of subscription) expect(message.subject).toBe("out.a");
  });
  const answer = await fetch(`http://127.0.0.1:${server.port("websocket")}/`);
  expect(answer.status).toBe(400);
  expect(() => server.port("mqtt")).toThrow(/no port "mqtt"/);
});

test("config with credentials: the server is ready, and connect is used where it is given", async () => {
  const config = `accounts { APP { jetstream: enabled, users: [{ user: app, password: secret }] } }`;
  await using closed = await startTestServer({ config });
  await expect(connect({ servers: closed.url, reconnect: false })).rejects.toThrow(/authoriz/i);
  await using open = await startTestServer({ config, connect: { user: "app", pass: "secret" } });
  const connection = await connect({ servers: open.url, user: "app", pass: "secret" });
  await connection.close();
});

test("a server that cannot start is refused with the end of its log, and leaves nothing behind", async () => {
  const failure = await startTestServer({ config: "no_such_setting { a: 1 }\njetstream: 7" }).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(failure).toMatchObject({ name: "LanekeeperError", code: "NATS_SERVER_FAILED" });
  expect(String(failure)).toMatch(/Its log ends with:[\s\S]*jetstream/i);
});

test("a three-node cluster goes on without one node, which catches up when it is back", async () => {
  await using cluster = await startTestServer({ nodes: 3 });
  expect(cluster.urls).toHaveLength(3);
  await withConnection(cluster, async (connection) => {
    await makeStream(connection, "ORDERS", 3);
    await publish(connection, "orders.a", 10);
  });
  const [first, second] = cluster.nodes;
  await first?.kill();
  const rest = { url: second?.url ?? "" };
  await withConnection(rest, (connection) => publish(connection, "orders.a", 10));
  expect(await withConnection(rest, (connection) => countOf(connection, "ORDERS"))).toBe(20);
  await first?.restart();
  await withConnection(cluster, (connection) => publish(connection, "orders.a", 10));
  expect(await withConnection(cluster, (connection) => countOf(connection, "ORDERS"))).toBe(30);
}, 180_000);

test("stepDown moves a stream's leader to another node", async () => {
  await using cluster = await startTestServer({ nodes: 3 });
  await withConnection(cluster, async (connection) => {
    await makeStream(connection, "ORDERS", 3);
    // On a busy machine an election of the cluster's own can come between, so that the first one leads again.
    const moved = async () => {
      const before = await leaderOf(connection, "ORDERS");
      const after = await cluster.stepDown("ORDERS");
      expect(cluster.nodes.map((node) => node.name)).toContain(before);
      expect(cluster.nodes.map((node) => node.name)).toContain(after);
      return after !== before;
    };
    let tries = 1;
    while (!(await moved())) expect(++tries, "stepdowns after which the same node leads").toBeLessThan(5);
  });
}, 180_000);

test("a whole cluster that was killed comes back with what it had stored", async () => {
  await using cluster = await startTestServer({ nodes: 3 });
  await withConnection(cluster, async (connection) => {
    await makeStream(connection, "ORDERS", 3);
    await publish(connection, "orders.a", 10);
  });
  await cluster.restart();
  expect(await withConnection(cluster, (connection) => countOf(connection, "ORDERS"))).toBe(10);
}, 180_000);

async function withConnection<T>(
  server: { url: string },
  use: (connection: NatsConnection) => Promise<T>,
): Promise<T> {
  const connection = await connect({ servers: server.url });
  try {
    return await use(connection);
  } finally {
    await connection.close();
  }
}

async function makeStream(connection: NatsConnection, name: string, replicas: number): Promise<void> {
  await untilAnswered(async () => {
    const manager = await jetstreamManager(connection, { timeout: 20_000 });
    await manager.streams.add({ name, subjects: [`${name.toLowerCase()}.>`], num_replicas: replicas });
  });
}

/** Publishes one after the other; each is repeated with the same id while a leader is being elected. */
async function publish(connection: NatsConnection, subject: string, count: number): Promise<void> {
  const client = jetstream(connection);
  const batch = `${process.pid}-${Math.random()}`;
  for (let index = 0; index < count; index++) {
    await untilAnswered(() => client.publish(subject, "x", { msgID: `${batch}-${index}`, timeout: 2_000 }));
  }
}

/** How many messages a stream holds. Nobody answers while it has no leader, so the question is repeated. */
async function countOf(connection: NatsConnection, stream: string): Promise<number> {
  return await untilAnswered(async () => {
    const manager = await jetstreamManager(connection, { timeout: 2_000 });
    return (await manager.streams.info(stream)).state.messages;
  });
}

async function leaderOf(connection: NatsConnection, stream: string): Promise<string> {
  return await untilAnswered(async () => {
    const manager = await jetstreamManager(connection, { timeout: 2_000 });
    const leader = (await manager.streams.info(stream)).cluster?.leader;
    if (!leader) throw new Error(`${stream} has no leader`);
    return leader;
  });
}

/** Refusals that say nothing yet: no leader (10008), or the same id is still being stored (10158). */
const NO_ANSWER_YET = [10008, 10158];

async function untilAnswered<T>(ask: () => Promise<T>): Promise<T> {
  const deadlineAt = performance.now() + 40_000;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const refused = error instanceof JetStreamApiError && !NO_ANSWER_YET.includes(error.code);
      if (refused || performance.now() > deadlineAt) throw error;
      await sleep(100);
    }
  }
}

async function isAnswered(connection: NatsConnection): Promise<boolean> {
  const manager = await jetstreamManager(connection);
  return (await manager.getAccountInfo()).streams >= 0;
}

/** Whether the process runs; one that has ended and only waits to be collected by its parent does not. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !existsSync("/proc/self/stat") || !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
