import { uniformInt } from "pure-rand/distribution/uniformInt";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";

/** Whole milliseconds from 0 to `upTo`, one for each event; the same seed gives the same ones. */
export function randomDurations(messages: number, upTo: number, seed: number): Uint8Array {
  const generator = xoroshiro128plus(seed);
  return Uint8Array.from({ length: messages }, () => uniformInt(generator, 0, upTo));
}
