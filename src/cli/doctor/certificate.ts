/** The check of `tendon doctor` of the certificate: a right pair of files that has not expired. */
import { type CertificateFiles, readCertificate } from "../../http/certificate.ts";
import { systemClock } from "../../std/clock.ts";
import { Problem } from "../../std/problem.ts";
import { type Check, green, red } from "./checks.ts";

const NAME = "TLS";
const DAY_MS = 86_400_000;
/** From here on a renewal is late: tools renew some weeks before the end. */
const SOON_DAYS = 14;

export async function certificateCheck(files: CertificateFiles): Promise<Check> {
  const read = await readCertificate(files);
  if (read instanceof Problem) return red(NAME, read.message);
  const day = new Date(read.expiresMs).toISOString().slice(0, 10);
  const days = Math.floor((read.expiresMs - systemClock.unixMs()) / DAY_MS);
  if (days < 0)
    return red(NAME, `the certificate expired on ${day}; replace its files, the service reads them by itself`);
  const note = days < SOON_DAYS ? "replace its files soon, the service reads them by itself" : undefined;
  return green(NAME, `the certificate is good until ${day}, ${days} days`, note);
}
