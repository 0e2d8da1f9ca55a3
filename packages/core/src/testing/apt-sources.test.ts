import { expect, test } from "vitest";
import { parseDeb822, parseOneLine } from "./apt-sources.js";
import { debianMirrors } from "./debian-package.js";

test("one-line sources: options, comments and source code", () => {
  const text = `
# deb http://off.example/debian bookworm main
deb http://mirror.example/debian bookworm main contrib # ours
deb [ arch=amd64 signed-by=/keys/a.gpg ] https://other.example/x stable main
deb-src http://mirror.example/debian bookworm main
`;
  expect(parseOneLine(text)).toEqual([
    { uri: "http://mirror.example/debian", suites: ["bookworm"], components: ["main", "contrib"] },
    { uri: "https://other.example/x", suites: ["stable"], components: ["main"], signedBy: "/keys/a.gpg" },
  ]);
});

test("deb822 sources: several suites and addresses, continuation lines, disabled and inline keys", () => {
  const text = `Types: deb deb-src
# a comment
URIs: http://mirror.example/debian
 http://second.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /keys/debian.gpg

Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main
Enabled: no

Types: deb
URIs: http://inline.example/debian
Suites: sid
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
`;
  const common = {
    suites: ["bookworm", "bookworm-updates"],
    components: ["main"],
    signedBy: "/keys/debian.gpg",
  };
  expect(parseDeb822(text)).toEqual([
    { uri: "http://mirror.example/debian", ...common },
    { uri: "http://second.example/debian", ...common },
    { uri: "http://inline.example/debian", suites: ["sid"], components: ["main"] },
  ]);
});

test("only archives that carry the machine's own release are mirrors, the likeliest first", () => {
  const main = { components: ["main"] };
  const sources = [
    { uri: "http://vendor.example/apt", suites: ["bookworm"], ...main },
    { uri: "http://mirror.example/debian", suites: ["bookworm", "bookworm-updates"], ...main },
    { uri: "http://mirror.example/debian", suites: ["bookworm"], ...main },
    { uri: "http://mirror.example/debian-security", suites: ["bookworm-security"], ...main },
    { uri: "http://docker.example/debian", suites: ["bookworm"], components: ["stable"] },
  ];
  expect(debianMirrors(sources, "bookworm").map((source) => source.uri)).toEqual([
    "http://mirror.example/debian",
    "http://vendor.example/apt",
  ]);
  expect(debianMirrors(sources, undefined)).toEqual([]);
});
