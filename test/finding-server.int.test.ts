import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findServerBinary, startTestServer } from "@lanekeeper/core/testing";
import { expect, test } from "vitest";

const VERSION = "2.15.1";

test("a release whose checksum is right is unpacked into the cache, and found there the next time", async () => {
  await using place = await makePlace();
  const release = await makeRelease(place.folder);
  await using site = await serve(release.answer);
  const env = { ...place.env, LANEKEEPER_NATS_DOWNLOAD_URL: `${site.url}/mirror/` };
  const found = await findServerBinary({ env, version: VERSION });
  expect(found).toEqual({
    path: join(place.servers, VERSION, "nats-server"),
    version: VERSION,
    source: "release",
  });
  expect(site.asked[0]).toBe(`/mirror/v${VERSION}/SHA256SUMS`);
  const asked = site.asked.length;
  expect(await findServerBinary({ env })).toEqual({ ...found, source: "cache" });
  expect(site.asked).toHaveLength(asked);
});

test("several getters at once do not clash and leave one server in the cache", async () => {
  await using place = await makePlace();
  const release = await makeRelease(place.folder);
  await using site = await serve(release.answer);
  const env = { ...place.env, LANEKEEPER_NATS_DOWNLOAD_URL: site.url };
  const found = await Promise.all(Array.from({ length: 6 }, () => findServerBinary({ env })));
  expect(new Set(found.map((server) => server.path)).size).toBe(1);
  expect(await readdir(place.servers)).toEqual([VERSION]);
});

test("a release whose checksum is wrong is refused and nothing stays in the cache", async () => {
  await using place = await makePlace();
  const release = await makeRelease(place.folder);
  await using site = await serve((request, response) => {
    if (!request.url?.endsWith("SHA256SUMS")) return release.answer(request, response);
    response.end(`${"0".repeat(64)}  ${release.name}\n`);
  });
  const env = { ...place.env, LANEKEEPER_NATS_DOWNLOAD_URL: site.url };
  const failure = await failureOf(findServerBinary({ env }));
  expect(failure.code).toBe("NATS_SERVER_NOT_FOUND");
  expect(failure.message).toMatch(
    /release: .*has SHA-256 [0-9a-f]{64}, but SHA256SUMS beside it says 0{64}: refused/,
  );
  expect(await readdir(place.servers)).toEqual([]);
});

test("a release without a published checksum is refused", async () => {
  await using place = await makePlace();
  await using site = await serve((_, response) => response.end("not a checksum\n"));
  const env = { ...place.env, LANEKEEPER_NATS_DOWNLOAD_URL: site.url };
  expect((await failureOf(findServerBinary({ env }))).message).toMatch(
    /SHA256SUMS has no SHA-256 of nats-server-v/,
  );
  expect(site.asked).toHaveLength(1);
});

test("a server that answers 404, and one that never answers, are passed over within the deadline", async () => {
  await using place = await makePlace();
  await using missing = await serve((_, response) => response.writeHead(404).end());
  const env = { ...place.env, LANEKEEPER_NATS_DOWNLOAD_URL: missing.url };
  expect((await failureOf(findServerBinary({ env }))).message).toMatch(/release: .*SHA256SUMS: answered 404/);
  await using silent = await serve(() => {});
  const started = performance.now();
  const failure = await failureOf(
    findServerBinary({ env: { ...env, LANEKEEPER_NATS_DOWNLOAD_URL: silent.url } }),
  );
  expect(failure.message).toMatch(/release: .*SHA256SUMS: no answer within 5 s/);
  expect(performance.now() - started).toBeLessThan(30_000);
});

test("an answer that has come is taken, though the process stood still until its time was up", async () => {
  await using place = await makePlace();
  const release = await makeRelease(place.folder);
  let stoodStill = false;
  await using site = await serve((request, response) => {
    if (!stoodStill) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5_200);
    stoodStill = true;
    release.answer(request, response);
  });
  const env = { ...place.env, LANEKEEPER_NATS_DOWNLOAD_URL: site.url };
  expect(await findServerBinary({ env })).toMatchObject({ version: VERSION, source: "release" });
});

test("NATS_SERVER_BIN wins over everything; if it cannot be used that is an error and nothing else is taken", async () => {
  await using place = await makePlace();
  const chosen = await fakeServer(join(place.folder, "chosen"), "2.12.3");
  const env = { ...place.env, NATS_SERVER_BIN: chosen };
  expect(await findServerBinary({ env })).toEqual({
    path: chosen,
    version: "2.12.3",
    source: "NATS_SERVER_BIN",
  });
  const old = await fakeServer(join(place.folder, "old"), "2.9.10");
  await fakeServer(place.bin, "2.11.0");
  const tooOld = await failureOf(findServerBinary({ env: { ...env, NATS_SERVER_BIN: old } }));
  expect(tooOld.code).toBe("NATS_SERVER_TOO_OLD");
  expect(tooOld.message).toContain(`${old}, a nats-server 2.9.10; 2.10 or later`);
  const gone = await failureOf(findServerBinary({ env: { ...env, NATS_SERVER_BIN: `${old}-gone` } }));
  expect(gone.code).toBe("NATS_SERVER_NOT_FOUND");
  expect(gone.message).toContain(`${old}-gone, which does not run`);
});

test("a server on the PATH is taken unless it is too old, which is told when a later source serves", async () => {
  await using place = await makePlace();
  const fine = await fakeServer(place.bin, "2.11.4");
  expect(await findServerBinary({ env: place.env })).toEqual({
    path: fine,
    version: "2.11.4",
    source: "PATH",
  });
  await fakeServer(place.bin, "2.9.10");
  const cached = await fakeServer(join(place.servers, "2.99.0"), "2.99.0");
  const told: string[] = [];
  const found = await findServerBinary({ env: place.env, onProgress: (line) => told.push(line) });
  expect(found).toEqual({ path: cached, version: "2.99.0", source: "cache" });
  expect(told).toEqual([`skipped: PATH: ${fine} is 2.9.10, older than 2.10`]);
});

test("a line can be asked for, and what is of another line is passed over", async () => {
  await using place = await makePlace();
  await fakeServer(place.bin, "2.15.1");
  const other = await fakeServer(join(place.folder, "chosen"), "2.12.3");
  const cached = await fakeServer(join(place.servers, "2.10.27"), "2.10.27");
  await fakeServer(join(place.servers, "2.10.9"), "2.10.9");
  const env = { ...place.env, NATS_SERVER_BIN: other };
  expect(await findServerBinary({ env, version: "2.10" })).toMatchObject({
    path: cached,
    version: "2.10.27",
  });
});

test("an older cached server serves when nothing newer can be fetched", async () => {
  await using place = await makePlace();
  const cached = await fakeServer(join(place.servers, "2.10.27"), "2.10.27");
  await using missing = await serve((_, response) => response.writeHead(404).end());
  const env = { ...place.env, LANEKEEPER_NATS_DOWNLOAD_URL: missing.url };
  expect(await findServerBinary({ env })).toMatchObject({ path: cached, source: "cache" });
  expect(missing.asked).toHaveLength(1);
});

test("when nothing serves, one error lists everything that was tried with each one's reason", async () => {
  await using place = await makePlace();
  const old = await fakeServer(place.bin, "2.9.10");
  await using missing = await serve((_, response) => response.writeHead(404).end());
  const env = { ...place.env, LANEKEEPER_NATS_DOWNLOAD_URL: missing.url };
  const failure = await failureOf(findServerBinary({ env }));
  expect(failure.code).toBe("NATS_SERVER_TOO_OLD");
  const lines = failure.message.split("\n").filter((line) => line.startsWith("  - "));
  expect(lines.map((line) => /^ {2}- ([\w ]+):/.exec(line)?.[1])).toEqual([
    "NATS_SERVER_BIN",
    "PATH",
    "cache",
    "release",
    "Debian package",
    "cache",
  ]);
  expect(failure.message).toContain(`${old} is 2.9.10, older than 2.10`);
  expect(failure.message).toMatch(/Debian package: .*(apt-config|no Debian archive)/);
  expect(failure.message).toContain("Set NATS_SERVER_BIN");
});

test("startTestServer refuses a server older than 2.10 and names its version", async () => {
  await using place = await makePlace();
  const old = await fakeServer(place.bin, "2.9.10");
  const failure = await failureOf(startTestServer({ binary: old }));
  expect(failure.code).toBe("NATS_SERVER_TOO_OLD");
  expect(failure.message).toContain("2.9.10");
});

test("a real server of the 2.10 line is found or fetched, and runs", { timeout: 240_000 }, async () => {
  const found = await findServerBinary({ version: "2.10" });
  expect(found.version).toMatch(/^2\.10\.\d+$/);
  await using server = await startTestServer({ binary: found.path });
  expect(server.version).toBe(found.version);
});

interface Place extends AsyncDisposable {
  folder: string;
  /** The only folder of the PATH with programs of ours; none with apt. */
  bin: string;
  /** Where the cache keeps servers. */
  servers: string;
  env: NodeJS.ProcessEnv;
}

/** A world without servers: empty cache, and a PATH that has tar but neither apt nor a server. */
async function makePlace(): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), "lanekeeper finding-"));
  const bin = join(folder, "bin");
  await mkdir(bin);
  for (const tool of ["tar", "gzip", "sh"]) {
    const path = execFileSync("/bin/sh", ["-c", `command -v ${tool}`], { encoding: "utf8" }).trim();
    await writeScript(join(bin, tool), `exec ${path} "$@"`);
  }
  return {
    folder,
    bin,
    servers: join(folder, "cache/nats-server"),
    env: { PATH: bin, HOME: folder, LANEKEEPER_CACHE: join(folder, "cache") },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

/** A shell script that says it is a nats-server of that version. */
async function fakeServer(folder: string, version: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  return await writeScript(join(folder, "nats-server"), `echo "nats-server: v${version}"`);
}

async function writeScript(path: string, command: string): Promise<string> {
  await writeFile(path, `#!/bin/sh\n${command}\n`);
  await chmod(path, 0o755);
  return path;
}

/** An archive as NATS publishes it, with a fake server in it, and what a site answers that has it. */
async function makeRelease(folder: string): Promise<{ name: string; answer: RequestListener }> {
  const system = process.platform === "darwin" ? "darwin" : "linux";
  const inner = `nats-server-v${VERSION}-${system}-${process.arch === "arm64" ? "arm64" : "amd64"}`;
  await fakeServer(join(folder, inner), VERSION);
  const name = `${inner}.tar.gz`;
  execFileSync("tar", ["-czf", name, inner], { cwd: folder });
  const bytes = await readFile(join(folder, name));
  const sum = createHash("sha256").update(bytes).digest("hex");
  return {
    name,
    answer: (request, response) => {
      if (request.url?.endsWith("/SHA256SUMS"))
        response.end(`${"1".repeat(64)}  other.tar.gz\n${sum}  ${name}\n`);
      else if (request.url?.endsWith(`/v${VERSION}/${name}`)) response.end(bytes);
      else response.writeHead(404).end();
    },
  };
}

async function serve(answer: RequestListener): Promise<AsyncDisposable & { url: string; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function failureOf(work: Promise<unknown>): Promise<{ code: string; message: string }> {
  const failure = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (failure instanceof Error && failure.name === "LanekeeperError" && "code" in failure) {
    return { code: String(failure.code), message: failure.message };
  }
  throw new Error(`expected a LanekeeperError, got ${String(failure)}`);
}
