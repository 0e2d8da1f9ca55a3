import { jetstreamManager } from "@nats-io/jetstream";
import { settlementsByGroup } from "../harness/checkers/settlements.js";
import { type LaneScene, SCENE_GROUP, SCENE_STREAM } from "../harness/lane-scene.js";

/** What there is of the lanes that stand still, for whoever has to find out why: claims, consumers, members. */
export async function describeStandstill(scene: LaneScene): Promise<string> {
  const settled = settlementsByGroup(scene.history.read()).get(SCENE_GROUP);
  const open = (await scene.stored()).filter(({ seq }) => !settled?.has(seq));
  const lanes = new Set(open.map(({ lane }) => lane));
  const lines = [`not handled: ${open.length} events, of lanes ${[...lanes].join(", ")}`];
  const manager = await jetstreamManager(scene.connection, { checkAPI: false });
  const bucket = `KV_lanekeeper_${SCENE_STREAM}`;
  const { state } = await manager.streams.info(bucket, { subjects_filter: ">" });
  for (const subject of Object.keys(state.subjects ?? {})) {
    const lane = /\.lane\.1\.(\d+)$/.exec(subject)?.[1];
    if (lane !== undefined && !lanes.has(Number(lane))) continue;
    const message = await manager.streams.getMessage(bucket, { last_by_subj: subject });
    lines.push(`${subject} at ${message?.time.toISOString()}: ${message?.string()}`);
  }
  for await (const info of manager.consumers.list(SCENE_STREAM)) {
    const lane = /-g1-(\d+)-e\d+$/.exec(info.name)?.[1];
    if (lane === undefined || !lanes.has(Number(lane))) continue;
    const { delivered, ack_floor, num_ack_pending, num_pending, num_waiting } = info;
    lines.push(
      `${info.name}: delivered ${delivered.consumer_seq} up to ${delivered.stream_seq}, floor ${ack_floor.stream_seq}, ` +
        `unacked ${num_ack_pending}, pending ${num_pending}, pulls ${num_waiting}`,
    );
  }
  return lines.join("\n");
}
