import { on } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { openDatabase } from "@lanekeeper/examples/dist/customer-events/database.js";
import { expect, onTestFinished, test } from "vitest";

/** Says when it begins to open the file, and then what came of it. */
const OPENER = `
  const { parentPort, workerData } = require("node:worker_threads");
  import(workerData.module).then(({ openDatabase }) => {
    parentPort.postMessage("opening");
    try {
      const database = openDatabase(workerData.file);
      parentPort.postMessage(database.pragma("journal_mode", { simple: true }).journal_mode);
      database.close();
    } catch (error) {
      parentPort.postMessage(String(error));
    }
  });
`;

test("several open a new file at once while another one writes to it: they wait for it, and none is refused", async () => {
  const folder = mkdtempSync(join(tmpdir(), "lanekeeper-database-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "customers.db");
  // Another process on its way to WAL, caught where the file is locked and still in SQLite's own mode.
  const first = openDatabase(file);
  onTestFinished(() => void first.close());
  first.pragma("journal_mode = DELETE");
  first.exec("BEGIN IMMEDIATE");
  first.exec("CREATE TABLE made_first (id INTEGER)");
  const openers = [1, 2, 3, 4].map(() => startOpener(file));
  await Promise.all(openers.map(({ opening }) => opening));
  await sleep(200);
  first.exec("COMMIT");
  expect(await Promise.all(openers.map(({ came }) => came))).toEqual(openers.map(() => "wal"));
});

function startOpener(file: string): { opening: Promise<unknown>; came: Promise<string> } {
  const workerData = {
    module: new URL("../packages/examples/dist/customer-events/database.js", import.meta.url).href,
    file,
  };
  const thread = new Worker(OPENER, { eval: true, workerData });
  onTestFinished(async () => void (await thread.terminate()));
  const messages = on(thread, "message");
  const next = async (): Promise<string> => String((await messages.next()).value?.[0]);
  return { opening: next(), came: next() };
}
