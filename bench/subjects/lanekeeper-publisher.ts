import { openLanes } from "@lanekeeper/core";
import { type BenchEvents, EVENT_TYPE } from "../workload/bench-event.js";
import type { PublishSubject } from "./publish-subject.js";

/** Lanekeeper's publisher, nothing awaited but room in its buffer; every event has a message id of its own. */
export const lanekeeperPublisher: PublishSubject = {
  name: "lanekeeper",
  async publishAll(connection, stream, events) {
    const lanes = await openLanes<BenchEvents>(connection, { stream: stream.name });
    const publisher = lanes.publisher();
    let failure: unknown;
    const failed = (error: unknown) => {
      failure ??= error;
    };
    for (const data of events) {
      await publisher.ready();
      publisher.publish({ key: data.customer, type: EVENT_TYPE, data }).catch(failed);
    }
    await publisher.flush();
    await lanes.close();
    if (failure !== undefined) throw failure;
  },
};
