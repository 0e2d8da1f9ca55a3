import Database from "libsql";

export type { Database };

const BUSY_MS = 10_000;
const AGAIN_MS = 10;

/**
 * Opens an SQLite file that several processes write to.
 *
 * WAL lets readers and one writer work side by side; a writer that finds another one at work waits up to 10 s for
 * it. `synchronous = NORMAL` is what a projection needs: after a power cut it may lack its newest rows, and never
 * has half of one. The stream holds the events, so what is lacking can be built again by rewinding the group.
 */
export function openDatabase(file: string): Database.Database {
  const database = new Database(file, { timeout: BUSY_MS });
  useWal(database);
  database.pragma("synchronous = NORMAL");
  return database;
}

/**
 * Runs `work` as one transaction and takes the write lock first: a transaction that reads before it writes would
 * fail if another process wrote in between. Keep it short, as all other writers wait meanwhile.
 */
export function inTransaction<T>(database: Database.Database, work: () => T): T {
  database.exec("BEGIN IMMEDIATE");
  try {
    const result = work();
    database.exec("COMMIT");
    return result;
  } catch (error) {
    if (database.inTransaction) database.exec("ROLLBACK");
    throw error;
  }
}

/**
 * Does nothing to a file in WAL already. The switch itself begins by reading, and SQLite refuses at once to make a
 * writer of a reader while another one writes, however long the timeout: so processes that open a new file together
 * have to try again.
 */
function useWal(database: Database.Database): void {
  const deadline = performance.now() + BUSY_MS;
  for (;;) {
    try {
      database.pragma("journal_mode = WAL");
      return;
    } catch (error) {
      if (!isBusy(error) || performance.now() >= deadline) throw error;
      // Opening is synchronous, and so is the pause.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, AGAIN_MS);
    }
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && "code" in error && String(error.code).startsWith("SQLITE_BUSY");
}
