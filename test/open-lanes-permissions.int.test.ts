import { readFileSync } from "node:fs";
import {
  LanekeeperError,
  type Lanes,
  type LanesOptions,
  type LaneWorker,
  type Notification,
  openLanes,
} from "@lanekeeper/core";
import { startTestServer, type TestServer } from "@lanekeeper/core/testing";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { awaitCondition, within } from "./harness/await-condition.js";

/** Only a fault takes that long, on however busy a machine. */
const WAIT_MS = 20_000;
/** What a missing right leads to is told long before waits, and questions asked again (15 s), are over. */
const QUICKLY_MS = 12_000;

interface Permissions {
  publish: string[];
  subscribe: string[];
}

/** The lists of docs/guides/permissions.md, read out of it so that they cannot come apart. */
const guide = readFileSync(new URL("../docs/guides/permissions.md", import.meta.url), "utf8");

function listed(role: string): Permissions {
  const block = new RegExp(`\\{ user: ${role},[\\s\\S]*?permissions: \\{([\\s\\S]*?)\\n {2}\\} \\}`).exec(
    guide,
  )?.[1];
  if (block === undefined) throw new Error(`the guide has no user ${role}`);
  const of = (what: string) =>
    [...(new RegExp(`${what}: \\[([\\s\\S]*?)\\]`).exec(block)?.[1] ?? "").matchAll(/"([^"]+)"/g)].map(
      ([, subject]) => subject ?? "",
    );
  return { publish: of("publish"), subscribe: of("subscribe") };
}

/** What the guide adds for an owner that creates the bucket. */
const bucketRights = [...(/is to create the bucket.*/.exec(guide)?.[0] ?? "").matchAll(/`(\$JS[^`]+)`/g)].map(
  ([, subject]) => subject ?? "",
);

/** An owner and creator of a stream of its own. */
function makerRights(stream: string, without?: string): Permissions {
  const { publish, subscribe } = listed("owner");
  const all = [...publish, ...listed("creator").publish, ...bucketRights].filter((one) => one !== without);
  const of = (subjects: string[]) => subjects.map((one) => one.replace("ORDERS", stream));
  return { publish: of(all), subscribe: of(subscribe) };
}

const roles = ["publisher", "worker", "starter", "owner", "operator", "creator"] as const;
type Role = (typeof roles)[number];

/** Every subject a role may publish to, taken away one at a time. */
const without = roles.flatMap((role) =>
  listed(role).publish.map((subject) => ({
    user: `${role}-without-${listed(role).publish.indexOf(subject)}`,
    role,
    subject,
  })),
);

/** A creator makes a stream of its own instead of ORDERS. */
function ownStream(user: string, role: Role, { publish, subscribe }: Permissions): Permissions {
  if (role !== "creator") return { publish, subscribe };
  return { publish: publish.map((subject) => subject.replace("ORDERS", user)), subscribe };
}

let server: TestServer;
let admin: NatsConnection;

beforeAll(async () => {
  const user = (name: string, { publish, subscribe }: Permissions) =>
    `{ user: ${JSON.stringify(name)}, password: x, permissions: { publish: ${JSON.stringify(publish)}, subscribe: ${JSON.stringify(subscribe)} } }`;
  // Answers to pull requests come to their numbers, those to other requests to longer names.
  const pulls = Array.from({ length: 50 }, (_, number) => `_INBOX.*.${number}`);
  const users = [
    "{ user: admin, password: x }",
    ...roles.map((role) => user(role, ownStream(role, role, listed(role)))),
    ...without.map(({ user: name, role, subject }) => {
      const { publish, subscribe } = listed(role);
      const left = { publish: publish.filter((one) => one !== subject), subscribe };
      return user(name, ownStream(name, role, left));
    }),
    user("MADE", makerRights("MADE")),
    ...bucketRights.map((right, index) => user(`MADE${index}`, makerRights(`MADE${index}`, right))),
    user("deaf", { publish: [">"], subscribe: ["orders.>"] }),
    `{ user: unheard, password: x, permissions: { publish: ">", subscribe: { allow: ">", deny: ${JSON.stringify(pulls)} } } }`,
  ];
  server = await startTestServer({
    config: `authorization { users: [ ${users.join("\n")} ] }`,
    connect: { user: "admin", pass: "x" },
  });
  admin = await connect({ servers: server.url, user: "admin", pass: "x" });
  const lanes = await openLanes(admin, { stream: "ORDERS", create: { subject: "orders", lanes: 4 } });
  // The bucket is there, as where some group has owned lanes.
  const owner = await lanes.work({ group: "first" }, () => {});
  await owner.close();
  await lanes.close();
});
afterAll(async () => {
  await admin.close();
  await server[Symbol.asyncDispose]();
});

interface As extends AsyncDisposable {
  lanes: Lanes<Record<string, unknown>>;
  connection: NatsConnection;
  denied: string[];
}

async function as(user: string, options: Partial<LanesOptions> = {}): Promise<As> {
  const connection = await connect({ servers: server.url, user, pass: "x" });
  const denied: string[] = [];
  void (async () => {
    for await (const event of connection.status())
      if (event.type === "error") denied.push(event.error.message);
  })();
  try {
    const lanes = await within(openLanes(connection, { stream: "ORDERS", ...options }), WAIT_MS, "openLanes");
    return {
      lanes,
      connection,
      denied,
      async [Symbol.asyncDispose]() {
        await lanes.close();
        await connection.close();
      },
    };
  } catch (error) {
    await connection.close();
    throw error;
  }
}

async function publishOne(own: As, key = "K"): Promise<number> {
  const publisher = own.lanes.publisher({ timeoutMs: 15_000 });
  return (await publisher.publish({ key, type: "created", data: 1 })).seq;
}

/** Makes the group's consumers, which some may not. */
async function makeGroup(group: string): Promise<void> {
  await using boss = await as("admin");
  await (await boss.lanes.work({ group, assignment: "shared" }, () => {})).close();
}

/** What may be told whatever the rights are: of an owner's lanes, and of a process or server that stood still. */
const whatever = {
  shared: ["loop-blocked", "fenced", "unhealthy", "healthy"],
  owned: [
    ...["loop-blocked", "fenced", "unhealthy", "healthy"],
    ...["lane-claimed", "lane-released", "rewound", "overlap-possible"],
  ],
};

async function workSome(
  own: As,
  group: string,
  assignment: "owned" | "shared" = "shared",
  also: (worker: LaneWorker, told: readonly Notification[]) => Promise<void> = async () => {},
): Promise<void> {
  const seen: number[] = [];
  const told: Notification[] = [];
  const worker = await within(
    own.lanes.work(
      { group, assignment, onNotification: (notification) => told.push(notification) },
      ({ seq }) => void seen.push(seq),
    ),
    WAIT_MS,
    "work()",
  );
  await using boss = await as("admin");
  const seqs = [await publishOne(boss), await publishOne(boss)];
  const until = (what: string, condition: () => boolean | Promise<boolean>) =>
    awaitCondition(
      () => {
        const { error } = worker.status();
        if (isDenied(error)) throw error;
        return condition();
      },
      { what, timeoutMs: WAIT_MS },
    );
  await until("both events of one lane to be handled", () => seqs.every((seq) => seen.includes(seq)));
  await until("the last ack", async () => (await boss.lanes.group(group).status()).inFlight === 0);
  expect(await rosterOf(boss, group, own)).toEqual([worker.id]);
  await also(worker, told);
  await worker.close();
  expect(told.filter(({ type, error }) => isDenied(error) || !whatever[assignment].includes(type))).toEqual(
    [],
  );
}

function isDenied(error: LanekeeperError | undefined): boolean {
  return error?.code === "PERMISSION_DENIED";
}

function refuseDenied({ denied: [first] }: As): void {
  if (first !== undefined) throw new Error(first);
}

/** The ids of the group's workers, as `asking` sees them, once there are any; whoever is late to answer is not seen. */
async function rosterOf(asking: As, group: string, answering: As): Promise<string[]> {
  return await awaitCondition(
    async () => {
      const { workers } = await asking.lanes.group(group).status();
      if (workers.length > 0) return workers.map(({ id }) => id);
      refuseDenied(asking);
      refuseDenied(answering);
      return undefined;
    },
    { what: "the worker to answer", timeoutMs: WAIT_MS },
  );
}

/** An owner's other doings: rewinds after a new connection, hand-over to and from another worker. */
async function ownSome(own: As, group: string): Promise<void> {
  await workSome(own, group, "owned", async (worker, told) => {
    const until = (what: string, condition: () => boolean) =>
      awaitCondition(
        () => {
          refuseDenied(own);
          return condition();
        },
        { what, timeoutMs: WAIT_MS },
      );
    const rewound = () => new Set(told.filter(({ type }) => type === "rewound").map(({ lane }) => lane));
    await until("all lanes to be claimed", () => worker.lanes().length === 4);
    await own.connection.reconnect();
    await until("every lane to be rewound", () => rewound().size === 4);
    const second = await own.lanes.work({ group }, () => {});
    await until("half of the lanes to be given back", () => worker.lanes().length === 2);
    await until("them to be taken up", () => second.lanes().length === 2);
    await second.close();
    await until("them to come back", () => worker.lanes().length === 4);
  });
  refuseDenied(own);
}

/** What a worker asks when an event has blocked its lane: whether it is still there. */
async function lookAtEvent({ connection }: As): Promise<void> {
  await connection.request("$JS.API.STREAM.MSG.GET.ORDERS", '{"seq":1}', { timeout: 10_000 });
}

async function create(user: string): Promise<void> {
  const manager = await jetstreamManager(admin);
  const options = { stream: user, create: { subject: user, lanes: 2 } };
  await manager.streams.add({ name: user, subjects: [`old.${user}`] });
  await using _layout = await as(user, options);
  await manager.streams.delete(user);
  await using _stream = await as(user, options);
}

const duties: Record<Exclude<Role, "creator">, (own: As, group: string) => Promise<void>> = {
  publisher: async (own) => {
    await publishOne(own);
  },
  worker: async (own, group) => {
    await makeGroup(group);
    await workSome(own, group);
    await lookAtEvent(own);
  },
  starter: async (own, group) => {
    await workSome(own, group);
    await lookAtEvent(own);
    const longer = await own.lanes.work({ group, assignment: "shared", ackWaitMs: 60_000 }, () => {});
    await longer.close();
  },
  owner: async (own, group) => {
    await ownSome(own, group);
    await lookAtEvent(own);
  },
  operator: async (own, group) => {
    await using boss = await as("admin");
    for (const assignment of ["shared", "owned"] as const) {
      const worker = await boss.lanes.work({ group, assignment }, () => {});
      await publishOne(boss);
      expect(await rosterOf(own, group, boss)).toEqual([worker.id]);
      await own.lanes.group(group).caughtUp({ signal: AbortSignal.timeout(WAIT_MS) });
      await worker.close();
      expect(await own.lanes.groups()).toContain(group);
      await own.lanes.group(group).rewind("all");
      await own.lanes.group(group).delete();
      expect(await own.lanes.groups()).not.toContain(group);
    }
    refuseDenied(own);
  },
};

test.each(roles)(
  "the guide's rights for %s are enough, and nothing is refused",
  { timeout: 120_000 },
  async (role) => {
    if (role === "creator") return await create(role);
    await using own = await as(role);
    await duties[role](own, `with-${role}`);
    expect(own.denied).toEqual([]);
  },
);

test.each(without)(
  "the guide's rights for $role are no more than needed: without $subject its duties fail, typed and quickly",
  { timeout: 120_000 },
  async ({ user, role }) => {
    const duty = async () => {
      if (role === "creator") return await create(user);
      await using own = await as(user);
      await duties[role](own, user);
    };
    const at = performance.now();
    const error = await duty().then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeDefined();
    if (LanekeeperError.is(error)) {
      expect(error.code).toBe("PERMISSION_DENIED");
      expect(performance.now() - at).toBeLessThan(QUICKLY_MS);
    } else {
      // Told by the connection, as the duty goes on without: what fails is not a wait that is over.
      expect(String(error)).toContain("Permissions Violation");
    }
  },
);

test("the guide's rights to create a bucket are enough for an owner that makes stream and bucket, and each is needed", async () => {
  const make = async (user: string) => {
    const connection = await connect({ servers: server.url, user, pass: "x" });
    try {
      const create = { subject: user.toLowerCase(), lanes: 2 };
      await using lanes = await openLanes(connection, { stream: user, create });
      const worker = await lanes.work({ group: "first" }, () => {});
      await awaitCondition(() => worker.lanes().length === 2, { what: "both lanes to be claimed" });
    } finally {
      await connection.close();
    }
  };
  await make("MADE");
  expect(bucketRights).toHaveLength(2);
  for (const index of bucketRights.keys()) {
    await expect(make(`MADE${index}`)).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
  }
});

test("a user without the right to create is told so by openLanes with create and by work() of a new group", async () => {
  const connection = await connect({ servers: server.url, user: "worker", pass: "x" });
  const create = { subject: "new", lanes: 2 };
  await expect(within(openLanes(connection, { stream: "NEW", create }), WAIT_MS, "it")).rejects.toMatchObject(
    {
      code: "PERMISSION_DENIED",
    },
  );
  await connection.close();
  await using own = await as("worker");
  await expect(
    within(
      own.lanes.work({ group: "unknown", assignment: "shared" }, () => {}),
      WAIT_MS,
      "it",
    ),
  ).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
});

test("a publish of the application's own that is refused does not concern the worker on the same connection", async () => {
  await makeGroup("bystander");
  await using own = await as("worker");
  const worker = await own.lanes.work({ group: "bystander", assignment: "shared" }, () => {});
  own.connection.publish("not.allowed", "x");
  await awaitCondition(() => own.denied.length > 0, { what: "the refusal" });
  await own.connection.flush();
  expect(isDenied(worker.status().error)).toBe(false);
  await worker.close();
});

test("a user that may not hear answers is told PERMISSION_DENIED by openLanes, and not after a time-out", async () => {
  await expect(as("deaf")).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
});
