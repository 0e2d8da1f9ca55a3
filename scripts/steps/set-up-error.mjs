/** Set-up cannot go on; the message says why and what to do, and is all that is printed. */
export class SetUpError extends Error {}

/** Prints what ended a script: the message alone when it was foreseen. */
export function printFailure(error) {
  console.error(error instanceof SetUpError ? error.message : error);
}
