/** Acks that the server is to confirm before a lane is given back. */
export class AckConfirmations {
  readonly #open = new Set<Promise<void>>();
  #allConfirmed = true;

  /** Forgets what was before. */
  begin(): void {
    this.#allConfirmed = true;
  }

  /** `confirmation` resolves with whether the server has confirmed it, and does not reject. */
  add(confirmation: Promise<boolean>): void {
    const open = confirmation.then((confirmed) => {
      if (!confirmed) this.#allConfirmed = false;
      this.#open.delete(open);
    });
    this.#open.add(open);
  }

  /** Resolves when every ack has its answer: true when all were confirmed. */
  async all(): Promise<boolean> {
    await Promise.all(this.#open);
    return this.#allConfirmed;
  }
}
