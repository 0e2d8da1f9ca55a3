import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import * as partitioner from "./index.js";

const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
const code = /^```ts\n(.*?)^```$/ms.exec(readme)?.[1] ?? "";
const layout = /^const layout = (.*) as const;$/m.exec(code)?.[1] ?? "undefined";
const examples = [...code.matchAll(/^(\S.*); \/\/ (.*)$/gm)].map(([, expression, result]) => ({
  expression,
  result,
}));

test("the README has examples", () => {
  expect(examples.length).toBeGreaterThanOrEqual(6);
});

test.each(examples)("README: $expression is $result", ({ expression, result }) => {
  expect(evaluate(expression)).toEqual(evaluate(result));
});

function evaluate(expression = ""): unknown {
  const names = Object.keys(partitioner);
  return new Function(...names, `const layout = ${layout}; return (${expression});`)(
    ...Object.values(partitioner),
  );
}
