import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { awaitCondition, within } from "./harness/await-condition.js";
import { type LaneScene, startLaneScene } from "./harness/lane-scene.js";

let scene: LaneScene;
beforeAll(async () => {
  scene = await startLaneScene({ ackWaitMs: 2_000, create: { subject: "orders", lanes: 2 } });
});
afterAll(async () => {
  await scene[Symbol.asyncDispose]();
});

test("a publisher process publishes what it was told, records it, and ends by itself", async () => {
  const events = { type: "turns" as const, count: 30, keys: 3 };
  const publisher = await scene.publisher({ name: "counted", events });
  await publisher.finished(20_000);
  const stored = (await scene.stored()).filter((event) => event.publishedBy?.process === publisher.id);
  expect(stored).toHaveLength(30);
  const records = scene.history.read().filter((record) => record.process === publisher.id);
  expect(records.filter((record) => record.kind === "publish-call")).toHaveLength(30);
  expect(records.filter((record) => record.kind === "publish-settled")).toHaveLength(30);
});

test("a process that cannot start is an error with its output, and leaves nothing behind", async () => {
  const wrong = scene.worker({ name: "wrong", work: { concurrency: -1 } });
  await expect(wrong).rejects.toThrow(/wrong: ended \(code 1\) before it was ready[\s\S]*concurrency/);
  expect(scene.history.read()).toContainEqual(
    expect.objectContaining({ kind: "exited", about: "wrong", code: 1 }),
  );
});

test("a scene that waits for something is told at once that a process of its has failed", async () => {
  await using short = await startLaneScene({ ackWaitMs: 2_000, create: { subject: "orders", lanes: 1 } });
  await short.publisher({
    name: "reader",
    events: { type: "ndjson", file: "/no/such/file", keyField: "k", typeField: "t" },
  });
  await expect(short.settled(1, 20_000)).rejects.toThrow(/reader: ended \(code 1\)[\s\S]*ENOENT/);
});

test("a worker that is frozen reports nothing, and goes on when it is thawed; SIGTERM ends it with 0", async () => {
  const worker = await scene.worker({ name: "frosty" });
  expect(await worker.status()).toMatchObject({ healthy: true });
  worker.freeze();
  await awaitCondition(() => stateOf(worker.pid) === "T", { what: "the worker to be stopped" });
  await expect(worker.status(300)).rejects.toThrow(/waited 300 ms for frosty to report/);
  worker.thaw();
  await awaitCondition(
    () =>
      worker.status(1_000).then(
        () => true,
        () => false,
      ),
    {
      what: "the thawed worker to report",
    },
  );
  expect(await worker.stop()).toEqual({ code: 0, signal: null });
  const kinds = scene.history
    .read()
    .flatMap((record) => ("about" in record && record.about === worker.id ? [record.kind] : []));
  expect(kinds).toEqual(["started", "frozen", "thawed", "exited"]);
  expect(() => worker.freeze()).toThrow(/has ended/);
});

test("kill and dispose end it, frozen or not, and say so in the history", async () => {
  const [one, two] = await Promise.all([scene.worker({ name: "mortal" }), scene.worker({ name: "mortal" })]);
  expect([one.id, two.id]).toEqual(["mortal", "mortal-2"]);
  await one.kill();
  two.freeze();
  await two[Symbol.asyncDispose]();
  await two.kill();
  for (const each of [one, two]) {
    expect(await each.exited).toEqual({ code: null, signal: "SIGKILL" });
    expect(() => process.kill(each.pid, 0)).toThrow(/ESRCH/);
    const kinds = scene.history
      .read()
      .flatMap((record) => ("about" in record && record.about === each.id ? [record.kind] : []));
    expect(kinds.filter((kind) => kind === "killed")).toHaveLength(1);
  }
  await expect(one.report()).rejects.toThrow(/ended \(SIGKILL\) instead of reporting/);
});

test("children end though the test's own process is killed with -9, even frozen ones", async () => {
  const harness = new URL("./dist/harness/", import.meta.url);
  const source = `
    import { startHistory } from ${JSON.stringify(fileURLToPath(new URL("history.js", harness)))};
    import { startWorkerProcess } from ${JSON.stringify(fileURLToPath(new URL("worker-process.js", harness)))};
    const options = { servers: ${JSON.stringify(scene.server.url)}, stream: "ORDERS", work: { group: "orphans", assignment: "shared" } };
    const history = startHistory();
    const running = await startWorkerProcess(history, { ...options, name: "running" });
    const frozen = await startWorkerProcess(history, { ...options, name: "frozen" });
    frozen.freeze();
    console.log(JSON.stringify({ pids: [running.pid, frozen.pid], folder: history.folder }));
    process.kill(process.pid, "SIGKILL");`;
  const parent = spawnSync(process.execPath, ["--input-type=module", "-e", source], { encoding: "utf8" });
  expect(parent.signal).toBe("SIGKILL");
  const { pids, folder } = JSON.parse(parent.stdout) as { pids: number[]; folder: string };
  expect(pids).toHaveLength(2);
  await awaitCondition(() => pids.every((pid) => stateOf(pid) === undefined), {
    what: () => `the orphans to end: ${pids.map((pid) => `${pid} ${stateOf(pid)}`).join(", ")}`,
  });
  rmSync(folder, { recursive: true });
});

test("a wait that takes too long names what it waited for; one that fails passes the failure on", async () => {
  const never = new Promise<void>(() => {});
  await expect(within(never, 20, "the moon")).rejects.toThrow("waited 20 ms for the moon");
  await expect(within(Promise.reject(new Error("fell")), 20, "the moon")).rejects.toThrow("fell");
  await expect(awaitCondition(() => false, { what: () => "the sun", timeoutMs: 20 })).rejects.toThrow(
    "waited 20 ms for the sun",
  );
  expect(await awaitCondition(() => 0, { what: "a number" })).toBe(0);
});

/** Its state as `ps` tells it (`T` stopped), or undefined where it is gone or a zombie. */
function stateOf(pid: number): string | undefined {
  const { stdout } = spawnSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" });
  const state = stdout.trim()[0];
  return state === "Z" ? undefined : state;
}
