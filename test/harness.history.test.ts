import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { startHistory } from "./harness/history.js";
import { openHistoryRecorder } from "./harness/history-recorder.js";

test("what several processes record comes back merged in the order of one clock", () => {
  using history = startHistory();
  using a = openHistoryRecorder(history.folder, "A");
  using b = openHistoryRecorder(history.folder, "B");
  a.record({ kind: "note", text: "1" });
  b.record({ kind: "note", text: "2" });
  history.record({ kind: "note", text: "3" });
  a.record({ kind: "note", text: "4", data: { n: 1 } });
  const records = history.read();
  expect(records.map((record) => [record.process, record.n])).toEqual([
    ["A", 1],
    ["B", 1],
    ["test", 1],
    ["A", 2],
  ]);
  expect(records.at(-1)).toMatchObject({ kind: "note", text: "4", data: { n: 1 } });
});

test("the clock is common to processes: a child's record lies between its start and its end", () => {
  using history = startHistory();
  history.record({ kind: "note", text: "before" });
  runChild(history.folder, `r.record({ kind: "note", text: "child" });`);
  history.record({ kind: "note", text: "after" });
  expect(history.read().map((record) => record.kind === "note" && record.text)).toEqual([
    "before",
    "child",
    "after",
  ]);
});

test("nothing recorded is lost when the process is killed with -9 right after", () => {
  using history = startHistory();
  const script = `for (let i = 0; i < 500; i++) r.record({ kind: "note", text: "x" }); process.kill(process.pid, "SIGKILL");`;
  expect(runChild(history.folder, script)).toBe("SIGKILL");
  expect(history.read()).toHaveLength(500);
});

test("a torn last line is left out; any other broken line and any hole is an error", () => {
  using history = startHistory();
  using a = openHistoryRecorder(history.folder, "A");
  const file = join(history.folder, "A.ndjson");
  a.record({ kind: "note", text: "whole" });
  appendFileSync(file, '{"process":"A","n":2,"atM');
  expect(history.read()).toHaveLength(1);
  appendFileSync(file, 's":1}\n');
  expect(() => history.read()).toThrow(/A\.ndjson:2 is no record/);

  using other = startHistory();
  using b = openHistoryRecorder(other.folder, "B");
  b.record({ kind: "note", text: "1" });
  appendFileSync(join(other.folder, "B.ndjson"), '{"process":"B","n":3,"atMs":1,"wallMs":1,"kind":"note"}\n');
  expect(() => other.read()).toThrow(/counter 3/);
});

test("reading again adds what was written since, also the rest of a line that was torn", () => {
  using history = startHistory();
  using a = openHistoryRecorder(history.folder, "A");
  a.record({ kind: "note", text: "Fähre" });
  expect(history.read()).toHaveLength(1);
  const file = join(history.folder, "A.ndjson");
  const line = Buffer.from('{"process":"A","n":2,"atMs":1e12,"wallMs":1,"kind":"note","text":"ä"}\n');
  appendFileSync(file, line.subarray(0, -4)); // In the middle of a character.
  expect(history.read()).toHaveLength(1);
  appendFileSync(file, line.subarray(-4));
  expect(history.read().at(-1)).toMatchObject({ n: 2, text: "ä" });
});

test("process starts are named apart", () => {
  using history = startHistory();
  expect(["A", "B", "A", "A"].map((name) => history.nameFor(name))).toEqual(["A", "B", "A-2", "A-3"]);
});

test("two recorders under one name, and names that are no file names, are refused; the folder goes", () => {
  const history = startHistory();
  using a = openHistoryRecorder(history.folder, "A");
  expect(() => openHistoryRecorder(history.folder, a.process)).toThrow(/EEXIST/);
  expect(() => openHistoryRecorder(history.folder, "../A")).toThrow(/cannot name/);
  history[Symbol.dispose]();
  expect(existsSync(history.folder)).toBe(false);
  history.record({ kind: "note", text: "too late, and no error" });
});

/** Runs a script with a recorder `r` in a process of its own. @returns its exit code or signal. */
function runChild(folder: string, script: string): string | number | null {
  const recorder = fileURLToPath(new URL("./dist/harness/history-recorder.js", import.meta.url));
  const source = `
    import { openHistoryRecorder } from ${JSON.stringify(recorder)};
    const r = openHistoryRecorder(${JSON.stringify(folder)}, "child");
    ${script}`;
  const child = spawnSync(process.execPath, ["--input-type=module", "-e", source], { encoding: "utf8" });
  if (child.stderr !== "") throw new Error(child.stderr);
  return child.signal ?? child.status;
}
