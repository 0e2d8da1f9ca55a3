import fc from "fast-check";
import { expect, test } from "vitest";
import { byteLines } from "./byte-lines.js";

async function* chunked(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Buffer> {
  let from = 0;
  for (let index = 0; from < bytes.length; index++) {
    const size = sizes[index % sizes.length] ?? 1;
    yield bytes.subarray(from, from + size);
    from += size;
  }
}

async function linesOf(
  text: string,
  sizes: readonly number[],
  maxBytes = 1_000,
): Promise<[number, string][]> {
  const lines: [number, string][] = [];
  const tooLong = (line: number): Error => new Error(`line ${line} is too long`);
  for await (const { number, bytes } of byteLines(chunked(Buffer.from(text), sizes), maxBytes, tooLong)) {
    lines.push([number, bytes.toString()]);
  }
  return lines;
}

test("lines are the same however the bytes are cut into chunks", async () => {
  const text = fc.array(fc.constantFrom("\n", "a", "é", "日本", "\r"), { maxLength: 60 });
  const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(text, sizes, async (parts, cut) => {
      const whole = parts.join("");
      const expected = whole.split("\n").map((line, index) => [index + 1, line]);
      if (whole === "" || whole.endsWith("\n")) expected.pop();
      expect(await linesOf(whole, cut)).toEqual(expected);
    }),
  );
});

test("a line may be as long as the limit; one byte more is refused with its number, before it is held", async () => {
  expect(await linesOf("ab\nabcd\n", [3], 4)).toEqual([
    [1, "ab"],
    [2, "abcd"],
  ]);
  await expect(linesOf("ab\nabcde\nab\n", [3], 4)).rejects.toThrow("line 2 is too long");
});
