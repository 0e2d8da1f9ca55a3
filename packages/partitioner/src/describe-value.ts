/**
 * Names a value in an error message (R04), without ever calling into it: a `toString` that throws
 * or a 5,000-character string must not make the message worse than the fault.
 * At most about 80 characters, one line.
 */
export function describeValue(value: unknown): string {
  if (value === null) return "null";
  switch (typeof value) {
    case "undefined":
      return "undefined";
    case "string":
      return value === "" ? "the empty string" : quote(value);
    case "number":
      return Number.isNaN(value) ? "NaN" : `the number ${value}`;
    case "bigint":
      return `the bigint ${quote(value.toString()).slice(1, -1)}n`;
    case "boolean":
      return `the boolean ${value}`;
    case "object":
      return describeObject(value);
    default:
      return `a ${typeof value}`;
  }
}

/** A string as one JSON line: control characters and lone surrogates escaped, cut after 40 characters. */
export function quote(text: string): string {
  return text.length <= SHOWN ? JSON.stringify(text) : `${JSON.stringify(text.slice(0, SHOWN))}…`;
}

const SHOWN = 40;

function describeObject(value: object): string {
  try {
    const name: unknown = Object.getPrototypeOf(value)?.constructor?.name;
    if (typeof name === "string" && name !== "" && name !== "Object")
      return `a ${name.slice(0, SHOWN)} object`;
  } catch {
    // A proxy or a getter that throws: its class stays unknown.
  }
  return "an object";
}
