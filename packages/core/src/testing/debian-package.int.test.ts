import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { getDebianPackage } from "./debian-package.js";

const release = await readFile("/etc/os-release", "utf8").catch(() => "");
const codename = /^ID=debian$/m.test(release) ? /^VERSION_CODENAME=(\S+)/m.exec(release)?.[1] : undefined;

test.skipIf(codename === undefined)(
  "an archive without a valid signature is refused and leaves nothing behind",
  { timeout: 240_000 },
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "lanekeeper-apt-"));
    const asked: string[] = [];
    const archive = createServer((request, response) => {
      asked.push(request.url ?? "");
      const isRelease = /\/(In)?Release$/.test(request.url ?? "");
      response
        .writeHead(isRelease ? 200 : 404)
        .end(isRelease ? "Origin: Debian\nSuite: testing\nCodename: forky\n" : "");
    });
    try {
      await new Promise<void>((resolve) => archive.listen(0, "127.0.0.1", resolve));
      const { port } = archive.address() as AddressInfo;
      await mkdir(join(folder, "apt"));
      await writeFile(
        join(folder, "apt/sources.list"),
        `deb http://127.0.0.1:${port}/debian ${codename} main\n`,
      );
      const cache = join(folder, "cache");
      const env = { ...process.env, LANEKEEPER_CACHE: cache };
      const got = getDebianPackage(undefined, env, () => {}, join(folder, "apt"));
      await expect(got).rejects.toThrow(/testing: apt-get update failed.*(sign|Clearsigned)/i);
      expect(asked).toContain("/debian/dists/testing/InRelease");
      expect(await readdir(join(cache, "nats-server"))).toEqual([]);
    } finally {
      archive.closeAllConnections();
      archive.close();
      await rm(folder, { recursive: true, force: true });
    }
  },
);
