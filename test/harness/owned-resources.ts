/** What one owner has to dispose of, newest first. Node 20 has no AsyncDisposableStack. */
export class OwnedResources implements AsyncDisposable {
  readonly #releases: (() => unknown)[] = [];

  /** Takes it over and returns it. */
  own<T extends AsyncDisposable | Disposable>(resource: T): T {
    this.#releases.push(() =>
      Symbol.asyncDispose in resource ? resource[Symbol.asyncDispose]() : resource[Symbol.dispose](),
    );
    return resource;
  }

  defer(release: () => unknown): void {
    this.#releases.push(release);
  }

  /** Releases everything though some of it fails, then throws the first failure. */
  async [Symbol.asyncDispose](): Promise<void> {
    const failures: unknown[] = [];
    for (let release = this.#releases.pop(); release !== undefined; release = this.#releases.pop()) {
      try {
        await release();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
