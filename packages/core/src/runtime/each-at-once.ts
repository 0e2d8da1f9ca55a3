import PQueue from "p-queue";

/** Runs for every item, a bounded number at once. Rejects with the first error; what has not begun by then is not run. */
export async function eachAtOnce<T, R>(
  items: readonly T[],
  atOnce: number,
  run: (item: T) => Promise<R>,
): Promise<R[]> {
  const queue = new PQueue({ concurrency: atOnce });
  try {
    return await queue.addAll<R>(items.map((item) => () => run(item)));
  } catch (error) {
    queue.clear();
    throw error;
  }
}
