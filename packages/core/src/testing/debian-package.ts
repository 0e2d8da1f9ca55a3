import { mkdir, readdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type AptSource, readAptSources } from "./apt-sources.js";
import { keepServer, withPrivateFolder } from "./cache-folder.js";
import { runCommand } from "./run-command.js";
import { isSupported, matchesVersion, readServerVersion } from "./server-version.js";

const ARCHIVE_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";
/** For everything together; a single program of it may take what is left. */
const TOTAL_MS = 180_000;
const MAX_MIRRORS = 3;

/** The newest server is in the first; `stable` comes first when an older line is asked for. */
const NEWEST_FIRST = ["testing", "unstable", "stable"];
const OLDER_FIRST = ["stable", "trixie", "testing", "unstable"];

/**
 * Fetches Debian's nats-server package of another suite into the cache, and installs nothing: apt downloads it by
 * a source list, package lists and a cache of its own, from the archive the machine already uses, checks the
 * archive's signature with the keyring that is already there, and dpkg-deb unpacks it. Works without root.
 *
 * @param wanted a line or version; undefined for the newest.
 * @param aptFolder whose source lists tell the archive's address.
 * @throws Error with the reason of each mirror and suite, after three minutes at most.
 */
export async function getDebianPackage(
  wanted: string | undefined,
  env: NodeJS.ProcessEnv,
  onProgress: (line: string) => void,
  aptFolder = "/etc/apt",
): Promise<{ path: string; version: string }> {
  const mirrors = debianMirrors(await readAptSources(aptFolder), await codename());
  if (mirrors.length === 0) throw new Error(`no Debian archive among the sources in ${aptFolder}`);
  const deadlineAt = performance.now() + TOTAL_MS;
  const reasons: string[] = [];
  for (const mirror of mirrors.slice(0, MAX_MIRRORS)) {
    for (const suite of wanted === undefined ? NEWEST_FIRST : OLDER_FIRST) {
      onProgress(`getting nats-server from Debian's ${suite} suite`);
      try {
        return await withPrivateFolder(env, (folder) =>
          getFromSuite({ mirror, suite, wanted, folder, env, deadlineAt }),
        );
      } catch (error) {
        reasons.push(`${suite}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  }
  throw new Error(reasons.join("; "));
}

/** The sources that hold the machine's own Debian release; a repository of somebody else fails its signature later. */
export function debianMirrors(sources: readonly AptSource[], release: string | undefined): AptSource[] {
  if (release === undefined) return [];
  const names = [release, "stable", "testing", "unstable", "sid"];
  const found = sources.filter(
    (source) => source.components.includes("main") && source.suites.some((suite) => names.includes(suite)),
  );
  const isArchive = (source: AptSource): number => (/\/debian\/?$/.test(source.uri) ? 0 : 1);
  return found
    .filter((source, index) => found.findIndex((other) => other.uri === source.uri) === index)
    .sort((a, b) => isArchive(a) - isArchive(b));
}

interface SuiteRequest {
  mirror: AptSource;
  suite: string;
  wanted: string | undefined;
  folder: string;
  env: NodeJS.ProcessEnv;
  /** Of `performance.now()`. */
  deadlineAt: number;
}

async function getFromSuite(request: SuiteRequest): Promise<{ path: string; version: string }> {
  const { wanted, folder, env } = request;
  const plainEnv = { ...env, LC_ALL: "C" };
  const machine = await run(request, plainEnv, "apt-config", ["dump"]);
  const aptEnv = { ...plainEnv, APT_CONFIG: await writeAptConfig(request, machine) };

  await run(request, aptEnv, "apt-get", ["update"]);
  const record = await run(request, aptEnv, "apt-cache", ["show", "--no-all-versions", "nats-server"]);
  const offered = /^Version: (?:\d+:)?([^\s-]+)/m.exec(record)?.[1] ?? "none";
  if (wanted !== undefined && !matchesVersion(offered, wanted)) throw new Error(`has nats-server ${offered}`);
  if (!isSupported(offered)) throw new Error(`has nats-server ${offered}, which is too old`);

  await run(request, aptEnv, "apt-get", ["download", "nats-server"]);
  const archive = (await readdir(folder)).find((name) => name.endsWith(".deb"));
  if (archive === undefined) throw new Error("apt-get download left no package");
  await run(request, aptEnv, "dpkg-deb", ["-x", archive, "unpacked"]);
  const unpacked = await firstFile([
    join(folder, "unpacked/usr/sbin/nats-server"),
    join(folder, "unpacked/usr/bin/nats-server"),
  ]);
  const version = await readServerVersion(unpacked);
  const finished = join(folder, "finished");
  await mkdir(finished);
  await rename(unpacked, join(finished, "nats-server"));
  return { path: await keepServer(env, finished, version), version };
}

function run(
  request: SuiteRequest,
  env: NodeJS.ProcessEnv,
  program: string,
  args: string[],
): Promise<string> {
  const timeoutMs = Math.max(1, request.deadlineAt - performance.now());
  return runCommand(program, args, { cwd: request.folder, env, timeoutMs });
}

/**
 * Everything that apt would read or write on the machine is replaced, but for how it reaches the network.
 *
 * @param machine the machine's own configuration, as `apt-config dump` writes it.
 */
async function writeAptConfig({ mirror, suite, folder }: SuiteRequest, machine: string): Promise<string> {
  for (const name of ["lists/partial", "cache/archives/partial"])
    await mkdir(join(folder, name), { recursive: true });
  const keyring = mirror.signedBy ?? (await firstFile([ARCHIVE_KEYRING]).catch(() => undefined));
  const signedBy = keyring === undefined ? "" : `[signed-by=${keyring}] `;
  await writeFile(join(folder, "sources.list"), `deb ${signedBy}${mirror.uri} ${suite} main\n`);
  await writeFile(join(folder, "status"), "");
  const config = [
    // Proxies, certificates and clock settings; not the hooks, nor anything that would loosen signatures.
    ...machine.split("\n").filter((line) => /^Acquire::(https?|socks|Proxy|Check-|By-Hash)/i.test(line)),
    'Dir::Etc::main "/dev/null";',
    'Dir::Etc::parts "/dev/null";',
    'Dir::Etc::preferences "/dev/null";',
    'Dir::Etc::preferencesparts "/dev/null";',
    'Dir::Etc::sourceparts "/dev/null";',
    `Dir::Etc::sourcelist "${folder}/sources.list";`,
    `Dir::State::lists "${folder}/lists";`,
    `Dir::State::status "${folder}/status";`,
    `Dir::Cache "${folder}/cache";`,
    'Dir::Cache::pkgcache "";',
    'Dir::Cache::srcpkgcache "";',
    'APT::Get::AllowUnauthenticated "false";',
    'APT::Update::Error-Mode "any";',
    // The cache folder is the user's own, where apt's sandbox user may not write.
    'APT::Sandbox::User "root";',
    'Acquire::AllowInsecureRepositories "false";',
    'Acquire::Languages "none";',
    'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";',
    'Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";',
    'Acquire::Retries "1";',
    'Acquire::http::Timeout "20";',
    'Acquire::https::Timeout "20";',
  ];
  const path = join(folder, "apt.conf");
  await writeFile(path, `${config.join("\n")}\n`, { mode: 0o600 });
  return path;
}

/** `bookworm` and so on; undefined where the machine does not run Debian. */
async function codename(): Promise<string | undefined> {
  const release = await readFile("/etc/os-release", "utf8").catch(() => "");
  if (!/^ID=["']?debian["']?\s*$/m.test(release)) return undefined;
  return /^VERSION_CODENAME=["']?([\w-]+)/m.exec(release)?.[1] ?? "unstable";
}

async function firstFile(paths: readonly string[]): Promise<string> {
  for (const path of paths)
    if (
      await stat(path).then(
        (found) => found.isFile(),
        () => false,
      )
    )
      return path;
  throw new Error(`${paths.join(" and ")} ${paths.length > 1 ? "are" : "is"} not there`);
}
