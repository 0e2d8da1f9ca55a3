/** Something is wrong with what the demo was given: its options or its input. The demo ends with exit code 2. */
export class InputError extends Error {
  override readonly name = "InputError";

  /** @param line the faulty line, from 1, where the fault has one. */
  static at(source: string, line: number, why: string, cause?: unknown): InputError {
    return new InputError(`${source}, line ${line}: ${why}`, { cause });
  }
}
