/** A date and time of ISO 8601 with its offset; without one, two of them could not be compared. */
const ISO_INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}([.,](?<fraction>\d+))?)?(Z|[+-]\d{2}:?\d{2})$/i;
const DECIMAL = /^-?\d+(\.\d+)?$/;

export interface OrderValue {
  /** What is compared. */
  readonly value: number;
  /** A whole number, and no date: one more each time leaves nothing out. */
  readonly counts: boolean;
}

/**
 * The value of an order field, made comparable.
 *
 * Takes numbers, strings that spell one, and dates and times of ISO 8601 with an offset (as milliseconds; digits
 * beyond the third of a second count).
 *
 * @returns in words what is wrong, if it is none of these
 */
export function orderValue(value: unknown): OrderValue | string {
  if (typeof value === "number") return exactly(value, value);
  if (typeof value === "string" && DECIMAL.test(value)) return exactly(Number(value), value);
  const instant = typeof value === "string" ? ISO_INSTANT.exec(value) : null;
  if (instant !== null) {
    const milliseconds = Date.parse(instant[0].replace(",", "."));
    // Date keeps three digits of a second; two events in one millisecond may still differ in the fourth.
    const finer = Number(`0.${(instant.groups?.["fraction"] ?? "").slice(3) || "0"}`);
    if (!Number.isNaN(milliseconds)) return { value: milliseconds + finer, counts: false };
  }
  return `is ${show(value)}: it must be a number, or a date and time such as "2026-05-01T09:30:00Z"`;
}

function exactly(number: number, given: number | string): OrderValue | string {
  if (Number.isInteger(number) && !Number.isSafeInteger(number)) {
    return `is ${given}: whole numbers above ${Number.MAX_SAFE_INTEGER} cannot be compared exactly`;
  }
  return { value: number, counts: Number.isInteger(number) };
}

function show(value: unknown): string {
  if (value === undefined) return "missing";
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
