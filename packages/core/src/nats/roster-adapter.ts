import type { NatsConnection } from "@nats-io/nats-core";
import type { RosterPort, WorkerReport } from "../runtime/roster-port.js";

const encoder = new TextEncoder();

/** Workers answer on `lanekeeper.workers.<stream>.<group>`. */
export function rosterAdapter(connection: NatsConnection, stream: string): RosterPort {
  const subject = (group: string) => `lanekeeper.workers.${stream}.${group}`;
  return {
    answer(group, report) {
      const subscription = connection.subscribe(subject(group), {
        callback: (error, message) => {
          if (!error) message.respond(encoder.encode(JSON.stringify(report())));
        },
      });
      return () => {
        if (!subscription.isClosed()) subscription.unsubscribe();
      };
    },
    async ask(group) {
      const reports: WorkerReport[] = [];
      try {
        const answers = await connection.requestMany(subject(group), "", {
          strategy: "stall",
          stall: 250,
          maxWait: 1_000,
        });
        for await (const answer of answers) {
          if (answer.data.length > 0) reports.push(answer.json<WorkerReport>());
        }
      } catch {
        // Nobody is there to answer, or this user may not ask: then nothing is known of live workers.
      }
      return reports.sort((a, b) => (a.id < b.id ? -1 : 1));
    },
  };
}
