import type { HistoryRecord, StoredEvent } from "../history-record.js";
import type { Fault } from "./fault.js";

/**
 * P1: one publisher's events of a key are stored in call order, each at most once. What was acknowledged is stored
 * where its receipt says; what was refused is not stored; a publish without a definite answer may be stored or
 * not, but only in its place.
 */
export function checkPublishOrder(
  history: readonly HistoryRecord[],
  stored: readonly StoredEvent[],
): Fault[] {
  const calls = callsOf(history);
  const seqsOf = new Map<string, number[]>();
  for (const event of [...stored].sort((a, b) => a.seq - b.seq)) {
    if (event.publishedBy === undefined) continue;
    const name = nameOf(event.publishedBy.process, event.publishedBy.call);
    seqsOf.set(name, [...(seqsOf.get(name) ?? []), event.seq]);
  }
  const keyOf = new Map(stored.map((event) => [event.seq, event.key]));
  const faults: Fault[] = [];
  const latest = new Map<string, { call: number; seq: number }>();
  for (const call of calls.values()) {
    const seqs = seqsOf.get(nameOf(call.process, call.call)) ?? [];
    faults.push(...faultsOfCall(call, seqs, keyOf));
    const [seq] = seqs;
    if (seq === undefined) continue;
    const line = JSON.stringify([call.process, call.key]);
    const before = latest.get(line);
    if (before === undefined || seq > before.seq) latest.set(line, { call: call.call, seq });
    else {
      const found = `is stored at seq ${seq}, before its earlier call ${before.call} at seq ${before.seq}`;
      faults.push(faultOf(call, [seq, before.seq], found));
    }
  }
  for (const name of seqsOf.keys()) {
    if (calls.has(name)) continue;
    const seqs = seqsOf.get(name) ?? [];
    const key = keyOf.get(seqs[0] ?? 0) ?? "";
    const text = `key ${JSON.stringify(key)}: seq ${seqs.join(", ")} is stored, but no process recorded call ${name}`;
    faults.push({ invariant: "P1", key, seqs, processes: [], text });
  }
  return faults;
}

interface Call {
  readonly process: string;
  readonly call: number;
  readonly key: string;
  readonly calledMs: number;
  answer?: { seq: number } | "refused";
}

/** In order of call, for each process. */
function callsOf(history: readonly HistoryRecord[]): Map<string, Call> {
  const calls = new Map<string, Call>();
  for (const record of history) {
    if (record.kind === "publish-call") {
      const { process, call, key, atMs } = record;
      calls.set(nameOf(process, call), { process, call, key, calledMs: atMs });
    } else if (record.kind === "publish-settled" || record.kind === "publish-failed") {
      const call = calls.get(nameOf(record.process, record.call));
      if (call === undefined)
        throw new Error(`${record.process} settled call ${record.call} before it was made`);
      if (record.kind === "publish-settled") call.answer = { seq: record.seq };
      else if (record.refused) call.answer = "refused";
    }
  }
  return calls;
}

function faultsOfCall(call: Call, seqs: readonly number[], keyOf: ReadonlyMap<number, string>): Fault[] {
  const faults: Fault[] = [];
  const at = `seq ${seqs.join(" and ")}`;
  if (seqs.length > 1) faults.push(faultOf(call, seqs, `is stored ${seqs.length} times, at ${at}`));
  for (const seq of seqs) {
    const key = keyOf.get(seq);
    if (key !== call.key) faults.push(faultOf(call, [seq], `is stored under key ${JSON.stringify(key)}`));
  }
  if (call.answer === "refused") {
    if (seqs.length > 0) faults.push(faultOf(call, seqs, `was refused, yet is stored at ${at}`));
  } else if (call.answer !== undefined && !seqs.includes(call.answer.seq)) {
    const found = seqs.length === 0 ? "is not stored" : `is stored at ${at}`;
    faults.push(faultOf(call, seqs, `was acknowledged with seq ${call.answer.seq}, but ${found}`));
  }
  return faults;
}

function faultOf(call: Call, seqs: readonly number[], found: string): Fault {
  return {
    invariant: "P1",
    key: call.key,
    seqs,
    processes: [call.process],
    atMs: call.calledMs,
    text: `key ${JSON.stringify(call.key)}: call ${call.call} of ${call.process} ${found}`,
  };
}

function nameOf(process: string, call: number): string {
  return `${process}:${call}`;
}
