/** Places for what runs at once: so many in all, and so many of one account. */

export class Places {
  private taken = 0;
  private readonly shares = new Map<string, number>();

  constructor(
    private readonly max: number,
    private readonly accountMax: number,
  ) {}

  get size(): number {
    return this.taken;
  }

  /** What comes back gives the place back, once. A word says who has too many. */
  take(accountId: string): (() => void) | "account" | "all" {
    const share = this.shares.get(accountId) ?? 0;
    if (share >= this.accountMax) return "account";
    if (this.taken >= this.max) return "all";
    this.taken += 1;
    this.shares.set(accountId, share + 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.taken -= 1;
      const left = (this.shares.get(accountId) ?? 1) - 1;
      if (left === 0) this.shares.delete(accountId);
      else this.shares.set(accountId, left);
    };
  }
}
