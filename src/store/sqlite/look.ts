/** A look at the database of a data folder, for `tendon doctor`: whole, and of a version that this program knows? */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { Problem } from "../../error/problem.ts";
import type { Domains } from "../domain.ts";
import { openLook } from "./connection.ts";
import { DATABASE_FILE } from "./folder.ts";
import { newerSchema } from "./migrate.ts";
import { closeSqlite } from "./statements.ts";

/** Makes and changes nothing, also while a service uses the folder. */
export function lookAtDatabase(domains: Domains, dataDir: string): "absent" | "whole" | Problem {
  const path = join(dataDir, DATABASE_FILE);
  if (!existsSync(path)) return "absent";
  try {
    const db = openLook(path);
    try {
      const newer = newerSchema(db, domains);
      if (newer !== undefined) return new Problem(`${path}: ${newer}`);
      const found = db.query<{ quick_check: string }, []>("PRAGMA quick_check(1)").get()?.quick_check;
      return found === "ok" ? "whole" : damaged(path, found ?? "it cannot be checked");
    } finally {
      closeSqlite(db);
    }
  } catch (error) {
    return damaged(path, (error as Error).message);
  }
}

function damaged(path: string, reason: string): Problem {
  return new Problem(`${path} cannot be read: ${reason}; put a copy of it back, or name another folder with --data`);
}
