/** The ledger's high-water mark in a file of the data folder (high-water.ts). */
import { readText, writePrivate } from "../../std/file.ts";
import type { ServerIdentity, Transfer } from "../store.ts";
import type { Mark, MarkFile } from "./high-water.ts";

interface MarkJson {
  readonly server: ServerIdentity | null;
  readonly transfers: readonly (Omit<Transfer, "amount"> & { readonly amount: string })[];
}

export function markFile(path: string): MarkFile {
  return {
    read: async () => {
      const text = await readText(path).catch(() => undefined);
      return text === undefined ? undefined : parsed(text);
    },
    write: async ({ server, transfers }) => {
      const kept: MarkJson = {
        server: server ?? null,
        transfers: transfers.map((transfer) => ({ ...transfer, amount: String(transfer.amount) })),
      };
      await writePrivate(path, JSON.stringify(kept));
    },
  };
}

/** A file that cannot be read counts as none. */
function parsed(text: string): Mark | undefined {
  try {
    const { server, transfers } = JSON.parse(text) as MarkJson;
    return {
      server: server ?? undefined,
      transfers: transfers.map((transfer) => ({ ...transfer, amount: BigInt(transfer.amount) })),
    };
  } catch {
    return undefined;
  }
}
