import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const vectorsFile = fileURLToPath(new URL("../vectors.json", import.meta.url));
const guide = readFileSync(new URL("../../../docs/guides/other-languages.md", import.meta.url), "utf8");
const vectors: {
  laneCounts: number[];
  keys: { token: string; lanes: { fnv1a: number[] } }[];
  types: { encoded: string }[];
} = JSON.parse(readFileSync(vectorsFile, "utf8"));

/** What a program must print: per key its token and lanes, per type its tokens. */
const expected = {
  keys: vectors.keys.map(({ token, lanes }) => ({ token, lanes: lanes.fnv1a })),
  types: vectors.types.map(({ encoded }) => encoded),
};

describe("the publishers in docs/guides/other-languages.md agree with vectors.json on every token and lane", () => {
  test.skipIf(!found("python3", "--version"))("Python (skipped where python3 is not found)", () => {
    const printed = runInFolder(
      { "publisher.py": snippet("python", "def lane"), "check.py": PYTHON_CHECK },
      "python3",
      ["check.py", vectorsFile],
    );
    expect(JSON.parse(printed)).toEqual(expected);
  });

  test.skipIf(!found("go", "version"))(
    "Go (skipped where go is not found)",
    () => {
      const printed = runInFolder(
        {
          "go.mod": "module check\n\ngo 1.19\n",
          "lanes/lanes.go": snippet("go", "func Lane"),
          "main.go": GO_CHECK,
        },
        "go",
        ["run", ".", vectorsFile],
      );
      expect(JSON.parse(printed)).toEqual(expected);
    },
    300_000,
  );
});

const PYTHON_CHECK = `
import json, sys
from publisher import lane, token

vectors = json.load(open(sys.argv[1], encoding="utf-8"))
print(json.dumps({
    "keys": [{"token": token(v["key"]), "lanes": [lane(v["key"], n) for n in vectors["laneCounts"]]} for v in vectors["keys"]],
    "types": [".".join(token(part) for part in v["type"].split(".")) for v in vectors["types"]],
}))
`;

const GO_CHECK = `
package main

import (
	"check/lanes"
	"encoding/json"
	"os"
	"strings"
)

type key struct {
	Token string   \`json:"token"\`
	Lanes []uint32 \`json:"lanes"\`
}

func main() {
	var vectors struct {
		LaneCounts []uint32
		Keys       []struct{ Key string }
		Types      []struct{ Type string }
	}
	text, err := os.ReadFile(os.Args[1])
	if err == nil {
		err = json.Unmarshal(text, &vectors)
	}
	if err != nil {
		panic(err)
	}
	var out struct {
		Keys  []key    \`json:"keys"\`
		Types []string \`json:"types"\`
	}
	for _, v := range vectors.Keys {
		k := key{Token: lanes.Token(v.Key)}
		for _, n := range vectors.LaneCounts {
			k.Lanes = append(k.Lanes, lanes.Lane(v.Key, n))
		}
		out.Keys = append(out.Keys, k)
	}
	for _, v := range vectors.Types {
		parts := strings.Split(v.Type, ".")
		for i := range parts {
			parts[i] = lanes.Token(parts[i])
		}
		out.Types = append(out.Types, strings.Join(parts, "."))
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		panic(err)
	}
}
`;

/** The guide's code block in a language that has the text. */
function snippet(language: string, text: string): string {
  const blocks = [...guide.matchAll(/^```(\w+)\n(.*?)^```$/gms)];
  const block = blocks.find(([, name, code]) => name === language && code?.includes(text))?.[2];
  if (block === undefined) throw new Error(`the guide has no ${language} block with ${text}`);
  return block;
}

function found(command: string, versionArgument: string): boolean {
  return spawnSync(command, [versionArgument]).status === 0;
}

/** Runs a command in a new folder with these files and returns what it printed; a failure shows its stderr. */
function runInFolder(files: Record<string, string>, command: string, args: string[]): string {
  const folder = mkdtempSync(join(tmpdir(), "lanekeeper-languages-"));
  try {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
    const environment = {
      ...process.env,
      PYTHONIOENCODING: "utf-8",
      GOFLAGS: "-mod=mod",
      GOTOOLCHAIN: "local",
    };
    const result = spawnSync(command, args, {
      cwd: folder,
      encoding: "utf8",
      env: environment,
      timeout: 280_000,
      maxBuffer: 64 << 20,
    });
    if (result.status !== 0) throw new Error(`${command} failed: ${result.error ?? result.stderr}`);
    return result.stdout;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
