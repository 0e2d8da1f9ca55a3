import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { keepServer, withPrivateFolder } from "./cache-folder.js";
import { runCommand } from "./run-command.js";
import { readServerVersion } from "./server-version.js";

/** Where NATS publishes its releases; `LANEKEEPER_NATS_DOWNLOAD_URL` replaces it. */
const DEFAULT_BASE = "https://github.com/nats-io/nats-server/releases/download";
/** The release taken for a line. Any other one is taken when its full version is asked for. */
const RELEASES: readonly string[] = ["2.15.1", "2.10.29"];
/** The release taken when no version is asked for. */
export const NEWEST_RELEASE = "2.15.1";

const ANSWER_MS = 5_000;
/** Turns of the event loop in which what lies there is read: a connection, a request and its answer take some. */
const LAST_TURNS = 10;
const TRANSFER_MS = 120_000;
const UNPACK_MS = 60_000;
const MAX_BYTES = 200_000_000;

/**
 * Downloads a release of nats-server into the cache: `<base>/v<version>/nats-server-v<version>-<os>-<cpu>.tar.gz`,
 * whose SHA-256 must be the one in `SHA256SUMS` beside it. That finds what was damaged or cut on its way. Both
 * files come from one address, so it does not prove who made them: for that, HTTPS and the address are trusted.
 *
 * @param wanted a line or version; undefined for the newest.
 * @throws Error with the reason. Nothing is left in the cache then.
 */
export async function downloadRelease(
  wanted: string | undefined,
  env: NodeJS.ProcessEnv,
  onProgress: (line: string) => void,
): Promise<{ path: string; version: string }> {
  const version = releaseFor(wanted);
  const base = (env["LANEKEEPER_NATS_DOWNLOAD_URL"] || DEFAULT_BASE).replace(/\/+$/, "");
  const name = `nats-server-v${version}-${platform()}`;
  const url = `${base}/v${version}/${name}.tar.gz`;
  onProgress(`downloading nats-server ${version} from ${new URL(url).host}`);
  return await withPrivateFolder(env, async (folder) => {
    const expected = await publishedSum(`${base}/v${version}/SHA256SUMS`, `${name}.tar.gz`);
    const archive = join(folder, "release.tar.gz");
    const actual = await save(url, archive);
    if (actual !== expected) {
      throw new Error(`${url} has SHA-256 ${actual}, but SHA256SUMS beside it says ${expected}: refused`);
    }
    const finished = join(folder, "finished");
    await mkdir(finished);
    const unpack = ["-xzf", archive, "-C", finished, "--strip-components=1", `${name}/nats-server`];
    await runCommand("tar", unpack, { cwd: folder, env, timeoutMs: UNPACK_MS });
    await chmod(join(finished, "nats-server"), 0o755);
    const unpacked = await readServerVersion(join(finished, "nats-server"));
    return { path: await keepServer(env, finished, unpacked), version: unpacked };
  });
}

function releaseFor(wanted: string | undefined): string {
  if (wanted === undefined) return NEWEST_RELEASE;
  if (/^\d+\.\d+\.\d+/.test(wanted)) return wanted;
  const release = RELEASES.find((known) => known.startsWith(`${wanted}.`));
  if (release !== undefined) return release;
  throw new Error(
    `no release of line ${wanted} is known here (${RELEASES.join(", ")}); ask for a full version`,
  );
}

/** As in the names of the release's files. */
function platform(): string {
  const system = { linux: "linux", darwin: "darwin", freebsd: "freebsd" }[process.platform as string];
  const cpu = { x64: "amd64", arm64: "arm64", arm: "arm7", s390x: "s390x", ppc64: "ppc64le" }[
    process.arch as string
  ];
  if (system === undefined || cpu === undefined) {
    throw new Error(`releases for ${process.platform} on ${process.arch} are not unpacked here`);
  }
  return `${system}-${cpu}`;
}

async function publishedSum(url: string, file: string): Promise<string> {
  const signal = AbortSignal.timeout(TRANSFER_MS);
  const text = await withReason(url, async () => await (await answerOf(url, signal)).text());
  for (const line of text.split("\n")) {
    const [sum = "", name = ""] = line.trim().split(/\s+/);
    if (name.replace(/^\*/, "") === file && /^[0-9a-f]{64}$/i.test(sum)) return sum.toLowerCase();
  }
  throw new Error(`${url} has no SHA-256 of ${file}`);
}

/** @returns the SHA-256 of what was saved. */
async function save(url: string, path: string): Promise<string> {
  const signal = AbortSignal.timeout(TRANSFER_MS);
  const hash = createHash("sha256");
  let bytes = 0;
  await withReason(url, async () => {
    const answer = await answerOf(url, signal);
    if (answer.body === null) throw new Error("empty answer");
    const count = async function* (chunks: AsyncIterable<Uint8Array>) {
      for await (const chunk of chunks) {
        bytes += chunk.byteLength;
        if (bytes > MAX_BYTES) throw new Error(`more than ${MAX_BYTES} bytes`);
        hash.update(chunk);
        yield chunk;
      }
    };
    await pipeline(Readable.fromWeb(answer.body), count, createWriteStream(path), { signal });
  });
  return hash.digest("hex");
}

/** The answer's head has to come soon, so that a machine that cannot get out goes on to the next source. */
async function answerOf(url: string, transfer: AbortSignal): Promise<Response> {
  const impatience = new AbortController();
  const giveUp = (): void => impatience.abort(new Error(`no answer within ${ANSWER_MS / 1_000} s`));
  let lastTurn: NodeJS.Immediate | undefined;
  // Where the process stood still, the time is up before an answer that has come is read.
  const lookOnceMore = (turns: number): void => {
    lastTurn = setImmediate(() => (turns > 1 ? lookOnceMore(turns - 1) : giveUp()));
  };
  const timer = setTimeout(() => lookOnceMore(LAST_TURNS), ANSWER_MS);
  try {
    const answer = await fetch(url, { signal: AbortSignal.any([impatience.signal, transfer]) });
    if (!answer.ok) throw new Error(`answered ${answer.status}`);
    return answer;
  } finally {
    clearTimeout(timer);
    clearImmediate(lastTurn);
  }
}

async function withReason<T>(url: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const failure = error instanceof Error ? error : new Error(String(error));
    const cause = failure.cause instanceof Error ? ` (${failure.cause.message})` : "";
    throw new Error(`${url}: ${failure.message}${cause}`, { cause: error });
  }
}
