import { describe, expect, test } from "vitest";
import { type StreamSettings, unsafeSettings } from "./stream-rules.js";

describe("settings that break order or lose events unseen", () => {
  const refused: [setting: string, settings: StreamSettings][] = [
    ["max_msgs with discard", { max_msgs: 100 }],
    ["max_msgs with discard", { max_msgs: 100, discard: "old" }],
    ["max_bytes with discard", { max_bytes: 100, discard: "old" }],
    ["max_msgs_per_subject", { max_msgs_per_subject: 1, discard: "new" }],
    ["allow_rollup_hdrs", { allow_rollup_hdrs: true }],
    ["allow_msg_ttl", { allow_msg_ttl: true }],
    ["subject_delete_marker_ttl", { subject_delete_marker_ttl: 1e9 }],
    ["allow_msg_counter", { allow_msg_counter: true }],
    ["no_ack", { no_ack: true }],
    ["persist_mode", { persist_mode: "async" }],
    ["mirror", { mirror: { name: "OTHER" } }],
    ["sources", { sources: [{ name: "OTHER" }] }],
    ["consumer_limits.inactive_threshold", { consumer_limits: { inactive_threshold: 1e9 } }],
    ["max_consumers 7", { max_consumers: 7 }],
  ];

  test.each(refused)("%s: refused, with what to do about it", (setting, settings) => {
    const reasons = unsafeSettings(settings, 8);
    expect(reasons).toHaveLength(1);
    expect(reasons[0]).toContain(setting);
    expect(reasons[0]?.length).toBeGreaterThan(setting.length + 20);
  });

  test("all reasons are given at once", () => {
    const all: StreamSettings = Object.assign({}, ...refused.map(([, settings]) => settings));
    expect(unsafeSettings({ ...all, discard: "old" }, 8)).toHaveLength(13);
  });
});

describe("settings that are fit for lanes", () => {
  const fit: StreamSettings[] = [
    {},
    { retention: "workqueue" },
    { retention: "interest" },
    { max_msgs: -1, max_bytes: -1, max_msgs_per_subject: -1, max_consumers: -1, discard: "old" },
    { max_msgs: 0, subject_delete_marker_ttl: 0, consumer_limits: {}, sources: [], persist_mode: "default" },
    { max_msgs: 100, max_bytes: 1_000, discard: "new" },
    { max_consumers: 8 },
  ];

  test.each(fit)("R12: %j", (settings) => {
    expect(unsafeSettings(settings, 8)).toEqual([]);
  });
});
