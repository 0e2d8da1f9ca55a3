/** What must not outlive the demo, however it ends. Disposes in the opposite order of adding. */
export class Cleanup implements AsyncDisposable {
  readonly #held: AsyncDisposable[] = [];
  #begun = false;

  /** @throws if the demo is ending already; the resource is then disposed of at once */
  async add<T extends AsyncDisposable>(resource: T): Promise<T> {
    if (this.#begun) {
      await resource[Symbol.asyncDispose]();
      throw new Error("the demo is ending");
    }
    this.#held.push(resource);
    return resource;
  }

  /** Disposes of all; what fails is told and does not keep the rest from being disposed of. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#begun = true;
    for (let resource = this.#held.pop(); resource !== undefined; resource = this.#held.pop()) {
      try {
        await resource[Symbol.asyncDispose]();
      } catch (error) {
        console.error("cleaning up:", error);
      }
    }
  }
}
