/** The store of this program, with its domains and its threads. */
import type { Problem } from "../error/problem.ts";
import { openStoreOf, type StorePlace, type StoreUse } from "../store/open.ts";
import { DOMAINS, type Store } from "./domains.ts";

/**
 * The writer thread. In the compiled executable the modules are one file at the virtual root, and entry points stand below it by
 * their paths in `src/`, provided that the compile script (src/setup/compile.ts) lists them beside `main.ts`.
 */
function writerThread(): Worker {
  const path = import.meta.url.includes("$bunfs") ? "./service/writer.js" : "./writer.ts";
  return new Worker(new URL(path, import.meta.url));
}

export function openStore(place: StorePlace, use: StoreUse): Promise<Store | Problem> {
  return openStoreOf(DOMAINS, writerThread, place, use);
}
