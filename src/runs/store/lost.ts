/** A multipart upload whose parts the store of bytes has dropped by itself. */
import { changes, type Steps } from "../../store/steps.ts";
import { changeAccount, lockAccount } from "./totals.ts";
import { uploadById } from "./uploads.ts";

interface Lost {
  readonly accountId: string;
  readonly uploadId: string;
  /** What the backend called the assembly that is not there any more. */
  readonly token: string;
  /** Of the request that joins the parts and found it. */
  readonly attempt?: string;
}

/**
 * All parts must come again, into an assembly that the next one begins. Where another one has been begun since, nothing is lost.
 * `joining`: another request puts the parts together, and will know better.
 */
export function* uploadLost({ accountId, uploadId, token, attempt }: Lost): Steps<"open" | "joining" | "gone"> {
  yield* lockAccount(accountId);
  const upload = yield* uploadById(accountId, uploadId);
  if (!upload || upload.state === "done") return "gone";
  if (upload.state === "joining") {
    if (upload.attempt !== attempt) return "joining";
    yield* changes("UPDATE run_uploads SET state = 'open', owner = NULL, attempt = NULL WHERE id = $1", uploadId);
    yield* changeAccount(accountId, { reserved: -upload.size });
  }
  if (upload.token !== token) return "open";
  yield* changes("UPDATE run_uploads SET token = NULL WHERE id = $1", uploadId);
  yield* changes("DELETE FROM run_parts WHERE upload_id = $1", uploadId);
  return "open";
}
