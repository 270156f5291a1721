/** Certificates for tests: self-signed, for this machine, made by openssl. */
import { rename } from "node:fs/promises";
import { join } from "node:path";
import type { CertificateFiles } from "../../src/http/certificate.ts";

const SUBJECT = ["-days", "30", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];

/** Makes a pair named `name` in the folder. */
export async function makePair(dir: string, name: string): Promise<CertificateFiles> {
  const files = { cert: join(dir, `${name}.crt`), key: join(dir, `${name}.key`) };
  const made = Bun.spawn(
    [
      ...["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
      ...["-keyout", files.key, "-out", files.cert, "-subj", `/CN=${name}`, ...SUBJECT],
    ],
    { stdout: "ignore", stderr: "pipe" },
  );
  if ((await made.exited) !== 0) throw new Error(await made.stderr.text());
  return files;
}

/** Puts one pair in the place of another, file by file, as tools for certificates do. */
export async function replacePair(from: CertificateFiles, to: CertificateFiles): Promise<void> {
  await rename(from.cert, to.cert);
  await rename(from.key, to.key);
}
