import Database from "libsql";

export type { Database };

/**
 * Opens an SQLite file that several processes write to.
 *
 * WAL lets readers and one writer work side by side; a writer that finds another one at work waits up to 10 s for
 * it. `synchronous = NORMAL` is what a projection needs: after a power cut it may lack its newest rows, and never
 * has half of one. The stream holds the events, so what is lacking can be built again by rewinding the group.
 */
export function openDatabase(file: string): Database.Database {
  const database = new Database(file, { timeout: 10_000 });
  database.pragma("journal_mode = WAL");
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
